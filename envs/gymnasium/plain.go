package gymnasium

import (
	"fmt"
	"time"
)

// PlainLoop returns the time that a plain loop in Python over the environments of worker w takes
// per step of them all, measured in that worker: what stepping costs at least. The loop takes
// random actions and resets without seeds. The vector must have been reset, and needs a Reset
// afterwards.
func (v *Vector) PlainLoop(w, steps int) (time.Duration, error) {
	if v.workers[w] == nil {
		return 0, fmt.Errorf("plain loop over %s: the worker is not running", v.spec.Name)
	}
	v.running = false
	var seconds float64
	if err := v.workers[w].call(v.f.c.StartTimeout, "time", map[string]any{"steps": steps, "seed": 1}, &seconds); err != nil {
		return 0, fmt.Errorf("plain loop over %s: %w", v.spec.Name, err)
	}
	return time.Duration(seconds * 1e9 / float64(steps)), nil
}
