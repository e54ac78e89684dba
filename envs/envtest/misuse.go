package envtest

import (
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// wrongActions returns actions that do not lie in the space, each with a description.
func wrongActions(s envs.Space) map[string]*tensor.Tensor {
	wrong := map[string]*tensor.Tensor{
		"nil":              nil,
		"another type":     tensor.New(tensor.Int16, s.Shape()...),
		"another shape":    tensor.New(s.DType(), append([]int{3}, s.Shape()...)...),
		"fewer dimensions": tensor.New(s.DType(), 0),
	}
	at := func(set func(t *tensor.Tensor)) *tensor.Tensor {
		t := tensor.New(s.DType(), s.Shape()...)
		s.Sample(rng.New(1).Stream(), nil, t)
		set(t)
		return t
	}
	switch s := s.(type) {
	case envs.Discrete:
		wrong["too large"] = at(func(t *tensor.Tensor) { t.Int64s()[0] = int64(s.N) })
		wrong["negative"] = at(func(t *tensor.Tensor) { t.Int64s()[0] = -1 })
	case envs.MultiDiscrete:
		last := len(s.N) - 1
		wrong["too large"] = at(func(t *tensor.Tensor) { t.Int64s()[last] = int64(s.N[last]) })
		wrong["negative"] = at(func(t *tensor.Tensor) { t.Int64s()[last] = -1 })
	case envs.Box:
		if s.Of == tensor.Float32 {
			wrong["NaN"] = at(func(t *tensor.Tensor) { t.Float32s()[0] = float32(math.NaN()) })
			wrong["infinite"] = at(func(t *tensor.Tensor) { t.Float32s()[0] = float32(math.Inf(1)) })
			if b := s.Bounds(0); s.Bounded() {
				wrong["too large"] = at(func(t *tensor.Tensor) { t.Float32s()[0] = float32(b.High + 1 + math.Abs(b.High)) })
			}
		}
	}
	return wrong
}

// checkActions interrupts a pass with wrong actions and compares it with one that is not
// interrupted.
func (s *suite) checkActions() error {
	want, err := s.trace(s.o.Key, nil)
	if err != nil {
		return err
	}
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	wrong := wrongActions(s.spec.Action)
	scratch := envs.NewTimeStep(s.spec)
	var broken error
	p := s.player(e, s.o.Key)
	p.script = want.actions
	got, err := p.play(s.o.Steps, func(p *player) {
		if p.ended || broken != nil || p.steps > 50 {
			return
		}
		for what, a := range wrong {
			var bad *envs.ActionError
			if err := e.Step(a, scratch); !errors.As(err, &bad) {
				broken = fmt.Errorf("an action that is wrong (%s) gives %v, expected an *envs.ActionError", what, err)
				return
			}
			s.report.Errors++
		}
	})
	if err != nil || broken != nil {
		return errors.Join(err, broken)
	}
	s.report.Traces++
	if i := want.differs(got); i >= 0 {
		return fmt.Errorf("after %d steps: a wrong action has changed the episode", i)
	}
	return nil
}

// checkLifeCycle calls Step and Reset when they must fail, and abandons an episode.
func (s *suite) checkLifeCycle() error {
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	p := s.player(e, s.o.Key)
	expect := func(when string, err, want error) error {
		if !errors.Is(err, want) {
			return fmt.Errorf("%s gives %v, expected %q", when, err, want)
		}
		s.report.Errors++
		return nil
	}
	s.spec.Action.Sample(p.choices, nil, p.action)
	if err := expect("Step before Reset", e.Step(p.action, p.ts), envs.ErrNoEpisode); err != nil {
		return err
	}
	for p.ended = true; ; {
		if err := p.next(); err != nil {
			return err
		}
		if p.ended {
			break
		}
		if p.steps > s.o.Steps {
			return fmt.Errorf("no episode ended within %d steps", s.o.Steps)
		}
	}
	for range 2 {
		if err := expect("Step after the last step", e.Step(p.action, p.ts), envs.ErrNoEpisode); err != nil {
			return err
		}
	}
	// An abandoned episode leaves no trace in the next one.
	want, err := s.trace(s.o.Key, nil)
	if err != nil {
		return err
	}
	if err := e.Reset(s.o.Key.Split("abandoned"), p.ts); err != nil {
		return err
	}
	again := s.player(e, s.o.Key)
	again.script = want.actions
	got, err := again.play(s.o.Steps, nil)
	if err != nil {
		return err
	}
	s.report.Traces++
	if i := want.differs(got); i >= 0 {
		return fmt.Errorf("after %d steps: episodes depend on those before them", i)
	}
	if err := errors.Join(e.Close(), e.Close()); err != nil {
		return fmt.Errorf("closing twice: %w", err)
	}
	return errors.Join(
		expect("Reset after Close", e.Reset(s.o.Key, p.ts), envs.ErrClosed),
		expect("Step after Close", e.Step(p.action, p.ts), envs.ErrClosed),
	)
}
