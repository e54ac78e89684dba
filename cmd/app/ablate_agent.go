package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/logs"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// scmlAblation is what each layer of an agent is worth; the JSON keys are stable.
type scmlAblation struct {
	Agent  string   `json:"agent"`
	Rivals []string `json:"rivals"`
	// Layers are those of the agent, and last all of them together.
	Layers []layerWorth `json:"layers"`
	// Standings are those of the agent and of what is left of it without layers, each in its own
	// tournament.
	Standings []league.Standing `json:"standings"`
}

// layerWorth is the difference between the agent and the agent without a layer.
type layerWorth struct {
	Layer   string  `json:"layer"`
	Without float64 `json:"score_without"`
	league.Difference
}

// Print writes the table.
func (r *scmlAblation) Print(out io.Writer) error {
	w := printable.NewNumbers(out)
	st := r.Standings[0]
	fmt.Fprintf(out, "%s scores %.3f in %d worlds beside %s\n\n", r.Agent, st.Score, st.Worlds, strings.Join(r.Rivals, ", "))
	fmt.Fprint(w, "layer\twithout it\tis worth\t95 % from\tto\tsure by\tconfigurations\tneeded\t\n")
	for _, l := range r.Layers {
		low, high, ahead, needed := l.Cells("-")
		fmt.Fprintf(w, "%s\t%.3f\t%+.3f\t%s\t%s\t%s\t%d\t%s\t\n", l.Layer, l.Without, l.Difference.Difference, low, high, ahead, l.Configs, needed)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if slices.ContainsFunc(r.Layers, func(l layerWorth) bool { return l.Low == nil }) {
		fmt.Fprintf(out, "\n%s\n", noInterval)
	}
	return nil
}

// allLayers stands for the agent's layers together, all but the first, which is always there.
const allLayers = "all"

// isAgent reports whether a path is the directory of an agent of SCML's.
func isAgent(path string) bool { return isFile(filepath.Join(path, scml.DescriptionFile)) }

// ablateAgent lets an agent of SCML's Standard league play a tournament against the league's
// winners, and in the same worlds and places what is left of it without each of its layers, and
// without all. One of them is in a world: what an agent is worth among its like is another matter.
func (a *app) ablateAgent(ctx context.Context, dir string, f *ablateFlags) (_ *scmlAblation, err error) {
	if len(f.sets) > 0 || f.seeds != "" || f.full || f.dryRun {
		return nil, errors.New("--set, --seeds, --full and --dry-run are of studies, and this is the directory of an agent")
	}
	d, err := scml.ReadDescription(dir)
	if err != nil {
		return nil, err
	}
	roster := scml.NewRoster(a.compiler)
	defer func() { err = errors.Join(err, roster.Close()) }()
	s := league.Defaults()
	s.Configs, s.Find, s.Watch = f.configs, roster.Find, shield.Watch
	r := &scmlAblation{Agent: dir, Rivals: []string{"penguin", "as0", "ultra"}}
	variants := []string{dir}
	for _, l := range []struct{ name, file string }{{"manager", d.Manager}, {"executor", d.Executor}, {"coordinator", d.Coordinator}} {
		if l.file != "" {
			variants = append(variants, dir+":no-"+l.name)
			r.Layers = append(r.Layers, layerWorth{Layer: l.name})
		}
	}
	if len(r.Layers) != 1 {
		variants = append(variants, scml.Baseline.Name)
		r.Layers = append(r.Layers, layerWorth{Layer: allLayers})
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return nil, err
		}
	}
	var rows []league.Row
	for i, name := range variants {
		s.Competitors = append([]string{name}, r.Rivals...)
		if err := s.Validate(); err != nil {
			return nil, err
		}
		path := ""
		if f.out != "" {
			path = filepath.Join(f.out, fmt.Sprintf("without-%d.json", i))
		}
		t, err := a.scmlTournament(ctx, s, path, "", logs.Extras{}, cmp.Or(f.parallel, runtime.GOMAXPROCS(0)))
		if err != nil {
			return nil, err
		}
		for _, row := range t.Rows {
			if row.Name == name {
				rows = append(rows, row)
			}
		}
		st, _ := t.Standing(name)
		r.Standings = append(r.Standings, st)
	}
	all := league.Differences(rows, variants, s.Seed)
	for i := range r.Layers {
		l := &r.Layers[i]
		l.Without = r.Standings[i+1].Score
		for _, x := range all {
			if x.Group == league.Everything && x.Name == dir && x.Against == variants[i+1] {
				l.Difference = x
			}
		}
	}
	return r, nil
}
