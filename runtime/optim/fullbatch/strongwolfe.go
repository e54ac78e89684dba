package fullbatch

import (
	"math"

	"gonum.org/v1/gonum/optimize"
)

const (
	// decrease and curvature are the constants of the strong Wolfe conditions, Nocedal & Wright's
	// for quasi-Newton methods.
	decrease, curvature = 1e-4, 0.9
	// maxSearch is how many points a search looks at, as in PyTorch's L-BFGS.
	maxSearch = 25
)

// strongWolfe is a line search for L-BFGS that ends where the strong Wolfe conditions hold: an
// interval with such a point is bracketed, and narrowed by cubic interpolation (Nocedal & Wright,
// Numerical Optimization, 2nd ed., algorithms 3.5 and 3.6 and equation 3.59) with the safeguards of
// Schmidt's minFunc, which PyTorch's L-BFGS has as well.
//
// gonum's L-BFGS takes any search. Its own are Bisection, which demands no decrease and only halves
// and doubles, and MoreThuente, which does not end where losses are infinite. Both take more than
// twice the evaluations over functions of one variable (strongwolfe_test.go).
type strongWolfe struct {
	f, g float64 // at step 0
	// before is the step before now while no interval is known.
	before, now sample
	// low and high are the ends of the interval, of which low has the lower loss.
	low, high sample
	asked     int
	state     searchState
	// slow says that the last step was close to an end of the interval.
	slow bool
}

// sample is what is known at a step.
type sample struct{ step, f, g float64 }

type searchState int

const (
	bracketing searchState = iota
	narrowing
	// settling returns to the best step, where the objective was not asked last.
	settling
)

const both = optimize.FuncEvaluation | optimize.GradEvaluation

// Init implements optimize.Linesearcher.
func (s *strongWolfe) Init(f, g, step float64) optimize.Operation {
	*s = strongWolfe{f: f, g: g, before: sample{0, f, g}, now: sample{step: step}}
	return both
}

// Iterate implements optimize.Linesearcher.
func (s *strongWolfe) Iterate(f, g float64) (optimize.Operation, float64, error) {
	s.asked++
	s.now.f, s.now.g = f, g
	switch s.state {
	case settling:
		return optimize.MajorIteration, s.now.step, nil
	case bracketing:
		return s.bracket()
	}
	return s.narrow()
}

// falls says that a step decreases the loss by enough.
func (s *strongWolfe) falls(p sample) bool {
	return optimize.ArmijoConditionMet(p.f, s.f, s.g, p.step, decrease)
}

// flat says that the slope at a step is small enough.
func (s *strongWolfe) flat(p sample) bool { return math.Abs(p.g) <= -curvature*s.g }

// bracket grows the step until there is an interval.
func (s *strongWolfe) bracket() (optimize.Operation, float64, error) {
	switch p := s.now; {
	case !s.falls(p) || s.asked > 1 && p.f >= s.before.f, p.g >= 0 && !s.flat(p):
		s.low, s.high, s.state = s.before, p, narrowing
		s.order()
		return s.inside()
	case s.flat(p):
		return optimize.MajorIteration, p.step, nil
	case s.asked >= maxSearch:
		// It falls by enough and still falls: as good as it gets.
		return optimize.MajorIteration, p.step, nil
	default:
		next := cubic(s.before, p, p.step+0.01*(p.step-s.before.step), 10*p.step)
		s.before = p
		return s.ask(next)
	}
}

// narrow takes the last step into the interval.
func (s *strongWolfe) narrow() (optimize.Operation, float64, error) {
	p := s.now
	if !s.falls(p) || p.f >= s.low.f {
		s.high = p
		s.order()
		return s.inside()
	}
	if s.flat(p) {
		return optimize.MajorIteration, p.step, nil
	}
	if p.g*(s.high.step-s.low.step) >= 0 {
		s.high = s.low
	}
	s.low = p
	return s.inside()
}

// order makes low the end with the lower loss.
func (s *strongWolfe) order() {
	if s.high.f < s.low.f {
		s.low, s.high = s.high, s.low
	}
}

// inside asks for a step in the interval, or ends the search at the lower end.
func (s *strongWolfe) inside() (optimize.Operation, float64, error) {
	lo, hi := min(s.low.step, s.high.step), max(s.low.step, s.high.step)
	if s.asked >= maxSearch || hi-lo <= 1e-9*hi {
		switch s.low.step {
		case 0:
			return optimize.NoOperation, 0, optimize.ErrLinesearcherFailure
		case s.now.step:
			return optimize.MajorIteration, s.now.step, nil
		}
		s.state = settling
		return s.ask(s.low.step)
	}
	step := cubic(s.low, s.high, lo, hi)
	// Two steps in a row close to the ends would narrow it by little.
	margin := 0.1 * (hi - lo)
	if near := min(hi-step, step-lo) < margin; near && (s.slow || step >= hi || step <= lo) {
		s.slow = false
		if hi-step < step-lo {
			step = hi - margin
		} else {
			step = lo + margin
		}
	} else {
		s.slow = near
	}
	return s.ask(step)
}

func (s *strongWolfe) ask(step float64) (optimize.Operation, float64, error) {
	s.now = sample{step: step}
	return both, step, nil
}

// cubic returns the minimum of the cubic with the losses and slopes of a and b, within bounds;
// their middle where it has none, as where a loss is infinite.
func cubic(a, b sample, lo, hi float64) float64 {
	if a.step > b.step {
		a, b = b, a
	}
	d1 := a.g + b.g - 3*(a.f-b.f)/(a.step-b.step)
	d2 := math.Sqrt(d1*d1 - a.g*b.g)
	x := b.step - (b.step-a.step)*(b.g+d2-d1)/(b.g-a.g+2*d2)
	if math.IsNaN(x) {
		return (lo + hi) / 2
	}
	return min(max(x, lo), hi)
}
