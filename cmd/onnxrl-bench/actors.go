package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/cmd/app"
	"github.com/onnxrl/onnxrl/cmd/internal/actorbench"
	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// waitingKinds are all kinds, and the environment that is measured with.
func waitingKinds() experiment.Kinds {
	k := kinds.All()
	k.Envs = append(k.Envs, actorbench.Kind)
	return k
}

func actorsCommand(p *app.Program) *cobra.Command {
	o := actorbench.Options{Kinds: waitingKinds()}
	var out benchmark.Output
	cmd := &cobra.Command{
		Use:   "actors",
		Short: "Env steps per second with more and more actor processes, in environments that wait",
		Long: `Trains APPO on CartPoles of which each step waits, with each number of actors in processes of their own (train.actors), and compares the env steps per second with those of the first.
The environments are the same number in each run, and an actor steps its own one after the other. The start of the processes does not count. Twice as many actors as the first are to reach 1.8 times as many env steps.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := p.Engine(cmd.Context(), "")
			if err != nil {
				return err
			}
			o.Engine, o.Actor = c, p.Actor(c)
			o.Began = func(name string) { p.Progress("measuring %s", name) }
			r, err := actorbench.Run(cmd.Context(), o)
			if err != nil {
				return fmt.Errorf("actors: %w", err)
			}
			if err := out.Save(r); err != nil {
				return err
			}
			return p.Print(r, out.Verdict(r.Missed))
		},
	}
	f := cmd.Flags()
	out.AddFlags(f)
	f.IntSliceVar(&o.Counts, "actors", []int{1, 2, 4}, "numbers of actors")
	f.IntVar(&o.Envs, "envs", 8, "environments of all actors together")
	f.IntVar(&o.MaxPolicyLag, "max-policy-lag", 1, "as in a document")
	f.DurationVar(&o.Wait, "wait", 5*time.Millisecond, "how long a step of an environment waits")
	f.Int64Var(&o.EnvSteps, "env-steps", 5120, "env steps of a run")
	return cmd
}
