package offline

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// behaviour takes the actions of a policy, and others in their place as a [Behaviour] says. It
// knows the probabilities of what it takes where they can be known: not of a point of a box that is
// always taken, not with noise, which is cut off at the bounds, and not of actions in a box some of
// which are random.
type behaviour struct {
	c     Behaviour
	actor agents.Actor
	space envs.Space
	// bounds are those of a box, and volume the logarithm of its volume.
	bounds []envs.Range
	volume float64
	// random says of each row that all actions of its present episode are.
	random []bool
	row    *tensor.Tensor

	actions *tensor.Tensor
	logProb []float64
}

func newBehaviour(c Behaviour, a agents.Actor, spec envs.Spec, n int) (*behaviour, error) {
	b := &behaviour{c: c, actor: a, space: spec.Action, random: make([]bool, n), logProb: make([]float64, n)}
	box, ok := spec.Action.(envs.Box)
	if c.Noise > 0 && (!ok || !box.Bounded() || !box.Of.IsFloat()) {
		return nil, fmt.Errorf("noise is for actions in a box of finite bounds, of float32 or float64; those of %s are %v", spec.Name, spec.Action)
	}
	if ok {
		b.volume = math.NaN()
		size := 1
		for _, d := range box.Dims {
			size *= d
		}
		for i := range size {
			b.bounds = append(b.bounds, box.Bounds(i))
		}
		if box.Bounded() && box.Of.IsFloat() {
			b.volume = 0
			for _, r := range b.bounds {
				b.volume += math.Log(r.High - r.Low)
			}
		}
	}
	b.actions = tensor.New(spec.Action.DType(), append([]int{n}, spec.Action.Shape()...)...)
	b.row = tensor.New(spec.Action.DType(), spec.Action.Shape()...)
	return b, nil
}

// act chooses the actions of a round.
func (b *behaviour) act(ctx context.Context, key rng.Key, x *vector.Batch) error {
	all := true
	for _, r := range b.random {
		all = all && r
	}
	var d *vector.Decision
	if !all {
		if b.actor == nil {
			return errors.New("there is no policy, and not all actions are random")
		}
		var err error
		if d, err = b.actor.Act(ctx, key.Split("policy"), x); err != nil {
			return err
		}
		if err := b.actions.CopyFrom(d.Actions); err != nil {
			return err
		}
	}
	s := key.Split("behaviour").Stream()
	for e := range b.random {
		switch {
		case !present(x, e):
		case b.random[e]:
			b.draw(s, e, x)
			b.logProb[e] = b.uniform(e, x)
		case b.c.RandomActions > 0 && s.Bernoulli(b.c.RandomActions):
			b.draw(s, e, x)
			b.logProb[e] = b.mixed(d, e, x)
		default:
			if b.c.Noise > 0 {
				b.disturb(s, e)
			}
			b.logProb[e] = b.mixed(d, e, x)
		}
	}
	return nil
}

// draw takes a valid action of row e uniformly.
func (b *behaviour) draw(s *rng.Stream, e int, x *vector.Batch) {
	b.space.Sample(s, maskOf(x, e), b.row)
	copy(b.rowOf(e), b.row.Bytes())
}

// rowOf are the bytes of the action of row e.
func (b *behaviour) rowOf(e int) []byte {
	size := len(b.row.Bytes())
	return b.actions.Bytes()[e*size : (e+1)*size]
}

// maskOf is the mask of row e; nil without.
func maskOf(x *vector.Batch, e int) []bool {
	if x.Mask == nil {
		return nil
	}
	n := x.Mask.Shape()[1]
	return x.Mask.Bools()[e*n : (e+1)*n]
}

// disturb adds noise to the action of row e, as to one in [−1, 1], and cuts it off at the bounds.
func (b *behaviour) disturb(s *rng.Stream, e int) {
	n := len(b.bounds)
	for k, r := range b.bounds {
		shift := b.c.Noise * s.Normal() * (r.High - r.Low) / 2
		if b.actions.DType() == tensor.Float64 {
			p := &b.actions.Float64s()[e*n+k]
			*p = min(max(*p+shift, r.Low), r.High)
		} else {
			p := &b.actions.Float32s()[e*n+k]
			*p = float32(min(max(float64(*p)+shift, r.Low), r.High))
		}
	}
}

// uniform is the log-probability of each valid action of row e, where all are drawn alike.
func (b *behaviour) uniform(e int, x *vector.Batch) float64 {
	if b.bounds != nil {
		return -b.volume
	}
	mask, sum, at := maskOf(x, e), 0.0, 0
	for _, n := range envs.Heads(b.space) {
		valid := n
		if mask != nil {
			valid = 0
			for _, ok := range mask[at : at+n] {
				if ok {
					valid++
				}
			}
		}
		sum -= math.Log(float64(valid))
		at += n
	}
	return sum
}

// mixed is the log-probability of the action that is taken in row e, where the policy's are taken
// but for random ones.
func (b *behaviour) mixed(d *vector.Decision, e int, x *vector.Batch) float64 {
	if b.bounds != nil {
		if b.c.Noise > 0 || b.c.RandomActions > 0 || !b.c.Stochastic || d.LogProb == nil {
			return math.NaN()
		}
		return b.density(d, e)
	}
	own := b.chosen(d, e)
	if eps := b.c.RandomActions; eps > 0 {
		return math.Log((1-eps)*math.Exp(own) + eps*math.Exp(b.uniform(e, x)))
	}
	return own
}

// chosen is the log-probability of the discrete action that is taken in row e by the policy: that
// of the table of its logits, and where there is none that of what it took.
func (b *behaviour) chosen(d *vector.Decision, e int) float64 {
	size := len(b.row.Bytes())
	took, chose := b.rowOf(e), d.Actions.Bytes()[e*size:(e+1)*size]
	switch {
	case !b.c.Stochastic && string(took) == string(chose):
		return 0
	case !b.c.Stochastic:
		return math.Inf(-1)
	case d.Logits != nil:
		n := d.Logits.Shape()[1]
		row, sum, at := d.Logits.Float32s()[e*n:(e+1)*n], 0.0, 0
		for k, choices := range envs.Heads(b.space) {
			sum += float64(row[at+int(choice(b.space, took, k))])
			at += choices
		}
		return sum
	case d.LogProb != nil && string(took) == string(chose):
		return float64(d.LogProb[e])
	}
	return math.NaN()
}

// density is the logarithm of the policy's density at the action of row e in the environment's
// units. What was drawn may be the action itself, or the action in [−1, 1]; of one that was cut off
// at the bounds it is not known.
func (b *behaviour) density(d *vector.Decision, e int) float64 {
	if d.Drawn == nil {
		return float64(d.LogProb[e])
	}
	n, same, scaled, scale := len(b.bounds), true, true, 0.0
	for k, r := range b.bounds {
		drawn, taken := float64(d.Drawn.Float32s()[e*n+k]), 0.0
		if b.actions.DType() == tensor.Float64 {
			taken = b.actions.Float64s()[e*n+k]
		} else {
			taken = float64(b.actions.Float32s()[e*n+k])
		}
		near := func(y float64) bool { return math.Abs(taken-y) <= 1e-6*(1+math.Abs(y)) }
		same = same && near(drawn)
		scaled = scaled && near((r.High+r.Low)/2+(r.High-r.Low)/2*drawn)
		scale += math.Log((r.High - r.Low) / 2)
	}
	switch {
	case same:
		return float64(d.LogProb[e])
	case scaled:
		return float64(d.LogProb[e]) - scale
	}
	return math.NaN()
}
