package envtest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
)

// checkSaving saves an episode at several points and continues it in a new environment.
func (s *suite) checkSaving() error {
	want, err := s.trace(s.o.Key, nil)
	if err != nil {
		return err
	}
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	if _, err := envs.SaveState(e); errors.Is(err, envs.ErrCannotSave) {
		return nil
	} else if err == nil {
		return errors.New("SaveState works where no episode is running")
	}
	p := s.player(e, s.o.Key)
	p.script = want.actions
	every := max(1, s.o.Steps/16)
	for p.steps < s.o.Steps {
		if err := p.next(); err != nil {
			return err
		}
		if p.ended || p.steps%every != 1%every && p.length != 0 || p.steps == s.o.Steps {
			continue
		}
		state, err := envs.SaveState(e)
		if err != nil {
			return fmt.Errorf("after %d steps: %w", p.steps, err)
		}
		if err := s.resume(state, p, want); err != nil {
			return fmt.Errorf("saved after %d steps: %w", p.steps, err)
		}
		s.report.Saved++
	}
	if s.report.Saved == 0 {
		return errors.New("no episode was long enough to be saved")
	}
	return nil
}

// resume continues in a new environment what p has played so far, up to 200 steps.
func (s *suite) resume(state []byte, at *player, want trace) error {
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	p := s.player(e, s.o.Key)
	for _, damaged := range [][]byte{nil, state[:len(state)/2], []byte("nonsense")} {
		if err := envs.LoadState(e, damaged, p.ts); err == nil {
			return fmt.Errorf("a damaged state (%q) is loaded without an error", damaged)
		}
		s.report.Errors++
	}
	p.garble()
	if err := envs.LoadState(e, state, p.ts); err != nil {
		return err
	}
	expected := envs.Mid
	if at.length == 0 {
		expected = envs.First
	}
	if p.ts.Type != expected || p.ts.Reward != 0 || p.ts.Discount != 1 {
		return fmt.Errorf("it continues with type %v, reward %g and discount %g, expected %v, 0 and 1", p.ts.Type, p.ts.Reward, p.ts.Discount, expected)
	}
	if i := slices.IndexFunc(p.ts.Costs, func(c float64) bool { return c != 0 }); i >= 0 {
		return fmt.Errorf("it continues with cost %q of %g, expected 0", s.spec.Costs[i], p.ts.Costs[i])
	}
	same := *p.ts
	same.Type, same.Reward, same.Discount, same.Costs = at.ts.Type, at.ts.Reward, at.ts.Discount, at.ts.Costs
	if s.digest(&same) != s.digest(at.ts) {
		return errors.New("it continues with another observation, mask or diagnostic")
	}
	p.script, p.steps, p.episode, p.length, p.ended = want.actions, at.steps, at.episode, at.length, false
	n := min(200, s.o.Steps-p.steps)
	got, err := p.play(n, nil)
	if err != nil {
		return err
	}
	s.report.Traces++
	if i := (trace{digests: want.digests[p.steps-n : p.steps]}).differs(got); i >= 0 {
		return fmt.Errorf("%d steps later it has become another episode", i)
	}
	return nil
}
