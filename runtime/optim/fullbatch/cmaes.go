package fullbatch

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"
)

// cmaes is the evolution strategy with covariance matrix adaptation as in
// Hansen, "The CMA Evolution Strategy: A Tutorial" (2016), with two deviations:
// the covariance is kept as its Cholesky factor and updated in place (Krause,
// Arbonès & Igel 2016), so a generation costs n^2 per sample and the path of
// the step size uses the factor in place of the symmetric root; and weights of
// the worse half are zero.
//
// gonum's CmaEsChol (v0.17.0) is not used: it samples without the step size it
// adapts, and needs tens of thousands of evaluations for a six-dimensional
// sphere, where about a thousand suffice.
type cmaes struct {
	n, lambda, mu       int
	weights             []float64
	muEff               float64
	cc, cs, c1, cmu, ds float64
	chi                 float64 // expected norm of a standard normal vector

	rng    *rand.Rand
	mean   []float64
	sigma  float64
	chol   mat.Cholesky // of the covariance C = U^T U
	pc, ps []float64    // evolution paths of C and of sigma
}

func newCMAES(c Config, start []float64) *cmaes {
	n := len(start)
	d := float64(n)
	s := &cmaes{n: n, lambda: c.Population, sigma: c.Sigma, mean: slices.Clone(start)}
	if s.lambda == 0 {
		s.lambda = 4 + int(3*math.Log(d))
	}
	if s.sigma == 0 {
		s.sigma = 0.5
	}
	s.mu = max(1, s.lambda/2)
	s.weights = make([]float64, s.mu)
	for i := range s.weights {
		s.weights[i] = math.Log(float64(s.lambda+1)/2) - math.Log(float64(i+1))
	}
	if s.mu == 1 {
		s.weights[0] = 1
	}
	floats.Scale(1/floats.Sum(s.weights), s.weights)
	s.muEff = 1 / floats.Dot(s.weights, s.weights)
	s.cs = (s.muEff + 2) / (d + s.muEff + 5)
	s.ds = 1 + s.cs + 2*max(0, math.Sqrt((s.muEff-1)/(d+1))-1)
	s.cc = (4 + s.muEff/d) / (d + 4 + 2*s.muEff/d)
	s.c1 = 2 / ((d+1.3)*(d+1.3) + s.muEff)
	s.cmu = min(1-s.c1, 2*(s.muEff-2+1/s.muEff)/((d+2)*(d+2)+s.muEff))
	s.chi = math.Sqrt(d) * (1 - 1/(4*d) + 1/(21*d*d))
	s.rng = rand.New(rand.NewPCG(c.Seed, 0x636d616573))
	s.pc, s.ps = make([]float64, n), make([]float64, n)
	u := mat.NewTriDense(n, mat.Upper, nil)
	for i := range n {
		u.SetTri(i, i, 1)
	}
	s.chol.SetFromU(u)
	return s
}

// sample is one candidate: x = mean + sigma*y with y = U^T z.
type sample struct {
	z, y []float64
	loss float64
}

// run evolves until a limit of c, an error in e, or convergence: every
// coordinate's spread below float32's resolution around the mean.
func (s *cmaes) run(e *evaluator, c Config) (iterations int, status string, converged bool) {
	limit := c.MaxIterations
	if limit == 0 {
		limit = 1000
	}
	samples := make([]sample, s.lambda)
	for k := range samples {
		samples[k] = sample{z: make([]float64, s.n), y: make([]float64, s.n)}
	}
	x := make([]float64, s.n)
	quiet, last := 0, e.bestLoss
	for asked := 1; iterations < limit; iterations++ {
		for k := range samples {
			if c.MaxEvaluations > 0 && asked >= c.MaxEvaluations {
				return iterations, "FunctionEvaluationLimit", false
			}
			asked++
			s.draw(&samples[k])
			copy(x, s.mean)
			floats.AddScaled(x, s.sigma, samples[k].y)
			if e.evaluate(x) != nil {
				return iterations, "Failure", false
			}
			samples[k].loss = e.loss
		}
		slices.SortStableFunc(samples, func(a, b sample) int {
			switch {
			case a.loss < b.loss:
				return -1
			case a.loss > b.loss:
				return 1
			}
			return 0
		})
		s.update(samples[:s.mu], iterations)
		if s.collapsed() {
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

func (s *cmaes) draw(p *sample) {
	for i := range p.z {
		p.z[i] = s.rng.NormFloat64()
	}
	mat.NewVecDense(s.n, p.y).MulVec(s.chol.RawU().T(), mat.NewVecDense(s.n, p.z))
}

// update moves mean, paths, covariance and step size towards the better half,
// sorted best first.
func (s *cmaes) update(best []sample, generation int) {
	y, z := make([]float64, s.n), make([]float64, s.n)
	for k, w := range s.weights {
		floats.AddScaled(y, w, best[k].y)
		floats.AddScaled(z, w, best[k].z)
	}
	floats.AddScaled(s.mean, s.sigma, y)

	floats.Scale(1-s.cs, s.ps)
	floats.AddScaled(s.ps, math.Sqrt(s.cs*(2-s.cs)*s.muEff), z)
	norm := blas64.Nrm2(blas64.Vector{N: s.n, Data: s.ps, Inc: 1})

	// While the step size grows fast, the covariance path stands still.
	d := float64(s.n)
	expected := math.Sqrt(1 - math.Pow(1-s.cs, float64(2*(generation+1))))
	moving := norm/expected < (1.4+2/(d+1))*s.chi
	floats.Scale(1-s.cc, s.pc)
	lost := s.cc * (2 - s.cc)
	if moving {
		floats.AddScaled(s.pc, math.Sqrt(lost*s.muEff), y)
		lost = 0
	}
	s.chol.Scale(1-s.c1-s.cmu+s.c1*lost, &s.chol)
	s.chol.SymRankOne(&s.chol, s.c1, mat.NewVecDense(s.n, s.pc))
	for k, w := range s.weights {
		s.chol.SymRankOne(&s.chol, s.cmu*w, mat.NewVecDense(s.n, best[k].y))
	}
	s.sigma *= math.Exp(s.cs / s.ds * (norm/s.chi - 1))
}

// collapsed reports whether samples no longer differ as float32.
func (s *cmaes) collapsed() bool {
	u := s.chol.RawU()
	for j := range s.n {
		variance := 0.0
		for i := range j + 1 {
			variance += u.At(i, j) * u.At(i, j)
		}
		if s.sigma*math.Sqrt(variance) > 1e-7*max(1, math.Abs(s.mean[j])) {
			return false
		}
	}
	return true
}
