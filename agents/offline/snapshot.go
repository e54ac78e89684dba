package offline

import (
	"context"
	"fmt"
	"iter"
	"math"

	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ImportReplay writes what a checkpoint has of a replay, whose scope r is, as a data set in a
// folder that must not exist. m is that of the environments of the spec, with one behaviour: what
// acted. Policies of a shared replay become behaviours of their own.
//
// A replay keeps transitions and not episodes: one that was recorded before another part was
// overwritten, or that was still going on, begins later or is cut off where it is, and of a shared
// replay each chunk ends one. Rewards and log-probabilities have the precision of float32.
func ImportReplay(ctx context.Context, r *checkpoint.Reader, spec envs.Spec, m Manifest, to string, told func(episodes, of int64)) (*Manifest, error) {
	s, err := replay.OpenSnapshot(r, spec)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := m.Fits(spec); err != nil {
		return nil, err
	}
	space, err := actionsOf(s.Layout, spec.Action)
	if err != nil {
		return nil, err
	}
	if s.Layout.Costs != len(m.Costs) {
		return nil, fmt.Errorf("its steps have %d costs, and those of %s %d", s.Layout.Costs, spec.Name, len(m.Costs))
	}
	policies, acted := s.Policies(), m.Behaviours[0]
	m.Behaviours = nil
	for _, p := range policies {
		b := acted
		if len(policies) > 1 {
			b.Policy = fmt.Sprintf("policy %d of %s", p, b.Policy)
		}
		m.Behaviours = append(m.Behaviours, b)
	}
	return importing(to, m, func(w *Writer) error {
		for i, p := range policies {
			next, stop := iter.Pull(s.Stretches(p))
			err := w.fill(ctx, i, func() (*Episode, error) {
				x, ok := next()
				if !ok {
					return nil, nil
				}
				return episodeOf(x, space), nil
			}, func(n int64) {
				if told != nil {
					told(n, 0)
				}
			})
			stop()
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// actions is how a replay has actions: as elements of the environment's space, or of a box as
// float32 in [−1, 1], whose bounds are then not nil.
type actions struct {
	of     tensor.DType
	bounds []envs.Range
}

// actionsOf says how a layout has actions of a space.
func actionsOf(l replay.Layout, s envs.Space) (actions, error) {
	size := func(shape []int) int {
		n := 1
		for _, d := range shape {
			n *= d
		}
		return n
	}
	n := size(s.Shape())
	if size(l.Action.Shape) != n {
		return actions{}, fmt.Errorf("its actions are %v%v, and those of the environment %v", l.Action.DType, l.Action.Shape, s)
	}
	box, ok := s.(envs.Box)
	switch {
	case ok && l.Action.DType == tensor.Float32 && box.Bounded() && box.Of.IsFloat():
		a := actions{of: box.Of}
		for i := range n {
			a.bounds = append(a.bounds, box.Bounds(i))
		}
		return a, nil
	case !ok && l.Action.DType == s.DType():
		return actions{of: s.DType()}, nil
	}
	return actions{}, fmt.Errorf("its actions are %v%v, and those of the environment %v: they cannot be told from each other", l.Action.DType, l.Action.Shape, s)
}

// decode returns the actions in the environment's space.
func (a actions) decode(b []byte) []byte {
	if a.bounds == nil {
		return b
	}
	n := len(b) / 4
	x := tensor.New(tensor.Float32, n)
	copy(x.Bytes(), b)
	y := tensor.New(a.of, n)
	for i, v := range x.Float32s() {
		z := a.bounds[i%len(a.bounds)].At(float64(v))
		if a.of == tensor.Float64 {
			y.Float64s()[i] = z
		} else {
			y.Float32s()[i] = float32(z)
		}
	}
	return y.Bytes()
}

// episodeOf is a stretch as an episode.
func episodeOf(x *replay.Stretch, a actions) *Episode {
	e := &Episode{Obs: x.Obs, Rows: x.Rows, Mask: x.Mask, Action: a.decode(x.Action)}
	scale := 0.0
	for _, r := range a.bounds {
		scale += math.Log((r.High - r.Low) / 2)
	}
	for i, r := range x.Reward {
		e.Reward, e.Discount = append(e.Reward, float64(r)), append(e.Discount, float64(x.Discount[i]))
		p := math.NaN()
		if x.LogProb != nil {
			p = float64(x.LogProb[i]) - scale
		}
		e.LogProb = append(e.LogProb, p)
	}
	for _, c := range x.Cost {
		e.Cost = append(e.Cost, float64(c))
	}
	e.Terminated = x.Ended && x.Discount[len(x.Discount)-1] == 0
	e.Truncated = !e.Terminated
	return e
}
