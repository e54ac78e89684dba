package envtest

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Options adapt the suite to an environment.
type Options struct {
	// Key is where all randomness comes from; the zero Key is as good as any.
	Key rng.Key
	// Steps is the length of each of the suite's passes; 0 means 1000.
	Steps int
	// Policy chooses actions; nil draws valid ones uniformly.
	Policy func(s *rng.Stream, ts *envs.TimeStep, action *tensor.Tensor)
	// Allocates permits allocations in Step and Reset, for environments that leave the process.
	Allocates bool
}

// Report counts what was done.
type Report struct {
	Steps, Episodes int
	// Values counts the observations, masks and table windows that were compared with the spec;
	// Traces the pairs of whole passes that were compared with each other; Errors the calls that
	// had to fail and did.
	Values, Traces, Errors int
	// Saved counts the points at which an episode was saved and continued.
	Saved int
}

// Run checks the environments that open makes, which must be equal, and fails t with every part of
// the contract that is broken.
func Run(t testing.TB, open func() (envs.Env, error), o Options) Report {
	t.Helper()
	r, err := Check(open, o)
	if err != nil {
		t.Error(err)
	}
	if r.Steps == 0 || r.Values == 0 || r.Traces == 0 || r.Errors == 0 {
		t.Errorf("envtest: too little was checked: %+v", r)
	}
	t.Logf("envtest: %+v", r)
	return r
}

// Check is Run without a test: it returns every part of the contract that is broken, joined.
func Check(open func() (envs.Env, error), o Options) (Report, error) {
	if o.Steps == 0 {
		o.Steps = 1000
	}
	s := &suite{open: open, o: o}
	parts := []struct {
		name string
		run  func() error
	}{
		{"spec", s.checkSpec}, {"values", s.checkValues}, {"determinism", s.checkDeterminism}, {"keys", s.checkKeys}, {"actions", s.checkActions},
		{"masked actions", s.checkMasked}, {"life cycle", s.checkLifeCycle}, {"allocations", s.checkAllocations}, {"saving", s.checkSaving},
	}
	var errs []error
	for _, p := range parts {
		if err := p.run(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p.name, err))
			if p.name == "spec" {
				break
			}
		}
	}
	return s.report, errors.Join(errs...)
}

// suite is one run of the checks.
type suite struct {
	open   func() (envs.Env, error)
	o      Options
	spec   envs.Spec
	report Report
}

func (s *suite) checkSpec() error {
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	s.spec = e.Spec()
	if err := s.spec.Validate(); err != nil {
		return err
	}
	again := e.Spec()
	if !s.spec.Equal(&again) {
		return errors.New("the method Spec returns different descriptions")
	}
	n, err := envs.CheckTables(&s.spec)
	s.report.Values += n
	return err
}

// checkValues plays one pass and compares every step with the spec.
func (s *suite) checkValues() error {
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	p, spec := s.player(e, s.o.Key), e.Spec()
	ended := 0
	for range s.o.Steps {
		prev := envs.Last
		if !p.ended {
			prev = p.ts.Type
		}
		if err := p.next(); err != nil {
			return err
		}
		if err := envs.CheckStep(&spec, prev, p.ts); err != nil {
			return fmt.Errorf("after %d steps: %w", p.steps, err)
		}
		s.report.Values += len(s.spec.Observation)
		for i, f := range s.spec.Observation {
			if f.Window == nil && p.ts.Obs[i] != p.own[i] {
				return fmt.Errorf("after %d steps: observation %q is another tensor than the one that was passed in", p.steps, f.Name)
			}
		}
		if s.spec.Masked {
			s.report.Values++
		}
		if p.ts.Type == envs.Last {
			ended++
			if s.spec.MaxSteps > 0 && p.length > s.spec.MaxSteps {
				return fmt.Errorf("an episode has %d steps, the spec says at most %d", p.length, s.spec.MaxSteps)
			}
		} else if s.spec.MaxSteps > 0 && p.length >= s.spec.MaxSteps {
			return fmt.Errorf("an episode goes on after %d steps, the spec says at most %d", p.length, s.spec.MaxSteps)
		}
	}
	s.report.Episodes += ended
	if ended == 0 {
		return fmt.Errorf("no episode ended within %d steps: set Options.Steps or Options.Policy", s.o.Steps)
	}
	return nil
}

func (s *suite) checkDeterminism() error {
	want, err := s.trace(s.o.Key, nil)
	if err != nil {
		return err
	}
	// The second pass alternates between two TimeSteps full of garbage, so that whatever the
	// environment does not write shows.
	got, err := s.trace(s.o.Key, func(p *player) { p.swap() })
	if err != nil {
		return err
	}
	s.report.Traces++
	if i := want.differs(got); i >= 0 {
		return fmt.Errorf("the same key and actions give other values after %d steps, or some are not written", i)
	}
	return nil
}

func (s *suite) checkKeys() error {
	want, err := s.trace(s.o.Key.Split("key", 0), nil)
	if err != nil {
		return err
	}
	differ := false
	for k := 1; k <= 8; k++ {
		e, err := s.open()
		if err != nil {
			return err
		}
		p := s.player(e, s.o.Key.Split("key", k))
		p.script = want.actions
		got, err := p.play(s.o.Steps, nil)
		if err = errors.Join(err, e.Close()); err != nil {
			return err
		}
		s.report.Traces++
		differ = differ || want.differs(got) >= 0
	}
	switch {
	case s.spec.Random && !differ:
		return errors.New("nine keys give the same episodes, though the spec says that they are random")
	case !s.spec.Random && differ:
		return errors.New("keys change episodes, though the spec does not say that they are random")
	}
	return nil
}

func (s *suite) checkMasked() error {
	if !s.spec.Masked {
		return nil
	}
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	p := s.player(e, s.o.Key)
	p.unmasked = true
	_, err = p.play(s.o.Steps, nil)
	return err
}

func (s *suite) checkAllocations() error {
	if s.o.Allocates {
		return nil
	}
	want, err := s.trace(s.o.Key, nil)
	if err != nil {
		return err
	}
	e, err := s.open()
	if err != nil {
		return err
	}
	defer e.Close()
	p := s.player(e, s.o.Key)
	p.script = want.actions
	// The average over single steps would round a few allocations down to none, so whole stretches
	// are counted; the least of them, since others in the process may allocate too.
	const stretches = 4
	steps := s.o.Steps / (2 * stretches)
	least := math.Inf(1)
	for range stretches {
		least = min(least, testing.AllocsPerRun(1, func() {
			for range steps {
				if err == nil {
					err = p.next()
				}
			}
		}))
	}
	if err == nil && least > 0 {
		err = fmt.Errorf("%g allocations in %d steps", least, steps)
	}
	return err
}
