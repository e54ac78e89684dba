package fullbatch

import (
	"github.com/onnxrl/onnxrl/runtime/optim/cmaes"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// evolve lets CMA-ES evolve from start until a limit of c, an error in e, or convergence: every
// coordinate's spread below float32's resolution around the mean.
func evolve(e *evaluator, c Config, start []float64) (iterations int, status string, converged bool) {
	s := cmaes.New(start, cmaes.Config{Population: c.Population, Sigma: c.Sigma, Key: rng.New(c.Seed).Split("cmaes")})
	limit := c.Iterations()
	x, losses := make([]float64, len(start)), make([]float64, s.Members())
	quiet, last := 0, e.bestLoss
	for asked := 1; iterations < limit; iterations++ {
		for k := range losses {
			if c.MaxEvaluations > 0 && asked >= c.MaxEvaluations {
				return iterations, "FunctionEvaluationLimit", false
			}
			asked++
			s.Member(k, x)
			if e.evaluate(x) != nil {
				return iterations, "Failure", false
			}
			losses[k] = e.loss
		}
		if err := s.Tell(losses); err != nil {
			e.err = err
			return iterations, "Failure", false
		}
		if e.tell(iterations+1, e.bestLoss, nil) != nil {
			return iterations + 1, "Failure", false
		}
		if s.Collapsed() {
			return iterations + 1, "MethodConverge", true
		}
		if quiet++; last-e.bestLoss > c.FuncTol {
			quiet, last = 0, e.bestLoss
		}
		if c.FuncIterations > 0 && quiet >= c.FuncIterations {
			return iterations + 1, "FunctionConvergence", true
		}
	}
	return iterations, "IterationLimit", false
}
