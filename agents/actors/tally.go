package actors

import (
	"bytes"
	"log/slog"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Tally is what some rounds have led to, for the statistics of a run.
type Tally struct {
	// Rewards are those of all rows, as the environments gave them, one round after the other;
	// Steps is the number of those that are of an env step, and not of a row that was absent.
	Rewards []float64
	Steps   int64
	// MaskedOut of Masked entries of masks were invalid actions.
	MaskedOut, Masked int64
	// Ended are the episodes that ended, in their order; Costs has the sums of their costs, one
	// after the other.
	Ended []Ended
	Costs []float64
}

// Ended is an episode that has ended.
type Ended struct {
	Return, Length float64
	// Success is the last value of is_success, where the environments say so.
	Success float64
}

// Clear forgets everything, and keeps the memory.
func (t *Tally) Clear() {
	t.Rewards, t.Ended, t.Costs = t.Rewards[:0], t.Ended[:0], t.Costs[:0]
	t.Steps, t.MaskedOut, t.Masked = 0, 0, 0
}

// successInfo is the diagnostic of Gymnasium's robotics environments whose value in an episode's
// last step says whether it was a success.
const successInfo = "is_success"

// Counter takes note of the rounds of a vector of environments. It is not safe for concurrent use.
type Counter struct {
	// Costs are sums over the episodes that go on.
	Costs *vector.CostSum
	// success is the position of the diagnostic that says whether an episode was a success, or -1.
	success int
	// bounds looks for observations outside of their bounds.
	bounds bounds
	log    *slog.Logger
}

// NewCounter returns one for n environments of a spec, whose episodes begin. It logs observations
// outside of their bounds, once for each field.
func NewCounter(spec envs.Spec, n int, log *slog.Logger) *Counter {
	return &Counter{Costs: vector.NewCostSum(spec, n), success: spec.InfoIndex(successInfo), bounds: boundsOf(&spec), log: log}
}

// Successes reports whether environments of a spec say which episodes were successes.
func Successes(spec *envs.Spec) bool { return spec.InfoIndex(successInfo) >= 0 }

// Add adds a round to a tally: b is what the agent was shown, raw what the environments show, which
// may be the same.
func (c *Counter) Add(to *Tally, b, raw *vector.Batch) {
	to.Rewards = append(to.Rewards, b.Earned()...)
	to.Steps += int64(len(b.Type))
	if b.Present != nil {
		// Rows that took no step have earned nothing.
		for _, k := range b.Type {
			if k == envs.First {
				to.Steps--
			}
		}
	}
	to.countMasks(b)
	c.Costs.Add(b)
	for _, e := range b.Ended {
		x := Ended{Return: e.Return, Length: float64(e.Length)}
		if c.success >= 0 {
			x.Success = b.Info[e.Env][c.success]
		}
		to.Ended, to.Costs = append(to.Ended, x), append(to.Costs, c.Costs.Episode(e.Env)...)
	}
	c.bounds.check(raw, c.log)
}

// countMasks takes note of which actions the masks forbid next, in rows that are there.
func (t *Tally) countMasks(b *vector.Batch) {
	if b.Mask == nil {
		return
	}
	mask := b.Mask.Bytes()
	if b.Present == nil {
		t.MaskedOut += int64(bytes.Count(mask, []byte{0}))
		t.Masked += int64(len(mask))
		return
	}
	n := len(mask) / len(b.Present)
	for i, present := range b.Present {
		if present {
			t.MaskedOut += int64(bytes.Count(mask[i*n:(i+1)*n], []byte{0}))
			t.Masked += int64(n)
		}
	}
}
