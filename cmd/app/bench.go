package app

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/internal/corebench"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/ort"
)

func (a *app) benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure speed and memory against stated targets"}
	cmd.AddCommand(a.benchCoreCommand(), a.benchEnvCommand(), a.benchLearnCommand(), a.benchReplayCommand(), a.benchServeCommand(), a.benchTrainCommand())
	return cmd
}

func (a *app) benchCoreCommand() *cobra.Command {
	var o corebench.Options
	var file string
	var check, list bool
	cmd := &cobra.Command{
		Use:   "core [ROW…]",
		Short: "Latency, training steps, optimiser, compilation and memory, each with its ratio to a reference",
		Long: `Measures each row and a reference in turns within one process, and prints their ratio and, where there is one, the target.
Rows are selected by patterns ('policy', 'step/*'); without any, all are measured.
Ratios are medians of interleaved rounds, so that other load meets both sides alike; they still wander on a busy machine. Run again before believing a miss.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				fmt.Fprintln(a.out, strings.Join(corebench.Names(), "\n"))
				return nil
			}
			c, err := a.namedEngine(cmd.Context(), ort.Name)
			if err != nil {
				return err
			}
			o.Engine, o.Rows = c, args
			if !a.quiet && isTerminal(a.err) {
				o.Began = func(name string) { fmt.Fprintf(a.err, "onnxrl: measuring %s\n", name) }
			}
			r, err := corebench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if file != "" {
				if err := writeReport(file, r); err != nil {
					return err
				}
			}
			if a.json {
				err = a.printJSON(r)
			} else {
				err = r.Print(a.out)
			}
			if err == nil && check && r.Missed > 0 {
				return quietError{errors.New("targets are missed")}
			}
			return err
		},
	}
	f := cmd.Flags()
	f.BoolVar(&check, "check", false, "exit with status 1 when a target is missed")
	f.BoolVar(&list, "list", false, "list the rows and measure nothing")
	f.StringVar(&file, "out", "", "also write the raw figures to this JSON file")
	f.IntVar(&o.Rounds, "rounds", 15, "how often the two sides of a row take turns")
	f.DurationVar(&o.Round, "round", 20*time.Millisecond, "time of one side in one round")
	f.IntVar(&o.Steps, "steps", 1_000_000, "training steps over which memory is watched")
	f.BoolVar(&o.Solo, "solo", false, "measure no references")
	return cmd
}

func writeReport(path string, r *corebench.Report) error {
	err := atomicfile.WriteFile(path, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	})
	if err != nil {
		return fmt.Errorf("write the figures: %w", err)
	}
	return nil
}
