package corebench

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// memoryNet is trained for the memory row: small, because only the number of steps counts.
var memoryNet = workload{name: "critic-2x16-b8", model: mlp("small", "Relu", 23, 16, 16, 1), batch: 8}

// memoryGrowth is what still counts as flat: a thousandth of a byte per step would already be more
// in ten million steps, but the system counts whole pages and the run time's own bookkeeping moves
// by some of them.
const memoryGrowth = 1.02

// memory watches the resident set over many training steps: after a tenth of them everything that
// is allocated once has been.
func memory(ctx context.Context, b *bench) ([]benchmark.Row, error) {
	if _, ok := benchmark.ResidentBytes(); !ok {
		return []benchmark.Row{{Name: "memory", Measures: "not known on " + runtime.GOOS, Pass: true}}, nil
	}
	t, err := memoryNet.newTrainer(b.Engine, 1)
	if err != nil {
		return nil, err
	}
	defer t.Close()
	// Memory that earlier rows have left is no part of this one.
	debug.FreeOSMemory()
	stream := rng.New(4).Stream()
	var early, late int64
	for i := range b.Steps {
		if i%1000 == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			t.fill(stream)
		}
		if err := t.step(); err != nil {
			return nil, err
		}
		switch i + 1 {
		case b.Steps / 10:
			early, _ = benchmark.ResidentBytes()
		case b.Steps:
			late, _ = benchmark.ResidentBytes()
		}
	}
	const mib = 1 << 20
	return []benchmark.Row{{
		Name: "memory", Measures: fmt.Sprintf("resident after %d training steps", b.Steps), Value: float64(late) / mib, Against: "after a tenth of them", Reference: float64(early) / mib,
		Unit: "MiB", Ratio: float64(late) / float64(early), Target: benchmark.AtMost(memoryGrowth), Note: memoryNet.name + fmt.Sprintf(", %+d KiB", (late-early)/1024),
	}}, nil
}
