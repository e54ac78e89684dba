package corebench

// The Adam step is measured against copying memory. One step reads 16 bytes per
// parameter (parameter, gradient, two moments) and writes 12; copying 14 bytes per
// parameter moves the same 28. The copy is therefore a floor that no optimiser on
// one core can pass while the data come from memory; from cache, the divisions and
// square roots decide.

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/runtime/optim"
	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// adamRow is one measured size. Times are medians over the rounds, of one call on
// one core, in nanoseconds.
type adamRow struct {
	Params   int     `json:"params"`
	Level    string  `json:"level"` // instruction set of the kernel
	AdamNs   float64 `json:"adam_ns"`
	MemcpyNs float64 `json:"memcpy_ns"`
	Ratio    float64 `json:"ratio"`  // AdamNs / MemcpyNs
	Target   float64 `json:"target"` // greatest ratio aimed for
}

// String returns the row as one line of a table.
func (r adamRow) String() string {
	return fmt.Sprintf("%8d parameters  %-8s  adam %12.0f ns  memcpy %12.0f ns  ratio %.2f (target %.2f)",
		r.Params, r.Level, r.AdamNs, r.MemcpyNs, r.Ratio, r.Target)
}

// adamSizes are the sizes with a target: about a 2×64 network, a 2×256 network and
// an encoder.
var adamSizes = []int{9_000, 72_000, 5_000_000}

// adamTarget is 1, and 1.3 for the size that fits close to the core.
func adamTarget(n int) float64 {
	if n < 20_000 {
		return 1.3
	}
	return 1
}

// measureAdam times a step of package optim's Adam over n parameters, with its
// dispatch, on one goroutine, and a copy of 14*n bytes, alternating, and
// returns the medians of the given number of rounds. Before each timed run the
// same call runs once untimed, so that both find their own data in cache as far
// as they fit.
func measureAdam(n, rounds int) (adamRow, error) {
	if n <= 0 || rounds <= 0 {
		return adamRow{}, fmt.Errorf("benchmark adam: %d parameters, %d rounds", n, rounds)
	}
	params, grads := make([]float32, n), make([]float32, n)
	for i := range grads {
		params[i] = float32(i%7) - 3
		grads[i] = float32(i%13)/100 - 0.06
	}
	src, dst := make([]byte, 14*n), make([]byte, 14*n)
	for i := range src {
		src[i], dst[i] = byte(i), 1
	}
	opt, err := optim.New(optim.Config{Kind: "adam", LR: 1e-4}, optim.WithWorkers(1))
	if err != nil {
		return adamRow{}, err
	}
	groups := []optim.Group{{Params: params, Grads: grads, LR: 1e-4}}
	step := func() {
		if e := opt.Step(groups); e != nil {
			err = e
		}
	}
	memcpy := func() { copy(dst, src) }
	// Short calls are timed in batches, to be long against the clock's grain.
	batch := max(1, 30_000/n)
	adamNs, memcpyNs := make([]float64, rounds), make([]float64, rounds)
	for r := range rounds {
		adamNs[r] = timed(step, batch)
		memcpyNs[r] = timed(memcpy, batch)
	}
	if err != nil {
		return adamRow{}, err
	}
	row := adamRow{
		Params: n, Level: kernel.Active().String(),
		AdamNs: benchmark.Median(adamNs), MemcpyNs: benchmark.Median(memcpyNs), Target: adamTarget(n),
	}
	row.Ratio = row.AdamNs / row.MemcpyNs
	return row, nil
}

// timed returns nanoseconds per call, after one call that does not count.
func timed(f func(), batch int) float64 {
	f()
	start := time.Now()
	for range batch {
		f()
	}
	return float64(time.Since(start).Nanoseconds()) / float64(batch)
}
