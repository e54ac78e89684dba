package app

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/scml/samples"
	"github.com/onnxrl/onnxrl/runtime/progress"
)

// scmlSamples is what scml samples prints; the JSON keys are stable.
type scmlSamples struct {
	Dir string `json:"dir"`
	*samples.Manifest
	// Seconds is how long the logs took to read and to follow; writing goes on beside it.
	Seconds float64 `json:"seconds_reading"`
}

// Print writes what was made.
func (s *scmlSamples) Print(out io.Writer) error {
	negotiations := 0
	for _, w := range s.Worlds {
		negotiations += w.Negotiations
	}
	_, err := fmt.Fprintf(out, "%s: %d worlds, %d negotiations\nmacro: %d samples of %d factories\nmicro: %d samples of %d sides of negotiations\n", s.Dir, len(s.Worlds)-s.Skipped, negotiations, s.Days, s.Factories, s.Decisions, s.Threads)
	for _, w := range s.Worlds {
		if w.Problem != "" {
			_, e := fmt.Fprintf(out, "skipped: %s\n", w.Problem)
			err = errors.Join(err, e)
		}
	}
	return err
}

func (a *app) scmlSamplesCommand() *cobra.Command {
	o := samples.Defaults()
	var out string
	cmd := &cobra.Command{
		Use:   "samples FOLDER...",
		Short: "Make samples for the agent's layers of logs of worlds",
		Long: `Finds the folders of worlds in folders that scml tournament --logs, scml run --logs or the league's own program have written. Makes three data sets in the folder that -o names. The data set macro has an episode
for each factory: what it knew each morning, the goal that its contracts of the day come to, and how its balance changed. The data set micro has an episode for each side of a negotiation: what was offered so far, what was decided, and what the first layer would have decided. The data set residual has the same as the executor learns it. Prices of goals of days without contracts are back-filled.

Worlds are played again as the log says and compared with it day by day. So a log of another version of the league, or a damaged one, is refused; --skip-damaged goes on without it. The same command goes on
after Ctrl-C.`,
		Example: `  onnxrl scml tournament penguin as0 --configs 4 --logs tournament_history/1_std
  onnxrl scml samples tournament_history/1_std -o data/scml --type PenguinAgent,AS0`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.scmlSamples(cmd.Context(), args, out, o)
			if err != nil {
				return fmt.Errorf("scml samples: %w", err)
			}
			return a.printTable(s, nil)
		},
	}
	fl := cmd.Flags()
	fl.StringVarP(&out, "out", "o", "", "folder of the samples, which must not exist")
	fl.StringSliceVar(&o.Types, "type", nil, "classes of the agents whose samples are kept (default: all)")
	fl.IntVar(&o.Goal, "goal", o.Goal, "numbers of a goal: 4 of the whole day, 16 of four buckets of days of delivery")
	fl.IntVar(&o.Horizon, "horizon", o.Horizon, "days ahead that are observed")
	fl.BoolVar(&o.Skip, "skip-damaged", false, "leave out worlds that cannot be read, and count them")
	// The name was given just above.
	_ = cmd.MarkFlagRequired("out")
	return cmd
}

func (a *app) scmlSamples(ctx context.Context, from []string, to string, o samples.Options) (*scmlSamples, error) {
	var worlds []string
	for _, dir := range from {
		list, err := samples.Find(ctx, dir)
		if err != nil {
			return nil, err
		}
		worlds = append(worlds, list...)
	}
	var bar *progress.Progress
	o.Progress = func(n int) {
		if bar == nil {
			bar = progress.Start(a.err, progress.Options{Label: "samples", Unit: "worlds", Total: int64(len(worlds)), Quiet: a.quiet})
		}
		bar.Set(int64(n))
	}
	m, err := samples.Collect(ctx, worlds, to, o)
	if bar != nil {
		bar.Finish()
	}
	if err != nil {
		return nil, err
	}
	return &scmlSamples{to, m, m.Reading.Seconds()}, nil
}
