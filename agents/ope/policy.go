package ope

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/agents/rlmath"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Policy is what a policy does at all observations of data.
type Policy struct {
	f *network.Frame
	// bounds are those of a box's components.
	bounds []envs.Range
	// logProbs are those of discrete actions, [rows, envs.MaskLen].
	logProbs []float32
	// actions are the best ones in a box, in the environment's units, [rows, Dims]; mean and logStd
	// the same of a Gaussian, nil where the best action is always taken.
	actions, mean, logStd []float32
	// squashed says that tanh of what the Gaussian gives is an action between the bounds.
	squashed bool
}

// Actors makes actors of one policy: an agents.Agent, or a model that was exported from one.
type Actors interface {
	NewActor(m agents.Mode, n int) (agents.Actor, error)
}

// Ask asks a policy about all observations of data. With stochastic it draws from its distribution,
// and else it takes its best actions.
func Ask(ctx context.Context, a Actors, c engine.Compiler, d *Data, stochastic bool) (_ *Policy, err error) {
	p, err := newPolicy(d.Spec)
	if err != nil {
		return nil, err
	}
	s, err := open(a, c, p.f)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	frame, err := vector.NewFrame(d.Spec, askRows, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, frame.Close()) }()
	b := frame.Batch()
	for at := 0; at < d.rows(); at += askRows {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		n := min(askRows, d.rows()-at)
		for i := range askRows {
			// Rows that are left over need an observation.
			d.obs.Put(b, i, at+min(i, n-1))
		}
		decided, err := s.Act(ctx, rng.Key{}, b)
		if err == nil && stochastic && !p.draws(decided) {
			return nil, fmt.Errorf("policy: it gives no distribution to draw from: it has no output %s, and not both of %s and %s; its best actions can be evaluated (eval.deterministic: true)", agents.LogProbsOutput, agents.MeanOutput, agents.LogStdOutput)
		}
		if err == nil {
			err = p.take(decided, n, stochastic)
		}
		if err != nil {
			return nil, fmt.Errorf("policy: observations %d to %d: %w", at, at+n-1, err)
		}
	}
	if p.mean != nil {
		return p, p.tellSquashed()
	}
	return p, nil
}

func newPolicy(spec envs.Spec) (*Policy, error) {
	f, err := network.NewFrame(spec)
	if err != nil {
		return nil, err
	}
	p := &Policy{f: f}
	for i := range f.Dims {
		p.bounds = append(p.bounds, spec.Action.(envs.Box).Bounds(i))
	}
	return p, nil
}

// draws reports whether a decision says what it is drawn from.
func (p *Policy) draws(d *vector.Decision) bool {
	if p.f.Continuous() {
		return d.Mean != nil && d.LogStd != nil
	}
	return d.Logits != nil
}

// take keeps what a policy gave for n observations.
func (p *Policy) take(d *vector.Decision, n int, stochastic bool) error {
	keep := func(to, x []float32, name string) ([]float32, error) {
		x = x[:len(x)/askRows*n]
		for i, v := range x {
			if v != v {
				return nil, fmt.Errorf("output %q is NaN at element %d", name, i)
			}
		}
		return append(to, x...), nil
	}
	var err error
	switch {
	case p.f.Continuous():
		for i := range n * p.f.Dims {
			x := float32(element(d.Actions, i))
			if x != x {
				return fmt.Errorf("component %d of an action is NaN", i%p.f.Dims)
			}
			p.actions = append(p.actions, x)
		}
		if stochastic {
			if p.mean, err = keep(p.mean, d.Mean, agents.MeanOutput); err == nil {
				p.logStd, err = keep(p.logStd, d.LogStd, agents.LogStdOutput)
			}
		}
	case stochastic:
		p.logProbs, err = keep(p.logProbs, d.Logits.Float32s(), agents.LogProbsOutput)
	default:
		for i := range n {
			for h, k := range p.f.Heads {
				chosen := int(element(d.Actions, i*len(p.f.Heads)+h))
				for choice := range k {
					if choice == chosen {
						p.logProbs = append(p.logProbs, 0)
					} else {
						p.logProbs = append(p.logProbs, rlmath.Excluded)
					}
				}
			}
		}
	}
	return err
}

// element is element i of any type that actions have.
func element(t *tensor.Tensor, i int) float64 {
	switch t.DType() {
	case tensor.Float32:
		return float64(t.Float32s()[i])
	case tensor.Float64:
		return t.Float64s()[i]
	case tensor.Int64:
		return float64(t.Int64s()[i])
	}
	// bool or uint8.
	return float64(t.Bytes()[i])
}

// near is how far rounding may part a best action from what it is made of, as a part of its size.
const near = 1e-4

// tellSquashed finds out by the best actions what a Gaussian's means are.
func (p *Policy) tellSquashed() error {
	cut, squashed := 0.0, 0.0
	for i, x := range p.actions {
		r, m := p.bounds[i%p.f.Dims], float64(p.mean[i])
		size := 1 + math.Abs(m)
		cut = max(cut, math.Abs(float64(x)-min(max(m, r.Low), r.High))/size)
		half := (r.High - r.Low) / 2
		squashed = max(squashed, math.Abs(float64(x)-(r.High+r.Low)/2-half*math.Tanh(m))/(1+half))
	}
	// Unbounded components make squashed infinite, or NaN.
	squashes := squashed <= near
	switch {
	case cut <= near && squashes && max(cut, squashed) < near/10:
		return fmt.Errorf("policy: outputs %s and %s: all best actions are as near to their means cut off at the bounds as to tanh of them, and the density is not the same", agents.MeanOutput, agents.ActionOutput)
	case cut > near && !squashes:
		return fmt.Errorf("policy: output %s: the best actions are neither its means cut off at the bounds nor tanh of them between the bounds; what the policy draws is not known", agents.MeanOutput)
	}
	p.squashed = squashes && !(cut <= squashed)
	return nil
}

// drawn reports whether actions are drawn from a distribution whose probabilities are known.
func (p *Policy) drawn() bool { return p.logProbs != nil || p.mean != nil }

// logProb is the logarithm of the policy's probability of the recorded action of a row, or of its
// density in the environment's units.
func (p *Policy) logProb(d *Data, row int, room *tensor.Tensor) float64 {
	copy(room.Bytes(), d.actions[row*d.size:(row+1)*d.size])
	if !p.f.Continuous() {
		n := p.f.MaskLen()
		table, sum := p.logProbs[row*n:(row+1)*n], 0.0
		for h, k := range p.f.Heads {
			x := table[int(element(room, h))]
			if x <= rlmath.Excluded/2 {
				return math.Inf(-1)
			}
			sum, table = sum+float64(x), table[k:]
		}
		return sum
	}
	k, sum := p.f.Dims, 0.0
	for i, r := range p.bounds {
		x, m, s := element(room, i), float64(p.mean[row*k+i]), float64(p.logStd[row*k+i])
		if p.squashed {
			half := (r.High - r.Low) / 2
			// An action at a bound has no finite cause; float32 tells none nearer than this.
			u := math.Atanh(min(max((x-(r.High+r.Low)/2)/half, -1+edge), 1-edge))
			sum -= math.Log(half) + rlmath.TanhLogDet([]float64{u})
			x = u
		}
		sum += rlmath.GaussianLogProb([]float64{x}, []float64{m}, []float64{s})
	}
	return sum
}

// edge is half of the distance between 1 and the float32 before it.
const edge = 0x1p-25

// ratios fills in the logarithms of the ratios of probabilities.
func (p *Policy) ratios(d *Data, list []Trajectory) {
	room := tensor.New(d.Spec.Action.DType(), d.Spec.Action.Shape()...)
	for i := range list {
		x := &list[i]
		x.LogRatio = make([]float64, len(x.Reward))
		for t := range x.LogRatio {
			row := d.starts[i] + t
			x.LogRatio[t] = p.logProb(d, row, room) - d.logProb[row]
		}
	}
}

// width is the number of features of an action.
func (p *Policy) width() int {
	if p.f.Continuous() {
		return p.f.Dims
	}
	return p.f.MaskLen()
}

// recorded writes the features of the recorded action of a row.
func (p *Policy) recorded(d *Data, row int, room *tensor.Tensor, to []float32) {
	copy(room.Bytes(), d.actions[row*d.size:(row+1)*d.size])
	if p.f.Continuous() {
		for i := range to {
			to[i] = p.feature(i, element(room, i))
		}
		return
	}
	clear(to)
	for h, k := range p.f.Heads {
		to[int(element(room, h))] = 1
		to = to[k:]
	}
}

// draw writes the features of an action of the policy at a row.
func (p *Policy) draw(s *rng.Stream, row int, to []float32) {
	if !p.f.Continuous() {
		n := p.f.MaskLen()
		table := p.logProbs[row*n : (row+1)*n]
		clear(to)
		for _, k := range p.f.Heads {
			to[s.Categorical(table[:k])] = 1
			to, table = to[k:], table[k:]
		}
		return
	}
	for i, r := range p.bounds {
		at := row*p.f.Dims + i
		x := float64(p.actions[at])
		if p.mean != nil {
			x = float64(p.mean[at]) + s.Normal()*math.Exp(float64(p.logStd[at]))
			if p.squashed {
				x = (r.High+r.Low)/2 + (r.High-r.Low)/2*math.Tanh(x)
			}
			x = min(max(x, r.Low), r.High)
		}
		to[i] = p.feature(i, x)
	}
}

// feature is component i of an action as q reads it.
func (p *Policy) feature(i int, x float64) float32 {
	if r := p.bounds[i]; r.Low < r.High && r.High-r.Low < math.MaxFloat32 {
		return float32((x - (r.High+r.Low)/2) / ((r.High - r.Low) / 2))
	}
	return float32(x)
}
