package evolve

import "math"

// process is a Gaussian process of mean 0 and variance 1 over points and time.
type process struct {
	scale, decay, noise float64
	points              []observation
	// told counts the points that have values; the others are expected.
	told int
	// chol is the lower triangle of the Cholesky factor of the points' covariance, row by row, and
	// alpha solves it for the values of those that have some.
	chol  [][]float64
	alpha []float64
}

// fit returns the process with the parameters that are likeliest.
func fit(list []observation) *process {
	var best *process
	high := math.Inf(-1)
	for _, scale := range []float64{0.1, 0.2, 0.5, 1, 2} {
		for _, decay := range []float64{0.01, 0.1, 0.3} {
			for _, noise := range []float64{0.01, 0.1, 0.5} {
				p := &process{scale: scale, decay: decay, noise: noise}
				for _, o := range list {
					p.add(o)
				}
				p.told = len(list)
				if l := p.likelihood(); best == nil || l > high {
					best, high = p, l
				}
			}
		}
	}
	return best
}

func (p *process) kernel(x []float64, t float64, o *observation) float64 {
	d := 0.0
	for i := range x {
		d += (x[i] - o.x[i]) * (x[i] - o.x[i])
	}
	return math.Exp(-d/(2*p.scale*p.scale)) * math.Pow(1-p.decay, math.Abs(t-o.t)/2)
}

// forward solves the factor for the covariances of a point: what its variance falls by is the sum
// of the squares.
func (p *process) forward(x []float64, t float64) []float64 {
	v := make([]float64, len(p.points))
	for i := range p.points {
		v[i] = p.kernel(x, t, &p.points[i])
		for k := range i {
			v[i] -= p.chol[i][k] * v[k]
		}
		v[i] /= p.chol[i][i]
	}
	return v
}

// add appends a point to the factor.
func (p *process) add(o observation) {
	row := p.forward(o.x, o.t)
	rest := 1 + p.noise
	for _, c := range row {
		rest -= c * c
	}
	p.points = append(p.points, o)
	p.chol = append(p.chol, append(row, math.Sqrt(max(rest, 1e-9))))
}

// expect adds a point without a value, which lowers the variance around it.
func (p *process) expect(x []float64, t float64) { p.add(observation{x: x, t: t}) }

// likelihood returns the logarithm of the marginal one of the values, without a constant, and
// solves for them.
func (p *process) likelihood() float64 {
	n := p.told
	z, l := make([]float64, n), 0.0
	for i := range n {
		z[i] = p.points[i].y
		for k := range i {
			z[i] -= p.chol[i][k] * z[k]
		}
		z[i] /= p.chol[i][i]
		l -= z[i]*z[i]/2 + math.Log(p.chol[i][i])
	}
	p.alpha = z
	for i := n - 1; i >= 0; i-- {
		for k := i + 1; k < n; k++ {
			z[i] -= p.chol[k][i] * z[k]
		}
		z[i] /= p.chol[i][i]
	}
	return l
}

// bound is the upper confidence bound after n observations: the mean and √β standard deviations,
// β = 0.2 + log(0.4 n).
func (p *process) bound(x []float64, t float64, n int) float64 {
	mean, variance := 0.0, 1.0
	for i, a := range p.alpha {
		mean += a * p.kernel(x, t, &p.points[i])
	}
	for _, v := range p.forward(x, t) {
		variance -= v * v
	}
	beta := 0.2 + max(0, math.Log(0.4*float64(n)))
	return mean + math.Sqrt(beta*max(variance, 0))
}
