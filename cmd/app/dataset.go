package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/export/report/plots"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

func (a *app) datasetCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "dataset",
		Short: "Inspect, import, merge and export data sets of episodes",
	}
	cmd.AddCommand(a.datasetInspectCommand(), a.datasetImportCommand(), a.datasetMergeCommand(), a.datasetExportCommand())
	return cmd
}

// datasetReport is what came of an import, a merge or an export; the JSON keys are stable.
type datasetReport struct {
	Dir         string `json:"dir"`
	Environment string `json:"environment"`
	Episodes    int64  `json:"episodes"`
	Transitions int64  `json:"transitions"`
	// Notes say what was left out.
	Notes []string `json:"notes,omitempty"`
}

// reportOf is what was written into a folder.
func reportOf(dir string, m *offline.Manifest) *datasetReport {
	return &datasetReport{Dir: dir, Environment: m.Environment.Name, Episodes: m.Episodes, Transitions: m.Transitions}
}

// Print writes it as a line.
func (c *datasetReport) Print(w io.Writer) error {
	_, err := fmt.Fprintf(w, "%s: %d episodes, %d transitions of %s\n", c.Dir, c.Episodes, c.Transitions, c.Environment)
	for _, n := range c.Notes {
		_, e := fmt.Fprintln(w, n)
		err = errors.Join(err, e)
	}
	return err
}

const pythonUsage = "interpreter with the packages h5py and numpy (default: $ONNXRL_PYTHON, or else python3)"

// converting shows the progress of a conversion, once there is some; done ends that.
func (a *app) converting(label string) (told func(episodes, of int64), done func()) {
	var bar *progress.Progress
	told = func(n, of int64) {
		if bar == nil {
			bar = progress.Start(a.err, progress.Options{Label: label, Unit: "episodes", Quiet: a.quiet})
		}
		bar.SetTotal(of)
		bar.Set(n)
	}
	return told, func() {
		if bar != nil {
			bar.Finish()
		}
	}
}

func (a *app) datasetMergeCommand() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "merge FOLDER FOLDER...",
		Short: "Make one data set of several of one environment",
		Long: `Writes the episodes of data sets whose observations, actions, masks and costs are the same, one data set after the other. Who acted in which episode stays known.
The same command goes on after Ctrl-C.`,
		Example: `  onnxrl dataset merge data/random data/expert -o data/mixed`,
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var list []*offline.Dataset
			for _, dir := range args {
				d, err := offline.Open(dir)
				if err != nil {
					return fmt.Errorf("dataset merge: %w", err)
				}
				list = append(list, d)
			}
			told, done := a.converting("merge")
			m, err := offline.Merge(cmd.Context(), list, out, told)
			done()
			if err != nil {
				return fmt.Errorf("dataset %w", err)
			}
			return a.printTable(reportOf(out, m), nil)
		},
	}
	cmd.Flags().StringVarP(&out, "out", "o", "", "folder of the data set, which must not exist")
	// The name was given just above.
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (a *app) datasetExportCommand() *cobra.Command {
	var out, python, id string
	cmd := &cobra.Command{
		Use:     "export FOLDER",
		Short:   "Write a data set in Minari's layout",
		Long:    `Writes a data set in Minari's layout (version 0.5, HDF5), which Minari loads from its folder of data sets. Log-probabilities and action masks become infos. Python with h5py writes HDF5.`,
		Example: `  onnxrl dataset export data/expert --id pendulum/expert-v0 -o ~/.minari/datasets/pendulum/expert-v0`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			d, err := offline.Open(args[0])
			if err != nil {
				return fmt.Errorf("dataset export: %w", err)
			}
			told, done := a.converting("export")
			err = offline.Minari{Python: python}.Export(cmd.Context(), d, out, id, told)
			done()
			if err != nil {
				return fmt.Errorf("dataset %w", err)
			}
			return a.printTable(reportOf(out, &d.Manifest), nil)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "out", "o", "", "folder of Minari's data set, which must not exist")
	fl.StringVar(&id, "id", "", "Minari's name of it, such as pendulum/expert-v0")
	fl.StringVar(&python, "python", "", pythonUsage)
	// The names were given just above.
	_ = errors.Join(cmd.MarkFlagRequired("out"), cmd.MarkFlagRequired("id"))
	return cmd
}

func (a *app) datasetInspectCommand() *cobra.Command {
	var picture string
	cmd := &cobra.Command{
		Use:   "inspect FOLDER",
		Short: "Check a data set and sum it up",
		Long: `Reads a data set from its first to its last row, a row group at a time, and shows returns by behaviour and what the columns hold. It checks that the files are those of the manifest, and that episodes and steps follow each other without holes. It checks that observations and actions lie in their spaces, that actions are valid by the masks, that discounts agree with how episodes ended, and that there is no NaN.
The exit status is 1 when something is wrong. --picture draws how the returns of episodes are distributed.`,
		Example: `  onnxrl dataset inspect data/mixed --picture mixed.svg`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkPicture(picture); err != nil {
				return fmt.Errorf("dataset inspect: %w", err)
			}
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
	return writePicture(path, f)
}
