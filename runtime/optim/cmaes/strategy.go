package cmaes

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Config describes a strategy.
type Config struct {
	// Population is the number of members of a generation; 0 means 4 + ⌊3·ln n⌋.
	Population int
	// Sigma is the initial standard deviation in each coordinate; 0 means 0.5.
	Sigma float64
	// Key is where samples descend from.
	Key rng.Key
}

// Strategy is a distribution over points of n coordinates. It is not safe for concurrent use, but
// several goroutines may ask for members at once.
type Strategy struct {
	n, mu               int
	weights             []float64
	muEff               float64
	cc, cs, c1, cmu, ds float64
	chi                 float64 // expected norm of a standard normal vector

	key        rng.Key
	stream     rng.Stream
	generation int
	mean       []float64
	sigma      float64
	chol       mat.Cholesky // of the covariance C = AᵀA
	pc, ps     []float64    // evolution paths of C and of sigma

	samples []sample
	order   []int
	y, z    []float64
}

// sample is a member: x = mean + sigma·y with y = Aᵀz.
type sample struct {
	z, y []float64
	// zv and yv are the same as gonum has vectors.
	zv, yv *mat.VecDense
}

// New returns a strategy around start [n], n ≥ 1, which it copies.
func New(start []float64, c Config) *Strategy {
	n := len(start)
	d := float64(n)
	if c.Population == 0 {
		c.Population = 4 + int(3*math.Log(d))
	}
	if c.Sigma == 0 {
		c.Sigma = 0.5
	}
	s := &Strategy{n: n, key: c.Key, sigma: c.Sigma, mean: slices.Clone(start), samples: make([]sample, c.Population), order: make([]int, c.Population)}
	s.mu = max(1, c.Population/2)
	s.weights = make([]float64, s.mu)
	for i := range s.weights {
		s.weights[i] = math.Log(float64(c.Population+1)/2) - math.Log(float64(i+1))
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
	s.pc, s.ps, s.y, s.z = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	for k := range s.samples {
		p := sample{z: make([]float64, n), y: make([]float64, n)}
		p.zv, p.yv = mat.NewVecDense(n, p.z), mat.NewVecDense(n, p.y)
		s.samples[k] = p
	}
	a := mat.NewTriDense(n, mat.Upper, nil)
	for i := range n {
		a.SetTri(i, i, 1)
	}
	s.chol.SetFromU(a)
	s.draw()
	return s
}

// Members is how many a generation has.
func (s *Strategy) Members() int { return len(s.samples) }

// Mean is the present mean [n], which the strategy owns and Tell overwrites.
func (s *Strategy) Mean() []float64 { return s.mean }

// Sigma is the present step size.
func (s *Strategy) Sigma() float64 { return s.sigma }

// Member writes member k of the present generation to x [n].
func (s *Strategy) Member(k int, x []float64) {
	for i, y := range s.samples[k].y {
		x[i] = s.mean[i] + float64(s.sigma*y)
	}
}

// draw makes the samples of the present generation.
func (s *Strategy) draw() {
	for k := range s.samples {
		p := &s.samples[k]
		s.stream.Seed(s.key.Split("member", s.generation, k))
		for i := range p.z {
			p.z[i] = s.stream.Normal()
		}
		p.yv.MulVec(s.chol.RawU().T(), p.zv)
	}
}

// Tell moves mean, paths, covariance and step size towards the better half of the generation, and
// draws the next one. losses [members] has one for each, and no NaN; of equal ones the first counts
// as the better.
func (s *Strategy) Tell(losses []float64) error {
	if len(losses) != len(s.samples) || slices.ContainsFunc(losses, math.IsNaN) {
		return fmt.Errorf("cmaes: %d losses, expected a number for each of %d members", len(losses), len(s.samples))
	}
	for k := range s.order {
		s.order[k] = k
	}
	slices.SortStableFunc(s.order, func(a, b int) int {
		switch {
		case losses[a] < losses[b]:
			return -1
		case losses[a] > losses[b]:
			return 1
		}
		return 0
	})
	s.update()
	s.generation++
	s.draw()
	return nil
}

func (s *Strategy) update() {
	clear(s.y)
	clear(s.z)
	for k, w := range s.weights {
		floats.AddScaled(s.y, w, s.samples[s.order[k]].y)
		floats.AddScaled(s.z, w, s.samples[s.order[k]].z)
	}
	floats.AddScaled(s.mean, s.sigma, s.y)

	floats.Scale(1-s.cs, s.ps)
	floats.AddScaled(s.ps, math.Sqrt(s.cs*(2-s.cs)*s.muEff), s.z)
	norm := floats.Norm(s.ps, 2)

	// While the step size grows fast, the covariance path stands still.
	d := float64(s.n)
	expected := math.Sqrt(1 - math.Pow(1-s.cs, float64(2*(s.generation+1))))
	moving := norm/expected < (1.4+2/(d+1))*s.chi
	floats.Scale(1-s.cc, s.pc)
	lost := s.cc * (2 - s.cc)
	if moving {
		floats.AddScaled(s.pc, math.Sqrt(lost*s.muEff), s.y)
		lost = 0
	}
	s.chol.Scale(1-s.c1-s.cmu+s.c1*lost, &s.chol)
	s.chol.SymRankOne(&s.chol, s.c1, mat.NewVecDense(s.n, s.pc))
	for k, w := range s.weights {
		s.chol.SymRankOne(&s.chol, s.cmu*w, s.samples[s.order[k]].yv)
	}
	s.sigma *= math.Exp(s.cs / s.ds * (norm/s.chi - 1))
}

// Collapsed reports whether members no longer differ as float32.
func (s *Strategy) Collapsed() bool {
	a := s.chol.RawU()
	for j := range s.n {
		variance := 0.0
		for i := range j + 1 {
			variance += a.At(i, j) * a.At(i, j)
		}
		if s.sigma*math.Sqrt(variance) > 1e-7*max(1, math.Abs(s.mean[j])) {
			return false
		}
	}
	return true
}
