package app

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// experimentSources returns the digests of what the runs are made from, beside the document.
func (a *app) experimentSources(doc *configs.Document, f envs.Factory) (map[string]string, error) {
	out := map[string]string{}
	if o, ok := f.(trading.Opened); ok {
		maps.Copy(out, o.Data().Digests)
		if out["data_sha256"] == "" {
			out["data_sha256"] = marketDigest(o.Data())
		}
	}
	for _, part := range []string{"encoder", "policy"} {
		path, ok := docPath(doc, "agent."+part+".path")
		if !ok {
			continue
		}
		files, err := modelFiles(path)
		if err != nil {
			return nil, fmt.Errorf("agent.%s.path: %w", part, err)
		}
		if out[part+"_sha256"], err = a.digest(files); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// tellData writes what the loader of a market has to say of its data: first how prices are
// adjusted. It is no progress, so that --quiet does not keep it back.
func (a *app) tellData(out io.Writer, f envs.Factory) {
	if o, ok := f.(trading.Opened); ok {
		tellNotes(out, o.Data().Notes)
	}
}

// tellNetwork writes what there is to know of how the files were read that an agent's policy is
// made of.
func (a *app) tellNetwork(out io.Writer, agent agents.Agent) {
	if net, _ := agent.Learner().Policy(); net != nil && !a.quiet {
		for _, n := range net.Notes {
			fmt.Fprintf(out, "network: %s\n", n)
		}
	}
}

// tellLength writes how long a run will be where that is not what was asked for.
func (a *app) tellLength(out io.Writer, t *train.Trainer) {
	if total, planned := t.Config().TotalEnvSteps, t.PlannedEnvSteps(); planned != total && !a.quiet {
		fmt.Fprintf(out, "train.total_env_steps is %s: the run takes %s, a whole number of rollouts\n", grouped(total), grouped(planned))
	}
}

func tellNotes(out io.Writer, notes []string) {
	for _, n := range notes {
		fmt.Fprintf(out, "data: %s\n", n)
	}
}

// marketDigest identifies everything that a policy can see or be paid by: names, dates, features,
// prices, what can be traded, and the splits.
func marketDigest(d *trading.Data) string {
	h, m := sha256.New(), d.Market
	fmt.Fprintf(h, "%q %q\n", m.Assets, m.Features)
	for _, name := range slices.Sorted(maps.Keys(d.Splits)) {
		fmt.Fprintf(h, "%q %v\n", name, d.Splits[name])
	}
	for _, t := range m.Dates {
		fmt.Fprintln(h, t.Unix())
	}
	h.Write(tensor.Of(m.X, len(m.X)).Bytes())
	// Writing to a hash gives no error.
	_ = binary.Write(h, binary.LittleEndian, m.Open)
	_ = binary.Write(h, binary.LittleEndian, m.Close)
	_ = binary.Write(h, binary.LittleEndian, m.Tradable)
	return hex.EncodeToString(h.Sum(nil))
}
