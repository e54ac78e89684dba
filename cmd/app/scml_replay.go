package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/runtime/printable"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// scmlReplay is what scml replay prints; the JSON keys are stable.
type scmlReplay struct {
	Worlds []scmlReplayed `json:"worlds"`
	// Failed is how many of them are not what they say.
	Failed int `json:"failed"`
}

// scmlReplayed is one world.
type scmlReplayed struct {
	Path string `json:"path"`
	record.Checked
	Difference *record.Difference `json:"difference"`
	Problem    string             `json:"problem,omitempty"`
}

// Print writes a line for each world.
func (r *scmlReplay) Print(out io.Writer) error {
	w := printable.NewTable(out)
	fmt.Fprintln(w, "world\tdays\tcontracts\tdropped\tbankrupt\tnumbers\tworst error\t")
	for _, p := range r.Worlds {
		verdict := ""
		switch {
		case p.Problem != "":
			verdict = p.Problem
		case p.Difference != nil:
			verdict = p.Difference.Error()
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%.1e\t%s\n", p.Path, p.Days, p.Contracts, p.Dropped, p.Bankrupt, p.Numbers, p.Worst, verdict)
	}
	return w.Flush()
}

func (a *app) scmlReplayCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "replay WORLD...",
		Short: "Compute worlds again, and name the first number that differs",
		Long: `Reads worlds and computes every number of the end of each day again from how the world began and from the contracts that were signed. These are prices, issues, balances, stocks, penalties, bankruptcies,
what was delivered and what was dropped. A world is a file, as scml run -o writes it, or the folder that the league's own program writes for one. The exit status is 1 when a number differs by more than
2e-12 of itself.`,
		Example: `  onnxrl scml run -o world.json
  onnxrl scml replay world.json`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := a.scmlReplay(cmd.Context(), args)
			if err != nil {
				return fmt.Errorf("scml replay: %w", err)
			}
			var failed error
			if r.Failed > 0 {
				failed = fmt.Errorf("%d of %d worlds are not what they say", r.Failed, len(r.Worlds))
			}
			return a.printTable(r, failed)
		},
	}
}

func (a *app) scmlReplay(ctx context.Context, paths []string) (*scmlReplay, error) {
	bar := progress.Start(a.err, progress.Options{Label: "replay", Unit: "worlds", Total: int64(len(paths)), Quiet: a.quiet})
	defer bar.Finish()
	r := &scmlReplay{Worlds: []scmlReplayed{}}
	for _, path := range paths {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		p := scmlReplayed{Path: path}
		file, err := record.Open(path)
		switch {
		case err != nil:
		case len(file.Played) == 0:
			err = errors.New("no days were recorded")
		default:
			p.Checked, err = record.Replay(file)
		}
		if err != nil && !errors.As(err, &p.Difference) {
			p.Problem = err.Error()
		}
		if err != nil {
			r.Failed++
		}
		r.Worlds = append(r.Worlds, p)
		bar.Add(1)
	}
	return r, nil
}
