package fullbatch

import (
	"context"
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/gonum/floats"
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

// Iteration describes a major iteration: of lbfgs and cg a finished line search, of cmaes a
// generation.
type Iteration struct {
	Number      int     // counted from 1
	Evaluations int     // calls of the objective so far
	Loss        float64 // where the iteration ended; of cmaes the lowest so far
	GradNorm    float64 // Euclidean norm of the gradient there; NaN with cmaes
	GradMax     float64 // its largest component, which is what GradTol is for; NaN with cmaes
	// Restarted says that the method restarts after this iteration.
	Restarted bool
}

// Hooks connect a run to the outside; both may be nil.
type Hooks struct {
	// Journal is continued, and grows with every evaluation. Nil keeps none.
	Journal *Journal
	// Iteration is called after every major iteration that has not been told before, with the best
	// point in params. The journal may be saved then. An error ends the run.
	Iteration func(Iteration) error
}

// Minimize runs the method of c from params and leaves the best point that was
// evaluated in params, also when it returns an error. A cancelled ctx ends the
// run after the current evaluation with ctx's error. The loss at the start must
// be finite; later points where it is not are treated as infinitely bad.
//
// With a journal that is not empty the run goes on where the journal ends, from
// the journal's own start, and ends as it would have without the stop.
func Minimize(ctx context.Context, params []float32, f Objective, c Config, h Hooks) (Result, error) {
	if err := c.Validate(); err != nil {
		return Result{}, fmt.Errorf("minimize: %w", err)
	}
	if len(params) == 0 {
		return Result{}, errors.New("minimize: no parameters")
	}
	if c.Method == "cmaes" && len(params) > maxCMAESDim {
		return Result{}, fmt.Errorf("minimize: cmaes over %d parameters, at most %d: its covariance is a square matrix", len(params), maxCMAESDim)
	}
	e := &evaluator{ctx: ctx, f: f, h: h, point: make([]float32, len(params)), best: params}
	if c.Method != "cmaes" {
		e.grads = make([]float32, len(params))
	}
	if j := h.Journal; j != nil {
		if err := j.open(params, len(e.grads)); err != nil {
			return Result{}, fmt.Errorf("minimize: %w", err)
		}
		e.doneIterations, e.calls, e.told = j.Iterations, j.Evaluations, j.Told
		switch {
		case c.Method != "lbfgs":
			e.replay = j
		case len(j.Points) > 0:
			return Result{}, errors.New("minimize: resume: the journal has evaluations, which lbfgs has no use for: it is of another method or program")
		}
	}
	for {
		r, again, err := e.stretch(c)
		if err != nil {
			return r, fmt.Errorf("minimize: %w", err)
		}
		if !again {
			return r, nil
		}
		e.doneIterations = r.Iterations
		if h.Journal != nil {
			h.Journal.restart(params, r.Iterations, e.calls)
		}
		if err := e.tellRestart(); err != nil {
			return r, fmt.Errorf("minimize: %w", err)
		}
	}
}

// stretch runs the method from the best point until it ends, or until it is to restart.
func (e *evaluator) stretch(c Config) (r Result, again bool, err error) {
	start := make([]float64, len(e.best))
	for i, p := range e.best {
		start[i] = float64(p)
	}
	before := e.calls
	e.scale = 1
	e.valid, e.bestLoss, e.idle, e.replayed = false, math.Inf(1), 0, 0
	if j := e.h.Journal; j != nil && len(j.Pairs.X) > 0 {
		e.bestLoss = j.Pairs.Best
		return e.descend(c, start)
	}
	// The start is evaluated first, so that its problems are reported as its own
	// and CMA-ES, which only samples around it, cannot return anything worse.
	if err := e.evaluate(start); err != nil {
		return e.result(nil), false, fmt.Errorf("evaluate the start: %w", err)
	}
	if math.IsInf(e.loss, 0) {
		return e.result(nil), false, errors.New("the loss at the start is not finite")
	}
	if c.Method == "cmaes" {
		iterations, status, converged := evolve(e, c, start)
		r := e.result(nil)
		r.Iterations, r.Status, r.Converged = iterations, status, converged
		return r, false, e.err
	}
	if c.Method == "lbfgs" {
		return e.descend(c, start)
	}
	settings := c.settings()
	left := settings.MajorIterations - e.doneIterations
	settings.MajorIterations = min(left, c.restart())
	if settings.FuncEvaluations > 0 {
		if settings.FuncEvaluations -= before; settings.FuncEvaluations <= 0 {
			r := e.result(nil)
			r.Status = optimize.FunctionEvaluationLimit.String()
			return r, false, nil
		}
	}
	settings.Recorder = recorder{e}
	problem := optimize.Problem{Func: e.value, Grad: e.gradient, Status: e.status}
	got, err := optimize.Minimize(problem, start, settings, &optimize.CG{})
	r = e.result(got)
	if e.err != nil {
		return r, false, e.err
	}
	again = got != nil && got.Status == optimize.IterationLimit && left > c.restart()
	switch {
	case errors.Is(err, optimize.ErrLinesearcherFailure), errors.Is(err, optimize.ErrNoProgress),
		errors.Is(err, optimize.ErrNonDescentDirection), errors.Is(err, optimize.ErrLinesearcherBound):
		r.Stalled, r.Converged, r.Status = true, false, err.Error()
	case err != nil:
		return r, false, err
	case e.stalled:
		r.Stalled, r.Converged = true, false
	}
	// gonum's recorder does not see the iteration that ends a run.
	if got != nil {
		if again {
			e.pending = e.describe(r.Iterations, got.F, got.Gradient)
		} else {
			err = e.tell(r.Iterations-e.doneIterations, got.F, got.Gradient)
		}
	}
	if err != nil && e.err != nil {
		return r, false, e.err
	}
	return r, again, nil
}

// recorder hears of gonum's major iterations.
type recorder struct{ e *evaluator }

// Init implements optimize.Recorder.
func (recorder) Init() error { return nil }

// Record implements optimize.Recorder.
func (r recorder) Record(l *optimize.Location, op optimize.Operation, s *optimize.Stats) error {
	if op != optimize.MajorIteration {
		return nil
	}
	return r.e.tell(s.MajorIterations, l.F, l.Gradient)
}

// settings translates the limits. gonum's own default would stop after 100
// iterations without an improvement of 1e-10; here only FuncIterations does.
func (c Config) settings() *optimize.Settings {
	s := &optimize.Settings{
		MajorIterations: c.Iterations(),
		FuncEvaluations: c.MaxEvaluations,
		Converger:       optimize.NeverTerminate{},
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

// firstScale returns by how much coordinates are to be scaled so that the first step of L-BFGS,
// which is of length 1 in gonum whatever the problem, has the length that PyTorch gives it: that of
// the gradient times min(1, 1/‖g‖₁). With a length of 1 a small convolutional network took a
// quarter more evaluations in the geometric mean of nine seeds. L-BFGS itself does not depend on
// the scale.
func firstScale[T float32 | float64](grads []T) float64 {
	sum, squares := 0.0, 0.0
	for _, g := range grads {
		sum += math.Abs(float64(g))
		squares += float64(g) * float64(g)
	}
	length := math.Sqrt(squares) * min(1, 1/sum)
	if !(length > 0 && length <= 1) {
		return 1
	}
	return 1 / length
}

// maxIdle is how often a line search may ask without finding a better point.
const maxIdle = 100

// evaluator answers gonum's questions. gonum calls it from one goroutine at a
// time, with a happens-before edge between calls.
type evaluator struct {
	ctx   context.Context
	f     Objective
	h     Hooks
	point []float32 // where loss and grads were computed
	grads []float32 // nil without gradients
	loss  float64
	valid bool
	calls int

	// scale is what gonum's coordinates are of ours; rounding to float32 undoes what it rounds.
	scale float64

	best     []float32
	bestLoss float64
	// idle counts gonum's questions since bestLoss improved. Line searches
	// descend with every major iteration, but in float32 a loss has steps, on
	// which More-Thuente's, the one of CG, asks for ever.
	idle    int
	stalled bool
	err     error // first failure of the objective or ctx

	// replay is the journal of cg and cmaes.
	replay *Journal
	// doneIterations are those of the stretches before; replayed counts the evaluations that the
	// journal has answered in this one.
	doneIterations, replayed, told int
	// pending is the iteration that ends a stretch.
	pending Iteration
}

// describe makes an iteration of the run.
func (e *evaluator) describe(number int, loss float64, grad []float64) Iteration {
	it := Iteration{Number: number, Evaluations: e.calls, Loss: loss, GradNorm: math.NaN(), GradMax: math.NaN()}
	if grad != nil {
		it.GradNorm, it.GradMax = e.scale*floats.Norm(grad, 2), e.scale*floats.Norm(grad, math.Inf(1))
	}
	return it
}

// tell reports the iteration of this stretch unless it was told before the run was stopped.
func (e *evaluator) tell(number int, loss float64, grad []float64) error {
	if e.err != nil {
		return e.err
	}
	return e.report(e.describe(e.doneIterations+number, loss, grad))
}

// tellRestart reports the iteration that ended a stretch.
func (e *evaluator) tellRestart() error {
	e.pending.Restarted = true
	return e.report(e.pending)
}

func (e *evaluator) report(it Iteration) error {
	if it.Number <= e.told {
		return nil
	}
	e.told = it.Number
	if j := e.h.Journal; j != nil {
		j.Told = it.Number
	}
	if e.h.Iteration != nil {
		e.err = e.h.Iteration(it)
	}
	return e.err
}

// evaluate runs the objective at x unless it has just done so.
func (e *evaluator) evaluate(x []float64) error {
	if e.err != nil {
		return e.err
	}
	same := e.valid
	for i, v := range x {
		p := float32(v / e.scale)
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
	loss, known, err := e.replay.answer(e.replayed, e.point, e.grads)
	if err == nil && !known {
		loss, err = e.f(e.point, e.grads)
	}
	e.calls++
	e.replayed++
	if err != nil {
		e.err = fmt.Errorf("evaluate the objective: %w", err)
		return e.err
	}
	if math.IsNaN(loss) {
		loss = math.Inf(1)
	}
	if !known {
		e.replay.add(e.point, e.grads, loss)
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
		grad[i] = float64(g) / e.scale
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
	out := Result{Loss: e.bestLoss, Iterations: e.doneIterations, Evaluations: e.calls}
	if r != nil {
		out.Iterations += r.MajorIterations
		out.Status = r.Status.String()
		switch r.Status {
		case optimize.GradientThreshold, optimize.FunctionConvergence, optimize.MethodConverge, optimize.StepConvergence:
			out.Converged = true
		}
	}
	return out
}
