package optim

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// Polyak moves a target network towards the online one in place:
// dst += tau * (src - dst), element by element over arenas of equal layout.
// tau = 1 copies exactly.
func Polyak(dst, src []float32, tau float32) {
	if tau == 1 && len(dst) == len(src) {
		copy(dst, src)
		return
	}
	kernel.Polyak(dst, src, tau)
}

// EMA keeps an exponential moving average of parameters, for evaluation.
// It is not safe for concurrent use.
type EMA struct {
	decay  float64
	warmup bool
	avg    []float32
	t      uint64
}

// NewEMA returns an average in the memory avg, of the length and layout of the
// parameters, with 0 <= decay < 1. With warmup the decay of update t = 0, 1, …
// is min(decay, (1+t)/(10+t)), so that early updates count and the initial
// weights fade (the rule of TensorFlow's ExponentialMovingAverage).
func NewEMA(avg []float32, decay float64, warmup bool) (*EMA, error) {
	if !(decay >= 0 && decay < 1) {
		return nil, fmt.Errorf("new moving average: decay %g is not in [0, 1)", decay)
	}
	return &EMA{decay: decay, warmup: warmup, avg: avg}, nil
}

// Update moves the average towards params; the first call copies them. It
// panics if the lengths differ.
func (e *EMA) Update(params []float32) {
	d := e.decay
	if e.warmup {
		d = min(d, float64(1+e.t)/float64(10+e.t))
	}
	tau := float32(1 - d)
	if e.t == 0 {
		tau = 1
	}
	if len(params) != len(e.avg) {
		panic(fmt.Sprintf("optim.EMA.Update: %d parameters, want %d", len(params), len(e.avg)))
	}
	Polyak(e.avg, params, tau)
	e.t++
}

// Average returns the average itself, which the next Update changes.
func (e *EMA) Average() []float32 { return e.avg }

// Swap exchanges params and the average element by element, so that the network
// evaluates with averaged weights; a second Swap restores both exactly.
func (e *EMA) Swap(params []float32) {
	if len(params) != len(e.avg) {
		panic(fmt.Sprintf("optim.EMA.Swap: %d parameters, want %d", len(params), len(e.avg)))
	}
	for i, p := range params {
		params[i], e.avg[i] = e.avg[i], p
	}
}

// State returns the average (a view) and the update counter, from which
// SetState resumes exactly.
func (e *EMA) State() map[string][]float32 {
	return map[string][]float32{stepKey: encodeCount(e.t), "average": e.avg}
}

// SetState copies in what State returned. On an error nothing has changed.
func (e *EMA) SetState(state map[string][]float32) error {
	t, err := decodeCount(state[stepKey])
	if err != nil {
		return fmt.Errorf("set moving average: %q: %w", stepKey, err)
	}
	if len(state["average"]) != len(e.avg) {
		return fmt.Errorf("set moving average: %d elements, want %d", len(state["average"]), len(e.avg))
	}
	if len(state) != 2 {
		return fmt.Errorf("set moving average: %d entries, want %q and %q", len(state), stepKey, "average")
	}
	e.t = t
	copy(e.avg, state["average"])
	return nil
}
