package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/cmd/internal/corebench"
	"github.com/onnxrl/onnxrl/runtime/ort"
)

func coreCommand(p *app.Program) *cobra.Command {
	var o corebench.Options
	var out benchmark.Output
	var list bool
	cmd := &cobra.Command{
		Use:   "core [ROW…]",
		Short: "Latency, training steps, optimiser, compilation and memory, each with its ratio to a reference",
		Long: `Measures each row and a reference in turns within one process, and prints their ratio and, where there is one, the target.
Rows are selected by patterns ('policy', 'step/*'); without any, all are measured.
Ratios are medians of interleaved rounds, so that other load meets both sides alike; they still wander on a busy machine. Run again before believing a miss.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if list {
				fmt.Fprintln(cmd.OutOrStdout(), strings.Join(corebench.Names(), "\n"))
				return nil
			}
			c, err := p.Engine(cmd.Context(), ort.Name)
			if err != nil {
				return err
			}
			o.Engine, o.Rows = c, args
			o.Began = func(name string) { p.Progress("measuring %s", name) }
			r, err := corebench.Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return p.Print(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.BoolVar(&list, "list", false, "list the rows and measure nothing")
	f.IntVar(&o.Rounds, "rounds", 15, "how often the two sides of a row take turns")
	f.DurationVar(&o.Round, "round", 20*time.Millisecond, "time of one side in one round")
	f.IntVar(&o.Steps, "steps", 1_000_000, "training steps over which memory is watched")
	f.BoolVar(&o.Solo, "solo", false, "measure no references")
	return cmd
}
