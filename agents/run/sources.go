package run

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// dataDigest is the source that a market's data are.
const dataDigest = "data_sha256"

// Sources returns the SHA-256 of what an experiment is made from beside its document, in
// hexadecimal: its data, and the files of its networks. Files are read by digest, nil for [Digest].
func Sources(doc *configs.Document, f envs.Factory, digest func(files []string) (string, error)) (map[string]string, error) {
	if digest == nil {
		digest = func(files []string) (string, error) { return Digest(files, nil) }
	}
	out := map[string]string{}
	if m, ok := f.(interface{ Inside() envs.Factory }); ok {
		f = m.Inside()
	}
	if o, ok := f.(trading.Opened); ok {
		maps.Copy(out, o.Data().Digests)
		if out[dataDigest] == "" {
			out[dataDigest] = marketDigest(o.Source(), o.Data().Splits)
		}
	}
	if dir, ok := experiment.Path(doc, experiment.DatasetPath); ok {
		d, err := offline.Open(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", experiment.DatasetPath, err)
		}
		out["dataset_sha256"] = d.Digest
	}
	for _, key := range experiment.Models(doc) {
		path, ok := experiment.Path(doc, key)
		if !ok {
			continue
		}
		files, err := ModelFiles(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		part := strings.TrimSuffix(key[strings.Index(key, ".")+1:], ".path")
		if out[part+"_sha256"], err = digest(files); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// marketDigest identifies everything that a policy can see or be paid by: names, dates, features,
// prices, what can be traded, and the splits.
func marketDigest(s *trading.Source, splits map[envs.Split]trading.Range) string {
	h, m, c := sha256.New(), s.Market(), s.Config()
	fmt.Fprintf(h, "%q %q\n", m.Assets, m.Features)
	for _, name := range slices.Sorted(maps.Keys(splits)) {
		fmt.Fprintf(h, "%q %v\n", name, splits[name])
	}
	for _, t := range m.Dates {
		fmt.Fprintln(h, t.Unix())
	}
	h.Write(tensor.Of(m.X, len(m.X)).Bytes())
	// Writing to a hash gives no error.
	_ = binary.Write(h, binary.LittleEndian, m.Open)
	_ = binary.Write(h, binary.LittleEndian, m.Close)
	sides := make([]byte, len(m.Tradable))
	for i, s := range m.Tradable {
		// 1 is both sides, as it was when there was one flag for both.
		sides[i] = [...]byte{0: 0, trading.CanBuy: 2, trading.CanSell: 3, trading.Both: 1}[s]
	}
	h.Write(sides)
	_ = binary.Write(h, binary.LittleEndian, m.AtOpen)
	_ = binary.Write(h, binary.LittleEndian, m.Members)
	if m.Factor != nil {
		_ = binary.Write(h, binary.LittleEndian, m.Factor)
	}
	if c.Costs.UsesBars() {
		for _, column := range [][]float64{m.Volume, m.LimitUp, m.LimitDown, m.Spread, m.Depth} {
			_ = binary.Write(h, binary.LittleEndian, column)
		}
	}
	for _, column := range [][]float64{m.Dividend, m.Bonus} {
		_ = binary.Write(h, binary.LittleEndian, column)
	}
	if c.Account.Delisting != nil {
		h.Write(m.Gone)
	}
	if m.Rules != nil {
		fmt.Fprintf(h, "rules %s\n", m.Rules.Name())
	}
	return hex.EncodeToString(h.Sum(nil))
}
