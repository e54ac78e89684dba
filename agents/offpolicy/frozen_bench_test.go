package offpolicy_test

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/sac"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/models/prefix"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// BenchmarkPrefix measures an env step and an update of SAC, on windows of 20 bars of 5 assets with
// a TimesNet of two blocks of 16, in batches of 32, with what is kept of windows and without.
func BenchmarkPrefix(b *testing.B) {
	table := tensor.New(tensor.Float32, 1000, 5, 8)
	rng.New(6).Stream().FillNormal32(table.Float32s(), 0, 1)
	w, err := envs.NewWindow(table, 20)
	if err != nil {
		b.Fatal(err)
	}
	spec := agenttest.Assets(b)
	spec.Observation = envs.Dict{{Name: "window", Space: envs.Unbounded(20, 5, 8), Window: w}, {Name: "position", Space: envs.Unbounded(5)}}
	spec.Action = envs.NewBox(-1, 1, 5)
	times := encoder.TimesNetDefaults()
	times.DModel, times.DFF = 16, 16
	for _, base := range []string{"last block adapted", "whole base frozen"} {
		for _, kept := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/kept=%v", base, kept), func(b *testing.B) {
				c := sac.Defaults()
				c.BatchSize, c.BufferSize, c.LearningStarts, c.Hidden, c.Encoder = 32, 5000, 40, []int{64}, kinded(b, "timesnet", times)
				if base == "last block adapted" {
					c.LoRA = &lora.Config{Rank: 8, Target: []string{"*block1*"}}
				} else {
					c.Freeze = []string{"*encoder*"}
				}
				v := agenttest.Toys(b, 1, spec)
				prefixes := &prefix.Caches{}
				agenttest.Closing(b, prefixes)
				r := agenttest.NewTraining(b, agenttest.Agent(b, made(b, c, sac.NewMaker), v, testengines.Fastest(b), 1, func(s *agents.Setup) {
					if kept {
						s.Prefixes = prefixes
					}
				}), v)
				r.Run(b, 60)
				if kept {
					// Every window once.
					for prefixes.Runs() < int64(prefixes.Len()*((1000-20+prefix.Block)/prefix.Block)) {
						r.Round(b)
					}
				}
				b.ReportAllocs()
				for b.Loop() {
					r.Run(b, 1)
				}
			})
		}
	}
}
