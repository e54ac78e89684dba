package corebench

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
)

// adamRounds is what the median is taken over, unless few rounds are asked for.
const adamRounds = 100

// adam compares Adam over n parameters with copying as many bytes as it must move.
func adam(n int) func(context.Context, *bench) ([]benchmark.Row, error) {
	return func(_ context.Context, b *bench) ([]benchmark.Row, error) {
		m, err := measureAdam(n, min(adamRounds, 10*b.Rounds))
		if err != nil {
			return nil, err
		}
		return []benchmark.Row{{
			Name: fmt.Sprintf("adam/%d", n), Measures: "Adam step on one core", Value: m.AdamNs / 1e3, Against: fmt.Sprintf("memcpy of %d bytes", 14*n),
			Reference: m.MemcpyNs / 1e3, Unit: "µs", Ratio: m.Ratio, Target: benchmark.AtMost(m.Target), Note: m.Level,
		}}, nil
	}
}
