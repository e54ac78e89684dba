package dqn

import (
	"fmt"
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/valuebased"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

// naive is the network in float64: one hidden layer over x and the one-hot kind.
type naive map[string][]float64

func naiveOf(p *models.Params) naive {
	n := naive{}
	for _, s := range p.Segments() {
		for i, spec := range s.Specs() {
			for _, v := range s.View(i).Float32s() {
				n[spec.Name] = append(n[spec.Name], float64(v))
			}
		}
	}
	return n
}

func (n naive) linear(name string, x []float64) []float64 {
	w, b := n[name+".weight"], n[name+".bias"]
	y := make([]float64, len(b))
	for i := range y {
		y[i] = b[i]
		for j, v := range x {
			y[i] += w[i*len(x)+j] * v
		}
	}
	return y
}

// q returns the values of all actions.
func (n naive) q(x []float32, kind int64) []float64 {
	in := make([]float64, 6)
	for i, v := range x {
		in[i] = float64(v)
	}
	in[3+kind] = 1
	h := n.linear("hidden.fc0", in)
	for i := range h {
		h[i] = max(0, h[i])
	}
	if n["q.weight"] != nil {
		return n.linear("q", h)
	}
	v, a := n.linear("value", h)[0], n.linear("advantage", h)
	mean := 0.0
	for _, x := range a {
		mean += x / float64(len(a))
	}
	for i := range a {
		a[i] += v - mean
	}
	return a
}

func argmax(q []float64, mask []bool) int {
	best := -1
	for a, v := range q {
		if mask[a] && (best < 0 || v > q[best]) {
			best = a
		}
	}
	return best
}

// TestStepByFormula compares targets, errors, loss, gradient and update of a learner step with the
// formulas of the package comment.
func TestStepByFormula(t *testing.T) {
	cases, compared := 0, 0
	for _, e := range testengines.All(t) {
		for k := range 8 {
			c := Defaults()
			c.Hidden, c.BatchSize, c.BufferSize, c.LearningStarts, c.TrainFreq, c.TargetUpdateInterval, c.MaxGradNorm = []int{7}, 12, 200, 20, 4, 24, 0
			c.Optimizer, c.LearningRate = optim.Config{Kind: "sgd"}, 0.05
			c.Double, c.Duelling, c.Prioritised.Enabled = k&1 > 0, k&2 > 0, k&4 > 0
			if k > 4 {
				c.NSteps = 3
			}
			r, l := training(t, c, agenttest.Toys(t, 2, agenttest.Choice()), e, 400)
			for l.Updates < 10 {
				r.Update(t)
			}
			for !l.Ready() {
				r.Round(t)
			}
			online := naiveOf(l.Params)
			m := r.Learn(t)
			target := naiveOf(l.Target)
			loss := check(t, &c, l, online, target)
			if math.Abs(loss-m["train/loss"]) > 1e-5*(1+loss) {
				t.Errorf("case %d: loss %g, expected %g", k, m["train/loss"], loss)
			}
			compared += checkGradient(t, l, online, fmt.Sprint("case ", k))
			cases++
		}
	}
	if cases < 8 || compared < 8*50 {
		t.Errorf("%d cases, %d derivatives", cases, compared)
	}
}

// huber returns the loss of the samples for a network.
func huber(l *valuebased.Learner, n naive) (loss float64) {
	for i, y := range l.Y {
		d := n.q(l.Batch.Obs[0].Float32s()[3*i:3*i+3], l.Batch.Obs[1].Int64s()[i])[l.Batch.Action.Int64s()[i]] - float64(y)
		h := math.Abs(d) - 0.5
		if math.Abs(d) <= 1 {
			h = d * d / 2
		}
		loss += h * float64(l.Weights[i])
	}
	return loss
}

// check compares targets and errors, and returns the loss.
func check(t *testing.T, c *Config, l *valuebased.Learner, online, target naive) float64 {
	t.Helper()
	b := &l.Batch
	for i := range l.Y {
		x, kind := b.NextObs[0].Float32s()[3*i:3*i+3], b.NextObs[1].Int64s()[i]
		mask, q := b.NextMask.Bools()[4*i:4*i+4], target.q(x, kind)
		by := q
		if c.Double {
			by = online.q(x, kind)
		}
		y := float64(b.Reward[i]) + float64(b.Discount[i])*q[argmax(by, mask)]
		if math.Abs(y-float64(l.Y[i])) > 1e-4 {
			t.Errorf("sample %d: target %g, expected %g", i, l.Y[i], y)
		}
		d := online.q(b.Obs[0].Float32s()[3*i:3*i+3], b.Obs[1].Int64s()[i])[b.Action.Int64s()[i]] - y
		if math.Abs(d-float64(l.Errors[i])) > 1e-4 {
			t.Errorf("sample %d: error %g, expected %g", i, l.Errors[i], d)
		}
		if !c.Prioritised.Enabled && l.Weights[i] != 1/float32(len(l.Y)) {
			t.Errorf("sample %d: weight %g", i, l.Weights[i])
		}
	}
	return huber(l, online)
}

// checkGradient compares the gradient with differences of the loss, and the parameters with what
// they were less the learning rate times it. It returns how many derivatives it compared.
func checkGradient(t *testing.T, l *valuebased.Learner, before naive, what string) (n int) {
	t.Helper()
	seg := l.Params.Segment(models.Trainable)
	for i, s := range seg.Specs() {
		off, size := seg.Range(i)
		for k := range size {
			const h = 1e-5
			x := before[s.Name][k]
			before[s.Name][k] = x + h
			up := huber(l, before)
			before[s.Name][k] = x - h
			down := huber(l, before)
			before[s.Name][k] = x
			want, got := (up-down)/(2*h), float64(l.Grads.Floats()[off+k])
			if math.Abs(want-got) > 1e-4*(1+math.Abs(want)) {
				t.Errorf("%s: derivative %d of %s is %g, expected %g", what, k, s.Name, got, want)
			}
			if now := float64(seg.View(i).Float32s()[k]); math.Abs(now-(x-0.05*got)) > 1e-6 {
				t.Errorf("%s: %s[%d] became %g from %g with the derivative %g", what, s.Name, k, now, x, got)
			}
			n++
		}
	}
	return n
}
