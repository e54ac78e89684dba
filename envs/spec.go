package envs

import (
	"errors"
	"fmt"
	"slices"
)

// Spec describes an environment. Its slices are shared and must not be changed.
type Spec struct {
	// Name identifies the dynamics, for instance "cartpole".
	Name string
	// Observation lists the parts of an observation.
	Observation Dict
	// Action is what Step takes.
	Action Space
	// Joint says that an action is one for all that is observed, such as who acts, or the shares of
	// several. None of its elements belongs to an asset of a window [W,N,F], though there be as
	// many of them. Otherwise the first N do.
	Joint bool
	// Masked says that every TimeStep tells which actions are valid.
	Masked bool
	// Reward bounds the rewards; use infinities where there is no bound. The zero value means that
	// rewards are always 0.
	Reward Range
	// Costs names what a step costs beside the reward, for constraints on the expected sum of each
	// (constrained Markov decision processes; Altman 1999): Safety-Gymnasium has one, "cost".
	Costs []string
	// Info names the diagnostics of a step. They are not observations: no policy may depend on
	// them.
	Info []string
	// MaxSteps is the largest number of steps of an episode, or 0 when there is no limit.
	MaxSteps int
	// Random says that episodes with different keys differ even when the actions are the same.
	Random bool
}

// Range is a closed interval.
type Range struct{ Low, High float64 }

// Contains reports whether x lies in the range; NaN never does.
func (r Range) Contains(x float64) bool { return r.Low <= x && x <= r.High }

// At maps a number in [−1, 1] to the range, whose bounds are finite.
func (r Range) At(x float64) float64 {
	return min(max((r.High+r.Low)/2+(r.High-r.Low)/2*x, r.Low), r.High)
}

// Dict is an ordered list of named spaces.
type Dict []Field

// Field is one part of an observation.
type Field struct {
	Name  string
	Space Space
	// Window is not nil when the observation is a run of consecutive rows of a table; see the
	// package comment.
	Window *Window
	// Series says that the first axis of the observation is time, though it is no run of rows of a
	// table: networks read it as they do a window. A matrix that says neither is so many numbers.
	Series bool
	// Central says that the field is known where policies are trained and not where they act, such
	// as what other agents see, or the whole state of a world. Critics may read it, no policy does.
	Central bool
}

// Central lists the names of the fields that are central.
func (d Dict) Central() []string {
	var names []string
	for _, f := range d {
		if f.Central {
			names = append(names, f.Name)
		}
	}
	return names
}

// Index returns the position of a field, or -1.
func (d Dict) Index(name string) int {
	return slices.IndexFunc(d, func(f Field) bool { return f.Name == name })
}

// InfoIndex returns the position of a diagnostic, or -1.
func (s *Spec) InfoIndex(name string) int { return slices.Index(s.Info, name) }

// Validate reports whether the spec is complete and consistent, all problems at once.
func (s *Spec) Validate() error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("spec %q: "+format, append([]any{s.Name}, args...)...))
	}
	if s.Name == "" {
		fail("it has no name")
	}
	if len(s.Observation) == 0 {
		fail("it has no observation")
	}
	seen := map[string]bool{}
	if len(s.Observation) > 0 && !slices.ContainsFunc(s.Observation, func(f Field) bool { return !f.Central }) {
		fail("all of its observation is central, and nothing is left for a policy")
	}
	for i, f := range s.Observation {
		switch {
		case f.Name == "" || seen[f.Name]:
			fail("observation %d: name %q is empty or taken", i, f.Name)
		case f.Space == nil:
			fail("observation %q: it has no space", f.Name)
		default:
			if err := f.Space.Validate(); err != nil {
				fail("observation %q: %w", f.Name, err)
			} else if w := f.Window; w != nil && (w.rows.DType() != f.Space.DType() || !slices.Equal(f.Space.Shape(), append([]int{w.n}, w.rows.Shape()[1:]...))) {
				fail("observation %q: windows of %d rows of %v do not have the space %v", f.Name, w.n, w.rows, f.Space)
			}
		}
		seen[f.Name] = true
	}
	if s.Action == nil {
		fail("it has no action space")
	} else if err := s.Action.Validate(); err != nil {
		fail("action: %w", err)
	} else if s.Masked && MaskLen(s.Action) == 0 {
		fail("a space %v cannot be masked", s.Action)
	}
	if !(s.Reward.Low <= s.Reward.High) {
		fail("rewards between %g and %g", s.Reward.Low, s.Reward.High)
	}
	names := func(what string, list []string) {
		clear(seen)
		for i, name := range list {
			if name == "" || seen[name] {
				fail("%s %d: name %q is empty or taken", what, i, name)
			}
			seen[name] = true
		}
	}
	names("cost", s.Costs)
	names("info", s.Info)
	if s.MaxSteps < 0 {
		fail("max steps is %d", s.MaxSteps)
	}
	return errors.Join(errs...)
}

// Equal reports whether two environments can share a batch and a policy: everything agrees, and
// windows are over the same table.
func (s *Spec) Equal(o *Spec) bool {
	return s.Name == o.Name && sameSpace(s.Action, o.Action) && s.Joint == o.Joint && s.Masked == o.Masked && s.Reward == o.Reward && slices.Equal(s.Costs, o.Costs) && slices.Equal(s.Info, o.Info) && s.MaxSteps == o.MaxSteps && s.Random == o.Random &&
		slices.EqualFunc(s.Observation, o.Observation, func(a, b Field) bool {
			return a.Name == b.Name && a.Series == b.Series && a.Central == b.Central && sameSpace(a.Space, b.Space) && (a.Window == b.Window || a.Window != nil && b.Window != nil && a.Window.n == b.Window.n && a.Window.rows == b.Window.rows)
		})
}
