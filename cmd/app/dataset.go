package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/export/report/plots"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

func (a *app) datasetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dataset",
		Short: "Look at data sets of episodes, and bring them from and to other programs",
	}
	cmd.AddCommand(a.datasetInspectCommand())
	return cmd
}

func (a *app) datasetInspectCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use:   "inspect FOLDER",
		Short: "Check a data set and sum it up",
		Long: `Reads a data set from its first to its last row, a row group at a time, and shows returns by behaviour and what the columns hold. It checks that the files are those of the manifest, that episodes and
steps follow each other without holes, that observations and actions lie in their spaces, that actions are valid by the masks, that discounts agree with how episodes ended, and that there is no NaN.
The exit status is 1 when something is wrong. --picture draws how the returns of episodes are distributed.`,
		Example: `  onnxrl dataset inspect data/mixed --picture mixed.svg`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.inspectDataset(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("dataset inspect: %w", err)
			}
			if picture != "" {
				if err := drawReturns(r, picture); err != nil {
					return fmt.Errorf("dataset inspect: --picture %s: %w", picture, err)
				}
			}
			var failed error
			if r.Found > 0 {
				failed = fmt.Errorf("%d problems", r.Found)
			}
			return a.printTable(r, failed)
		},
	}
	cmd.Flags().StringVar(&picture, "picture", "", "draw the returns of episodes into this file: .svg or .png")
	return cmd
}

func (a *app) inspectDataset(ctx context.Context, dir string) (*offline.Report, error) {
	d, err := offline.Open(dir)
	if err != nil {
		return nil, err
	}
	bar := progress.Start(a.err, progress.Options{Label: "inspect", Unit: "episodes", Total: d.Episodes, Quiet: a.quiet})
	defer bar.Finish()
	return d.Inspect(ctx, func(n int64) { bar.Set(n) })
}

// drawReturns draws how the returns of the behaviours' episodes are distributed.
func drawReturns(r *offline.Report, path string) error {
	lo, hi := math.Inf(1), math.Inf(-1)
	var lines []plots.Line
	for i, list := range r.Returns {
		if len(list) == 0 {
			continue
		}
		for _, x := range list {
			if x-x == 0 {
				lo, hi = min(lo, x), max(hi, x)
			}
		}
		lines = append(lines, plots.Line{Name: r.Behaviours[i].Describe(), Kind: plots.Agent, Y: list})
	}
	if !(hi >= lo) {
		return errors.New("no episode has a finite return")
	}
	pad := max((hi-lo)/50, math.Abs(hi)/1000, 1e-9)
	f, err := plots.Histogram("returns", fmt.Sprintf("Distribution of the returns of %d episodes of %s", r.Episodes, r.Environment), "Share of episodes", "return of an episode, undiscounted", plots.Plain, lines, lo-pad, hi+pad, nil)
	if err != nil {
		return err
	}
	var text []byte
	switch ext := filepath.Ext(path); ext {
	case ".svg":
		text, err = f.SVG()
	case ".png":
		text, err = f.PNG(plots.Light, 144)
	default:
		return fmt.Errorf("the ending is %q, expected .svg or .png", ext)
	}
	if err != nil {
		return err
	}
	return atomicfile.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
}
