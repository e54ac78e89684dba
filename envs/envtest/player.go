package envtest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// player plays episodes one after the other, as a loop around an environment does.
type player struct {
	s        *suite
	env      envs.Env
	key      rng.Key
	choices  *rng.Stream
	ts, idle *envs.TimeStep
	own      []*tensor.Tensor
	action   *tensor.Tensor
	ended    bool
	unmasked bool
	// script has the bytes of actions to take instead of drawing them.
	script         [][]byte
	steps, episode int
	length         int
}

func (s *suite) player(e envs.Env, key rng.Key) *player {
	p := &player{
		s: s, env: e, key: key, choices: s.o.Key.Split("actions").Stream(), ended: true,
		ts: envs.NewTimeStep(s.spec), idle: envs.NewTimeStep(s.spec), action: tensor.New(s.spec.Action.DType(), s.spec.Action.Shape()...),
	}
	p.own = append(p.own, p.ts.Obs...)
	return p
}

// next takes one step: Reset where an episode has ended, Step everywhere else.
func (p *player) next() error {
	p.steps++
	p.s.report.Steps++
	if p.ended {
		p.ended, p.length = false, 0
		p.episode++
		if err := p.env.Reset(p.key.Split("episode", p.episode), p.ts); err != nil {
			return fmt.Errorf("after %d steps: Reset: %w", p.steps, err)
		}
		return nil
	}
	p.choose()
	p.length++
	if err := p.env.Step(p.action, p.ts); err != nil {
		return fmt.Errorf("after %d steps: Step: %w", p.steps, err)
	}
	p.ended = p.ts.Type == envs.Last
	return nil
}

// choose sets the action for the step that is the steps-th.
func (p *player) choose() {
	if p.script != nil {
		copy(p.action.Bytes(), p.script[p.steps-1])
		return
	}
	p.draw()
}

func (p *player) draw() {
	switch {
	case p.s.o.Policy != nil && !p.unmasked:
		p.s.o.Policy(p.choices, p.ts, p.action)
	case p.ts.Mask != nil && !p.unmasked:
		p.s.spec.Action.Sample(p.choices, p.ts.Mask.Bools(), p.action)
	default:
		p.s.spec.Action.Sample(p.choices, nil, p.action)
	}
}

// swap chooses the next action, while what the environment wrote last is still there to be seen,
// and then gives it the other TimeStep to write, full of garbage.
func (p *player) swap() {
	if p.script == nil {
		p.script = make([][]byte, p.s.o.Steps)
	}
	if !p.ended {
		p.draw()
	}
	p.script[p.steps] = bytes.Clone(p.action.Bytes())
	p.ts, p.idle = p.idle, p.ts
	p.garble()
}

// garble fills the TimeStep with garbage.
func (p *player) garble() {
	for i, o := range p.ts.Obs {
		p.ts.Rows[i] = -1
		if p.s.spec.Observation[i].Window != nil {
			p.ts.Obs[i] = nil
		} else {
			fill(o.Bytes(), 0x5a)
		}
	}
	garble(p.ts)
}

// garble fills everything but the observation with garbage.
func garble(ts *envs.TimeStep) {
	if ts.Mask != nil {
		fill(ts.Mask.Bytes(), 0)
	}
	for i := range ts.Costs {
		ts.Costs[i] = math.NaN()
	}
	for i := range ts.Info {
		ts.Info[i] = math.NaN()
	}
	ts.Type, ts.Reward, ts.Discount = 77, math.NaN(), math.NaN()
}

func fill(b []byte, v byte) {
	for i := range b {
		b[i] = v
	}
}

// trace is what a pass looked like: a digest of each step, and the actions taken.
type trace struct {
	digests []uint64
	actions [][]byte
}

// differs returns the first step at which two traces differ, or -1.
func (t trace) differs(o trace) int {
	if len(t.digests) != len(o.digests) {
		return min(len(t.digests), len(o.digests))
	}
	for i, d := range t.digests {
		if d != o.digests[i] {
			return i
		}
	}
	return -1
}

// trace plays one pass in a new environment.
func (s *suite) trace(key rng.Key, before func(*player)) (trace, error) {
	e, err := s.open()
	if err != nil {
		return trace{}, err
	}
	defer e.Close()
	return s.player(e, key).play(s.o.Steps, before)
}

// play takes n steps, calling before (unless nil) before each.
func (p *player) play(n int, before func(*player)) (trace, error) {
	var t trace
	for range n {
		if before != nil {
			before(p)
		}
		if err := p.next(); err != nil {
			return t, err
		}
		t.digests = append(t.digests, p.s.digest(p.ts))
		t.actions = append(t.actions, bytes.Clone(p.action.Bytes()))
	}
	return t, nil
}

// digest hashes everything in a TimeStep; of windows, which are constant, the number of the row.
func (s *suite) digest(ts *envs.TimeStep) uint64 {
	h := fnv.New64a()
	word := func(x uint64) {
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], x)
		h.Write(b[:])
	}
	word(uint64(ts.Type))
	word(math.Float64bits(ts.Reward))
	word(math.Float64bits(ts.Discount))
	for i, o := range ts.Obs {
		if s.spec.Observation[i].Window != nil {
			word(uint64(ts.Rows[i]))
		} else {
			h.Write(o.Bytes())
		}
	}
	if ts.Mask != nil {
		h.Write(ts.Mask.Bytes())
	}
	for _, v := range ts.Costs {
		word(math.Float64bits(v))
	}
	for _, v := range ts.Info {
		word(math.Float64bits(v))
	}
	return h.Sum64()
}
