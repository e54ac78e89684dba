package ppo

import (
	"errors"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// The constants of ValueNorm of the authors' code of MAPPO: how slowly the averages move, what they
// are divided by at least, and the least variance.
const (
	normBeta        = 0.99999
	normEpsilon     = 1e-5
	normMinVariance = 1e-2
)

// valueNorm has the moving averages of returns that a value is trained on relative to.
type valueNorm struct {
	// mean and square are those of returns and their squares, begun at 0, and weight that of 1:
	// what the former are divided by.
	mean, square, weight float64
	// before are the moments at the beginning of the update, those that the rollout's values were
	// estimated under.
	before [2]float64
	// kernel and bias are the last layer of the value where it moves with the averages (PopArt).
	kernel, bias []float32
}

// newValueNorm returns what a configuration asks for; nil for none.
func newValueNorm(c Config, p *models.Params) (*valueNorm, error) {
	if c.NormalizeValue == None {
		return nil, nil
	}
	n := &valueNorm{}
	if c.NormalizeValue == PopArt {
		const layer = onpolicy.CriticScope + ".value"
		for _, at := range []struct {
			name string
			to   *[]float32
		}{{layer + ".weight", &n.kernel}, {layer + ".bias", &n.bias}} {
			seg := p.Segment(models.Trainable)
			for i, s := range seg.Specs() {
				if s.Name == at.name {
					*at.to = seg.View(i).Float32s()
				}
			}
			if *at.to == nil {
				return nil, fmt.Errorf("normalize_value: %s changes %s, which train and freeze leave as it is", PopArt, at.name)
			}
		}
	}
	return n, nil
}

// moments returns mean and standard deviation.
func (n *valueNorm) moments() (mean, std float64) {
	w := max(n.weight, normEpsilon)
	mean = n.mean / w
	return mean, math.Sqrt(max(n.square/w-mean*mean, normMinVariance))
}

// begin turns the values of a rollout, as the network gave them, into returns.
func (n *valueNorm) begin(r *onpolicy.Rollout) {
	mean, std := n.moments()
	n.before = [2]float64{mean, std}
	for _, list := range [][]float64{r.Value, r.Final, r.Bootstrap} {
		for i, v := range list {
			list[i] = v*std + mean
		}
	}
}

// update moves the averages on by the targets of the minibatch.
func (n *valueNorm) update(l *learner) {
	var sum, square float64
	for row, i := range l.learn.samples {
		if l.learn.valid[row] {
			sum, square = sum+l.Target[i], square+l.Target[i]*l.Target[i]
		}
	}
	k := float64(l.learn.n)
	was, wide := n.moments()
	n.mean, n.square, n.weight = normBeta*n.mean+(1-normBeta)*sum/k, normBeta*n.square+(1-normBeta)*square/k, normBeta*n.weight+(1-normBeta)
	mean, std := n.moments()
	for i, w := range n.kernel {
		n.kernel[i] = float32(float64(w) * wide / std)
	}
	for i, b := range n.bias {
		n.bias[i] = float32((float64(b)*wide + was - mean) / std)
	}
}

// apply returns a target, and a value of the rollout as the network gave it, relative to the
// averages; without these, as they are.
func (n *valueNorm) apply(target, value float64) (float64, float64) {
	if n == nil {
		return target, value
	}
	mean, std := n.moments()
	from := n.before
	if n.kernel != nil {
		// The network would give it otherwise by now.
		from = [2]float64{mean, std}
	}
	return (target - mean) / std, (value - from[0]) / from[1]
}

// normEntry is the name in a checkpoint.
const normEntry = "value_norm"

// numbers are what a checkpoint has.
func (n *valueNorm) numbers() []float64 {
	return []float64{n.mean, n.square, n.weight, n.before[0], n.before[1]}
}

// save puts the averages, and load takes them back.
func (n *valueNorm) save(w *checkpoint.Writer) {
	if n != nil {
		w.PutFloat64s(normEntry, n.numbers())
	}
}

func (n *valueNorm) load(r *checkpoint.Reader) error {
	switch saved := r.Has(normEntry); {
	case n == nil && saved:
		return errors.New("the saved value is normalised, and normalize_value: none expects one that is not")
	case n != nil && !saved:
		return errors.New("the saved value is not normalised, and normalize_value expects one that is")
	case n == nil:
		return nil
	}
	x := n.numbers()
	if err := r.Float64sInto(normEntry, x, len(x)); err != nil {
		return err
	}
	n.mean, n.square, n.weight, n.before = x[0], x[1], x[2], [2]float64{x[3], x[4]}
	return nil
}
