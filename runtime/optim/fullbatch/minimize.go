package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/optimize"
)

// Objective returns the loss at params and writes its gradient to grads, which
// has the length of params and holds anything before. With CMA-ES grads is nil.
// The objective must not keep or change params. An error ends the run.
type Objective func(params, grads []float32) (loss float64, err error)

// Result describes a finished run.
type Result struct {
	Loss        float64 // at the parameters returned
	Iterations  int     // major iterations
	Evaluations int     // calls of the objective
	// Converged says that a tolerance was met, as opposed to a limit or a stall.
	Converged bool
	// Stalled says that the line search found no better point: normal close to
	// a minimum, where float32 resolves nothing smaller; otherwise a sign that
	// the gradient is not that of the loss or that the objective is noisy.
	Stalled bool
	Status  string // gonum's status, or the line search's complaint
}

// Minimize runs the method of c from params and leaves the best point that was
// evaluated in params, also when it returns an error. A canceled ctx ends the
// run after the current evaluation with ctx's error. The loss at the start must
// be finite; later points where it is not are treated as infinitely bad.
func Minimize(ctx context.Context, params []float32, f Objective, c Config) (Result, error) {
	if err := c.Validate(); err != nil {
		return Result{}, fmt.Errorf("minimize: %w", err)
	}
	if len(params) == 0 {
		return Result{}, errors.New("minimize: no parameters")
	}
	if c.Method == "cmaes" && len(params) > maxCMAESDim {
		return Result{}, fmt.Errorf("minimize: cmaes over %d parameters, at most %d: its covariance is a square matrix", len(params), maxCMAESDim)
	}
	e := &evaluator{ctx: ctx, f: f, point: make([]float32, len(params)), best: params, bestLoss: math.Inf(1)}
	if c.Method != "cmaes" {
		e.grads = make([]float32, len(params))
	}
	start := make([]float64, len(params))
	for i, p := range params {
		start[i] = float64(p)
	}
	// The start is evaluated first, so that its problems are reported as its own
	// and CMA-ES, which only samples around it, cannot return anything worse.
	if err := e.evaluate(start); err != nil {
		return e.result(nil), fmt.Errorf("minimize: evaluate the start: %w", err)
	}
	if math.IsInf(e.loss, 0) {
		return e.result(nil), fmt.Errorf("minimize: the loss at the start is not finite")
	}

	if c.Method == "cmaes" {
		iterations, status, converged := newCMAES(c, start).run(e, c)
		r := e.result(nil)
		r.Iterations, r.Status, r.Converged = iterations, status, converged
		if e.err != nil {
			return r, fmt.Errorf("minimize: %w", e.err)
		}
		return r, nil
	}
	problem := optimize.Problem{Func: e.value, Grad: e.gradient, Status: e.status}
	got, err := optimize.Minimize(problem, start, c.settings(), c.method())
	r := e.result(got)
	switch {
	case e.err != nil:
		return r, fmt.Errorf("minimize: %w", e.err)
	case errors.Is(err, optimize.ErrLinesearcherFailure), errors.Is(err, optimize.ErrNoProgress),
		errors.Is(err, optimize.ErrNonDescentDirection), errors.Is(err, optimize.ErrLinesearcherBound):
		r.Stalled, r.Converged, r.Status = true, false, err.Error()
		return r, nil
	case err != nil:
		return r, fmt.Errorf("minimize: %w", err)
	}
	if e.stalled {
		r.Stalled, r.Converged = true, false
	}
	return r, nil
}

// settings translates the limits. gonum's own default would stop after 100
// iterations without an improvement of 1e-10; here only FuncIterations does.
func (c Config) settings() *optimize.Settings {
	s := &optimize.Settings{
		MajorIterations: c.MaxIterations,
		FuncEvaluations: c.MaxEvaluations,
		Converger:       optimize.NeverTerminate{},
	}
	if s.MajorIterations == 0 {
		s.MajorIterations = 1000
	}
	if c.FuncIterations > 0 {
		s.Converger = &optimize.FunctionConverge{Absolute: c.FuncTol, Iterations: c.FuncIterations}
	}
	s.GradientThreshold = c.GradTol
	if s.GradientThreshold == 0 {
		s.GradientThreshold = 1e-5
	}
	return s
}

func (c Config) method() optimize.Method {
	if c.Method == "cg" {
		return &optimize.CG{}
	}
	return &optimize.LBFGS{Store: c.Memory}
}

// maxIdle is how often a line search may ask without finding a better point.
const maxIdle = 100

// evaluator answers gonum's questions. gonum calls it from one goroutine at a
// time, with a happens-before edge between calls.
type evaluator struct {
	ctx   context.Context
	f     Objective
	point []float32 // where loss and grads were computed
	grads []float32 // nil without gradients
	loss  float64
	valid bool
	calls int

	best     []float32
	bestLoss float64
	// idle counts gonum's questions since bestLoss improved. Line searches
	// descend with every major iteration, but in float32 a loss has steps, on
	// which More-Thuente's, the one of CG, asks for ever.
	idle    int
	stalled bool
	err     error // first failure of the objective or ctx
}

// evaluate runs the objective at x unless it has just done so.
func (e *evaluator) evaluate(x []float64) error {
	if e.err != nil {
		return e.err
	}
	same := e.valid
	for i, v := range x {
		p := float32(v)
		same = same && p == e.point[i]
		e.point[i] = p
	}
	if same {
		return nil
	}
	e.valid = false
	if e.err = e.ctx.Err(); e.err != nil {
		return e.err
	}
	loss, err := e.f(e.point, e.grads)
	e.calls++
	if err != nil {
		e.err = fmt.Errorf("evaluate the objective: %w", err)
		return e.err
	}
	if math.IsNaN(loss) {
		loss = math.Inf(1)
	}
	e.loss, e.valid = loss, true
	if loss < e.bestLoss {
		e.bestLoss, e.idle = loss, 0
		copy(e.best, e.point)
	}
	return nil
}

func (e *evaluator) value(x []float64) float64 {
	if e.evaluate(x) != nil {
		return math.Inf(1)
	}
	return e.loss
}

func (e *evaluator) gradient(grad, x []float64) {
	if e.evaluate(x) != nil {
		clear(grad)
		return
	}
	for i, g := range e.grads {
		grad[i] = float64(g)
	}
}

// status is asked after every evaluation and ends the run on an error.
func (e *evaluator) status() (optimize.Status, error) {
	if e.err == nil {
		e.err = e.ctx.Err()
	}
	if e.err != nil {
		return optimize.Failure, e.err
	}
	if e.idle++; e.idle > maxIdle {
		e.stalled = true
		return optimize.StepConvergence, nil
	}
	return optimize.NotTerminated, nil
}

// result summarises the run; r is nil if gonum did not get to run.
func (e *evaluator) result(r *optimize.Result) Result {
	out := Result{Loss: e.bestLoss, Evaluations: e.calls}
	if r != nil {
		out.Iterations = r.MajorIterations
		out.Status = r.Status.String()
		switch r.Status {
		case optimize.GradientThreshold, optimize.FunctionConvergence, optimize.MethodConverge, optimize.StepConvergence:
			out.Converged = true
		}
	}
	return out
}
