package app

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents/scml/official"
	"github.com/onnxrl/onnxrl/export/format"
)

// scmlFormat is the format of agents for SCML, which are no single model.
const scmlFormat = "scml"

// scmlExported is what export --format scml prints; its keys are stable.
type scmlExported struct {
	Source string   `json:"source"`
	Name   string   `json:"name"`
	Format string   `json:"format"`
	Out    string   `json:"out"`
	Files  []string `json:"files"`
	// Layers are the networks of the agent.
	Layers []string `json:"layers"`
	// Compared is how often the graph of a round was run beside those of its layers, and Difference
	// how far they were apart at most.
	Compared   int     `json:"compared"`
	Difference float64 `json:"difference"`
	// Engine ran the networks, absent without any.
	Engine string `json:"engine,omitempty"`
}

// Print writes what was made of what.
func (r *scmlExported) Print(out io.Writer) error {
	layers := "a baseline without networks"
	if len(r.Layers) > 0 {
		layers = strings.Join(r.Layers, ", ")
	}
	fmt.Fprintf(out, "%s: the Python package %s, %d files\n%s: %s\n", r.Out, r.Name, len(r.Files), r.Source, layers)
	if r.Compared > 0 {
		fmt.Fprintf(out, "the graph of a round: at most %.2g from its layers in %d runs on %s\n", r.Difference, r.Compared, r.Engine)
	}
	return nil
}

// exportSCML writes the Python package of an agent's directory.
func (a *app) exportSCML(ctx context.Context, dir string, f *exportFlags) error {
	if err := format.FreeFolder(f.out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	c, err := a.compiler(ctx)
	if err != nil {
		return err
	}
	r := &scmlExported{Source: dir, Name: filepath.Base(f.out), Format: scmlFormat, Out: f.out}
	e, err := official.Files(ctx, dir, r.Name, c)
	if err != nil {
		return err
	}
	if r.Layers, r.Compared, r.Difference = e.Layers, e.Compared, e.Difference; len(e.Layers) > 0 {
		r.Engine = c.Name()
	}
	if r.Files, err = format.WriteFolder(f.out, e.Files); err != nil {
		return err
	}
	return a.printTable(r, nil)
}

// onlyFlags reports a flag of a command's own that means nothing with another one.
func onlyFlags(cmd *cobra.Command, with string, allowed ...string) (err error) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if err == nil && f.Changed && !slices.Contains(allowed, f.Name) {
			err = fmt.Errorf("--%s: it means nothing with %s", f.Name, with)
		}
	})
	return err
}
