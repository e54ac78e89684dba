package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/worker/capacity"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

func scaleCommand(p *app.Program) *cobra.Command {
	var out benchmark.Output
	var file string
	var lengths []time.Duration
	var workers []int
	cmd := &cobra.Command{
		Use:   "scale",
		Short: "How many workers a Temporal server and a storage are enough for, and what is used up first",
		Long: `Simulates a program, a Temporal server, storage and workers (agents/worker/capacity), with costs that were measured without a network: those of the project's machine, or of a file.
Workers are to train for nine tenths of their time in the last row.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			c, err := capacity.Measured()
			if file != "" {
				c, err = capacity.Load(file)
			}
			if err != nil {
				return fmt.Errorf("scale: %w", err)
			}
			seconds := make([]float64, len(lengths))
			for i, d := range lengths {
				seconds[i] = d.Seconds()
			}
			r, err := capacity.Scale(c, seconds, workers, func(name string) { p.Progress("simulating %s", name) })
			if err != nil {
				return fmt.Errorf("scale: %w", err)
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return p.Print(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.StringVar(&file, "costs", "", "a JSON file of measured costs")
	f.DurationSliceVar(&lengths, "interval", []time.Duration{30 * time.Second, time.Minute, 5 * time.Minute}, "how long intervals train")
	f.IntSliceVar(&workers, "workers", []int{1, 10, 100, 1000}, "numbers of workers")
	return cmd
}
