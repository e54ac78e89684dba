package meta

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// divergence computes KL(π_selected ‖ π_mean) of Gaussian or categorical policies in closed form:
// estimates of it by samples, differentiated, are gradients of something else (Tang and Munos 2025,
// arXiv 2506.09477).
//
// The mean of categorical policies is their mean probability, head by head. That of Gaussian
// policies is a mixture, whose divergence has no closed form; the Gaussian of its mean and variance
// is in its place. Policies that are squashed and rescaled alike have the divergence of what they
// are before.
type divergence struct {
	heads []int     // of categorical policies
	std   []float64 // [elements] of policies that have none
	// mean and spread [experts, elements] are those of Gaussian policies, or probabilities.
	mean, spread [][]float64
}

func newDivergence(space envs.Space, experts int, noise float64) (*divergence, error) {
	d := &divergence{}
	n := 0
	switch s := space.(type) {
	case envs.Discrete:
		d.heads = []int{s.N}
	case envs.MultiDiscrete:
		d.heads = s.N
	case envs.Box:
		if s.Of != tensor.Float32 {
			return nil, fmt.Errorf("actions of %v: only float32 is known", s)
		}
		n, _ = tensor.Len(s.Dims)
		for i := range n {
			half := 1.0
			if r := s.Bounds(i); !math.IsInf(r.High-r.Low, 0) {
				half = (r.High - r.Low) / 2
			}
			d.std = append(d.std, noise*half)
		}
	default:
		return nil, fmt.Errorf("actions of %v: expected discrete ones or a box", space)
	}
	for _, h := range d.heads {
		n += h
	}
	for range experts {
		d.mean, d.spread = append(d.mean, make([]float64, n)), append(d.spread, make([]float64, n))
	}
	return d, nil
}

// take keeps what expert i would do.
func (d *divergence) take(i int, a *vector.Decision) error {
	mean, spread := d.mean[i], d.spread[i]
	if d.heads != nil {
		var logs []float32
		if a.Logits != nil {
			logs = a.Logits.Float32s()
		}
		if len(logs) != len(mean) {
			return fmt.Errorf("expert %d gives %d log-probabilities, expected %d", i, len(logs), len(mean))
		}
		for k, l := range logs {
			mean[k] = math.Exp(float64(l))
		}
		return nil
	}
	from := a.Mean
	if from == nil {
		from = a.Actions.Float32s()
	}
	if len(from) != len(mean) || a.LogStd != nil && len(a.LogStd) != len(mean) {
		return fmt.Errorf("expert %d gives a mean of %d and a standard deviation of %d elements, expected %d", i, len(from), len(a.LogStd), len(mean))
	}
	for k, m := range from {
		mean[k], spread[k] = float64(m), d.std[k]
		if a.LogStd != nil {
			spread[k] = math.Exp(float64(a.LogStd[k]))
		}
	}
	return nil
}

// of is the divergence of the mixture with the given shares from the mean of all, in nats, divided
// by the number of heads or elements.
func (d *divergence) of(shares []float64) float64 {
	if d.heads != nil {
		return d.categorical(shares)
	}
	sum := 0.0
	for k := range d.std {
		m, v := moments(d.mean, d.spread, k, func(i int) float64 { return shares[i] })
		m0, v0 := moments(d.mean, d.spread, k, func(int) float64 { return 1 / float64(len(d.mean)) })
		sum += 0.5 * (math.Log(v0/v) + (v+(m-m0)*(m-m0))/v0 - 1)
	}
	return max(0, sum/float64(len(d.std)))
}

// moments are mean and variance of element k of a mixture.
func moments(mean, spread [][]float64, k int, share func(int) float64) (m, v float64) {
	for i := range mean {
		m += share(i) * mean[i][k]
	}
	for i := range mean {
		d := mean[i][k] - m
		v += share(i) * (spread[i][k]*spread[i][k] + d*d)
	}
	return m, v
}

func (d *divergence) categorical(shares []float64) float64 {
	sum := 0.0
	for k := range d.mean[0] {
		p, q := 0.0, 0.0
		for i := range d.mean {
			p += shares[i] * d.mean[i][k]
			q += d.mean[i][k] / float64(len(d.mean))
		}
		if p > 0 {
			sum += p * math.Log(p/q)
		}
	}
	return max(0, sum/float64(len(d.heads)))
}
