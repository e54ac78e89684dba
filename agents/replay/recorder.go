package replay

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Recorder fills a replay from batches of environments. What an environment shows that does not
// follow from what it showed before, because it was reset in the middle of an episode, begins a new
// stream of transitions; the episode counts as cut off.
type Recorder struct {
	b      Buffer
	u      *Uniform
	action func(*agents.Decision) *tensor.Tensor
	rounds int64
	open   bool
}

var (
	_ agents.Recorder   = (*Recorder)(nil)
	_ checkpoint.Stater = (*Recorder)(nil)
)

// NewRecorder returns a recorder that fills b. action returns what is recorded of a decision as its
// action, [B, …] in the form of the layout's column; nil records Decision.Actions.
func NewRecorder(b Buffer, action func(*agents.Decision) *tensor.Tensor) *Recorder {
	if action == nil {
		action = func(d *agents.Decision) *tensor.Tensor { return d.Actions }
	}
	return &Recorder{b: b, u: b.ring(), action: action}
}

// Rounds returns the number of rounds that were recorded since the beginning of the run, env steps
// of all environments together being Envs times as many.
func (r *Recorder) Rounds() int64 { return r.rounds }

// Begin implements agents.Recorder.
func (r *Recorder) Begin(b *vector.Batch, d *agents.Decision) error {
	u, n := r.u, r.u.c.Envs
	a := r.action(d)
	switch {
	case r.open:
		return errors.New("replay: record: begun twice without an end")
	case len(b.Type) != n:
		return fmt.Errorf("replay: record: a batch of %d environments, expected %d", len(b.Type), n)
	case a == nil || a.DType() != u.rows.action.col.DType || len(a.Bytes()) != n*u.rows.action.size:
		return fmt.Errorf("replay: record: actions %v, expected %v[%d %v]", a, u.rows.action.col.DType, n, u.rows.action.col.Shape)
	case u.logProb.size > 0 && len(d.LogProb) != n:
		return fmt.Errorf("replay: record: %d log-probabilities of %d actions; they are to be recorded", len(d.LogProb), n)
	}
	if err := u.has(b, n); err != nil {
		return fmt.Errorf("replay: record: %w", err)
	}
	p := u.rows.action
	for e := range n {
		switch {
		case u.streams[e].n == 0:
			r.show(e, b)
		case !u.shows(u.newest(e), e, b.Obs, b.Rows):
			u.finals.set(u.newest(e))
			r.show(e, b)
		}
		i := u.newest(e)
		copy(u.row(i)[p.off:p.off+p.size], a.Bytes()[e*p.size:])
		if u.logProb.size > 0 {
			u.setFloat(i, u.logProb, d.LogProb[e])
		}
	}
	r.open = true
	return nil
}

// show adds a row with what environment e shows.
func (r *Recorder) show(e int, b *vector.Batch) {
	i := r.u.add(e)
	r.u.putObs(i, e, b.Obs, b.Rows)
	r.u.putMask(i, e, b.Mask)
}

// End implements agents.Recorder.
func (r *Recorder) End(b *vector.Batch) error {
	if !r.open {
		return errors.New("replay: record: ended without a beginning")
	}
	u := r.u
	for e, t := range b.Type {
		u.finish(e, b.Reward[e], b.Discount[e])
		if t == envs.Last {
			i := u.add(e)
			u.putObs(i, e, b.Final, b.FinalRows)
			u.putMask(i, e, b.FinalMask)
			u.finals.set(i)
		}
		r.show(e, b)
	}
	r.rounds++
	r.open = false
	return nil
}
