package replay

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Rounds implements Buffer.
func (u *Uniform) Rounds() int64 { return u.rounds }

// Begin implements agents.Recorder. What an environment shows that does not follow from what it
// showed before, because it was reset in the middle of an episode, begins a new stream of
// transitions; the episode counts as cut off.
func (u *Uniform) Begin(b *vector.Batch, d *vector.Decision) error {
	a, err := u.decided(b, d, u.open, u.c.Envs, u.c.Action)
	if err != nil {
		return err
	}
	u.took.take(b)
	for e := range u.streams {
		if !u.took.has(e) {
			continue
		}
		switch {
		case u.streams[e].n == 0:
			u.show(e, b)
		case u.took != nil && !u.leads(e):
			// The row has waited for its agent, which may have come back.
			u.putObs(u.newest(e), e, b.Obs, b.Rows)
			u.putMask(u.newest(e), e, b.Mask)
		case !u.shows(u.newest(e), e, b.Obs, b.Rows):
			u.finals.set(u.newest(e))
			u.show(e, b)
		}
		u.putDecision(u.newest(e), e, d, a)
	}
	u.open = true
	return nil
}

// leads reports whether a transition leads to the newest row of environment e.
func (u *Uniform) leads(e int) bool {
	n := u.streams[e].n
	return n > 1 && !u.finals.has(u.at1(e, n-2))
}

// attendance says which rows were present when a round began, and so take a step; nil where all
// rows are present at all times.
type attendance []bool

func (a *attendance) take(b *vector.Batch) {
	if b.Present == nil {
		*a = nil
		return
	}
	*a = append((*a)[:0], b.Present...)
}

func (a attendance) has(e int) bool { return a == nil || a[e] }

// count returns how many of n rows are present.
func (a attendance) count(n int) int {
	for _, here := range a {
		if !here {
			n--
		}
	}
	return n
}

// decided checks what begins a round of n environments, unless one is open, and returns the actions
// to be recorded.
func (r *rows) decided(b *vector.Batch, d *vector.Decision, open bool, n int, action func(*vector.Decision) *tensor.Tensor) (*tensor.Tensor, error) {
	a := d.Actions
	if action != nil {
		a = action(d)
	}
	var err error
	switch {
	case open:
		err = errors.New("begun twice without an end")
	case len(b.Type) != n || b.Present != nil && len(b.Present) != n:
		err = fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), n)
	default:
		if err = r.takes(d, a, n); err == nil {
			err = r.has(b, n)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("replay: record: %w", err)
	}
	return a, nil
}

// show adds a row with what environment e shows.
func (u *Uniform) show(e int, b *vector.Batch) {
	i := u.add(e)
	u.putObs(i, e, b.Obs, b.Rows)
	u.putMask(i, e, b.Mask)
}

// End implements agents.Recorder.
func (u *Uniform) End(b *vector.Batch) error {
	if !u.open {
		return errEnd
	}
	for e, t := range b.Type {
		if !u.took.has(e) {
			continue
		}
		u.finish(e, b)
		if t == envs.Last {
			i := u.add(e)
			u.putObs(i, e, b.Final, b.FinalRows)
			u.putMask(i, e, b.FinalMask)
			u.finals.set(i)
		}
		u.show(e, b)
	}
	u.rounds++
	u.open = false
	return nil
}

var errEnd = errors.New("replay: record: ended without a beginning")
