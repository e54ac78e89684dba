package wrap

import (
	"fmt"
	"math"
)

// Running are the mean and the variance of a stream of vectors, dimension by dimension, in float64,
// by the parallel algorithm of Chan et al. as Stable-Baselines3's RunningMeanStd has it: Count
// begins at 1e-4 and not at 0, with mean 0 and variance 1. The JSON form is complete and exact.
type Running struct {
	Mean  []float64 `json:"mean"`
	Var   []float64 `json:"var"`
	Count float64   `json:"count"`
}

// NewRunning returns statistics of n dimensions.
func NewRunning(n int) Running {
	r := Running{Mean: make([]float64, n), Var: make([]float64, n), Count: 1e-4}
	for i := range r.Var {
		r.Var[i] = 1
	}
	return r
}

// Update adds a batch of rows of len(Mean) elements, row after row. An empty batch adds nothing. It
// allocates nothing.
func Update[T float32 | float64](r *Running, batch []T) {
	d := len(r.Mean)
	rows := len(batch) / d
	if rows == 0 {
		return
	}
	n := float64(rows)
	total := r.Count + n
	for k := range d {
		sum := 0.0
		for i := k; i < len(batch); i += d {
			sum += float64(batch[i])
		}
		mean, squares := sum/n, 0.0
		for i := k; i < len(batch); i += d {
			x := float64(batch[i]) - mean
			squares += float64(x * x)
		}
		delta := mean - r.Mean[k]
		// The conversions keep compilers from fusing products and sums, which would change the last
		// bit between processors.
		m2 := float64(r.Var[k]*r.Count) + squares + float64(float64(delta*delta)*r.Count*n/total)
		r.Mean[k] += float64(delta * n / total)
		r.Var[k] = m2 / total
	}
	r.Count = total
}

// Clone returns a copy.
func (r Running) Clone() Running {
	return Running{Mean: append([]float64{}, r.Mean...), Var: append([]float64{}, r.Var...), Count: r.Count}
}

// Check returns an error for saved statistics that are not of n dimensions or not finite.
func (r Running) Check(what string, n int) error {
	if len(r.Mean) != n || len(r.Var) != n {
		return fmt.Errorf("statistics of %s: %d means and %d variances, expected %d", what, len(r.Mean), len(r.Var), n)
	}
	for i := range n {
		if r.Mean[i]-r.Mean[i] != 0 || !(r.Var[i] >= 0) || math.IsInf(r.Var[i], 0) {
			return fmt.Errorf("statistics of %s: dimension %d has mean %g and variance %g", what, i, r.Mean[i], r.Var[i])
		}
	}
	return nil
}

// Normalizer is how one field of the observation reaches a policy, by statistics that do not change
// any more: z = (x − Mean)/√(Var + Epsilon), limited to ±Clip.
type Normalizer struct {
	// Field names the field of the observation, and with it the input of the policy's network.
	Field string
	// Mean and Var have an element for each element of the field.
	Mean, Var     []float64
	Epsilon, Clip float64
}

// Apply writes the normalised elements of rows of x, each of len(Mean) elements, to z, which may be
// x. It computes in float64 and allocates nothing.
func (n *Normalizer) Apply(z, x []float32) {
	for k, mean := range n.Mean {
		std := math.Sqrt(n.Var[k] + n.Epsilon)
		for i := k; i < len(x); i += len(n.Mean) {
			z[i] = float32(min(max((float64(x[i])-mean)/std, -n.Clip), n.Clip))
		}
	}
}
