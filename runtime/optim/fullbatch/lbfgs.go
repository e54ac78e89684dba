package fullbatch

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/optimize"
)

// defaultMemory is gonum's default of stored updates.
const defaultMemory = 15

// Pairs is what L-BFGS is resumed from: the last points at which a search along a line ended, of
// which gonum's method keeps the differences. Given to it again one after the other they bring it
// to where it was, bit by bit.
type Pairs struct {
	// X are the points, oldest first, at most as many as stored updates and one more, as gonum has
	// them; Grads are their gradients. The first of a run is its start.
	X     []float64
	Grads []float32
	PairsState
}

// PairsState are the numbers of Pairs.
type PairsState struct {
	// Scale is what X is of the parameters.
	Scale float64 `json:"scale"`
	// Loss is that of the last point, and Best the lowest so far, of the journal's Start.
	Loss float64 `json:"loss"`
	Best float64 `json:"best"`
	// Since counts iterations since the method last restarted.
	Since int `json:"since"`
	// Quiet counts iterations without an improvement of From by more than FuncTol.
	Quiet int     `json:"quiet"`
	From  float64 `json:"from"`
}

// check reports pairs that are not of n parameters.
func (p *Pairs) check(n int) error {
	if k := len(p.X); k%n != 0 || k != len(p.Grads) || k > 0 && !(p.Scale > 0) {
		return fmt.Errorf("resume: the journal has %d coordinates of points and %d of gradients, of %d parameters", k, len(p.Grads), n)
	}
	return nil
}

// add appends a point and drops the oldest of more than most.
func (p *Pairs) add(x []float64, grads []float32, most int) {
	if drop := len(p.X) - (most-1)*len(x); drop > 0 {
		p.X, p.Grads = p.X[:copy(p.X, p.X[drop:])], p.Grads[:copy(p.Grads, p.Grads[drop:])]
	}
	p.X, p.Grads = append(p.X, x...), append(p.Grads, grads...)
}

// goesOn gives gonum's method directions; its first is not that of the gradient alone where pairs
// were kept.
type goesOn struct {
	*optimize.LBFGS
	known bool
}

func (d goesOn) InitDirection(loc *optimize.Location, dir []float64) float64 {
	if d.known {
		return d.NextDirection(loc, dir)
	}
	return d.LBFGS.InitDirection(loc, dir)
}

// descend lets L-BFGS go on from the pairs, or begin at the best point, until a limit of c, an
// error in e, or convergence; again says that it is to restart. Directions and steps are
// gonum's, and it is driven here rather than by optimize.Minimize, which begins with no pairs.
func (e *evaluator) descend(c Config, start []float64) (r Result, again bool, err error) {
	n, memory := len(start), c.Memory
	if memory == 0 {
		memory = defaultMemory
	}
	p := &Pairs{}
	if e.h.Journal != nil {
		p = &e.h.Journal.Pairs
	}
	if len(p.X) == 0 {
		p.Scale, p.Loss, p.Best, p.From = firstScale(e.grads), e.loss, e.loss, e.loss
		for i := range start {
			start[i] *= p.Scale
		}
		p.add(start, e.grads, memory+1)
		if e.h.Journal != nil {
			e.h.Journal.Evaluations = e.calls
		}
	}
	e.scale = p.Scale
	loc := &optimize.Location{X: make([]float64, n), Gradient: make([]float64, n)}
	at := func(k int) {
		copy(loc.X, p.X[k*n:])
		for i, g := range p.Grads[k*n : (k+1)*n] {
			loc.Gradient[i] = float64(g) / e.scale
		}
	}
	d := &optimize.LBFGS{Store: memory}
	last, dir := len(p.X)/n-1, make([]float64, n)
	for k := range last {
		if at(k); k == 0 {
			d.InitDirection(loc, dir)
		} else {
			d.NextDirection(loc, dir)
		}
	}
	at(last)
	loc.F = p.Loss
	threshold := c.settings().GradientThreshold / e.scale
	number := e.doneIterations
	end := func(s optimize.Status) (Result, bool, error) {
		r := e.result(nil)
		r.Iterations, r.Status = number, s.String()
		r.Converged = s == optimize.GradientThreshold || s == optimize.FunctionConvergence
		return r, again, nil
	}
	over := func() optimize.Status {
		switch {
		case floats.Norm(loc.Gradient, math.Inf(1)) < threshold:
			return optimize.GradientThreshold
		case c.FuncIterations > 0 && p.Quiet >= c.FuncIterations:
			return optimize.FunctionConvergence
		case number >= c.Iterations():
			return optimize.IterationLimit
		}
		return optimize.NotTerminated
	}
	if s := over(); s != optimize.NotTerminated {
		return end(s)
	}
	ls := optimize.LinesearchMethod{NextDirectioner: goesOn{d, last > 0}, Linesearcher: &strongWolfe{}}
	for op, err := ls.Init(loc); ; op, err = ls.Iterate(loc) {
		switch {
		case errors.Is(err, optimize.ErrLinesearcherFailure), errors.Is(err, optimize.ErrNoProgress), errors.Is(err, optimize.ErrNonDescentDirection):
			r, _, _ := end(optimize.Failure)
			r.Stalled, r.Status = true, err.Error()
			return r, false, nil
		case err != nil:
			return e.result(nil), false, err
		}
		if op != optimize.MajorIteration {
			if e.evaluate(loc.X) == nil {
				loc.F = e.loss
				e.gradient(loc.Gradient, loc.X)
			}
			if e.err != nil {
				return e.result(nil), false, e.err
			}
			if c.MaxEvaluations > 0 && e.calls >= c.MaxEvaluations {
				return end(optimize.FunctionEvaluationLimit)
			}
			continue
		}
		number++
		p.add(loc.X, e.grads, memory+1)
		p.Loss, p.Best = loc.F, e.bestLoss
		p.Since++
		if p.Quiet++; p.From-loc.F > c.FuncTol {
			p.Quiet, p.From = 0, loc.F
		}
		if j := e.h.Journal; j != nil {
			copy(j.Start, e.best)
			j.Iterations, j.Evaluations = number, e.calls
		}
		s := over()
		if s == optimize.NotTerminated && p.Since >= c.restart() {
			again, e.pending = true, e.describe(number, loc.F, loc.Gradient)
			return end(optimize.IterationLimit)
		}
		if err := e.report(e.describe(number, loc.F, loc.Gradient)); err != nil {
			return e.result(nil), false, err
		}
		if s != optimize.NotTerminated {
			return end(s)
		}
	}
}
