package bake

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Loss is how far a model of lower precision is from the one that it was made of.
type Loss struct {
	// Rows and Values count compared rows and floating-point output elements.
	Rows   int `json:"rows"`
	Values int `json:"values"`
	// MaxDelta and MeanDelta are of |Δ| over all values. NaN or infinity where the full model gives
	// a number is an error.
	MaxDelta  float64 `json:"max_delta"`
	MeanDelta float64 `json:"mean_delta"`
	// Choices counts the elements of all other outputs, such as actions, and Changed those that are
	// not the same.
	Choices int `json:"choices"`
	Changed int `json:"changed"`
	// KL is the mean over rows of the Kullback-Leibler divergence of the reduced policy from the
	// full one, in nats, and MaxKL the largest of a row; absent where the model does not tell its
	// distribution.
	KL    *float64 `json:"kl,omitempty"`
	MaxKL *float64 `json:"max_kl,omitempty"`
	// MaxAction and MeanAction are of |Δ| of a continuous action by the range of its element;
	// absent where actions are none or have no bounds.
	MaxAction  *float64 `json:"max_action_delta,omitempty"`
	MeanAction *float64 `json:"mean_action_delta,omitempty"`
}

// LossPolicy says what outputs mean where the models are policies.
type LossPolicy struct {
	// Choices are compared by their log-probabilities, where Scores is LogProbs.
	Choices  []Choice
	LogProbs string
	// Gaussian is the distribution of a continuous action, nil for none.
	Gaussian *Gaussian
	// Action is a float32 output [batch, …] with the lowest and highest value of every element of a
	// row, empty for none.
	Action    string
	Low, High []float64
}

// Losses measures a [Loss] block by block. It is not safe for concurrent use.
type Losses struct {
	full, reduced engine.Session
	memory        []models.State
	policy        LossPolicy
	loss          Loss
	sum           float64
	// kl and action are sums over klRows rows and actions elements.
	kl, action           float64
	klRows, actions      int
	largestKL, farAction float64
}

// NewLosses compiles both models. The reduced one may have further outputs behind those of the full
// one. Both remember the same.
func NewLosses(c engine.Compiler, full, reduced *onnx.Model, p LossPolicy) (_ *Losses, err error) {
	l := &Losses{policy: p}
	defer func() {
		if err != nil {
			err = fmt.Errorf("measure loss: %w", errors.Join(err, l.Close()))
		}
	}()
	if l.memory, err = models.States(full); err != nil {
		return nil, err
	}
	if l.full, err = c.Compile(full, engine.Options{}); err != nil {
		return nil, err
	}
	if l.reduced, err = c.Compile(reduced, engine.Options{}); err != nil {
		return nil, err
	}
	for i, p := range l.full.Outputs() {
		if i >= len(l.reduced.Outputs()) || l.reduced.Outputs()[i].Name != p.Name {
			return nil, fmt.Errorf("the outputs %v do not begin with %v", l.reduced.Outputs(), l.full.Outputs())
		}
	}
	return l, nil
}

// Close frees both sessions.
func (l *Losses) Close() error {
	var errs []error
	for _, s := range []engine.Session{l.full, l.reduced} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Add compares both models on a block of rows by input name. A model that remembers goes through
// them one by one with its own memory, which begins again where begins [rows] says so, and never
// receives that of the other: the sum of its errors is part of the loss. Others take no begins.
func (l *Losses) Add(ctx context.Context, inputs map[string]*tensor.Tensor, begins []bool) error {
	if len(l.memory) == 0 {
		if err := l.plain(ctx, inputs); err != nil {
			return fmt.Errorf("measure loss: %w", err)
		}
		return nil
	}
	var kept [2]map[string]*tensor.Tensor
	for row := range begins {
		var in [2]map[string]*tensor.Tensor
		for k := range in {
			in[k] = map[string]*tensor.Tensor{}
			for name, t := range inputs {
				in[k][name] = t.Rows(row, row+1)
			}
			for _, s := range l.memory {
				in[k][s.Input] = s.Tensor(1)
				if row > 0 && !begins[row] {
					in[k][s.Input] = kept[k][s.Input]
				}
			}
		}
		want, got, err := l.both(ctx, in[0], in[1])
		if err == nil {
			err = l.compare(want, got)
		}
		if err != nil {
			return fmt.Errorf("measure loss: row %d: %w", row, err)
		}
		for k, out := range [][]*tensor.Tensor{want, got} {
			kept[k] = map[string]*tensor.Tensor{}
			for _, s := range l.memory {
				kept[k][s.Input] = out[output(l.full, s.Output)]
			}
		}
	}
	return nil
}

// plain compares rows that have nothing to do with each other, at once or as many as the model takes.
func (l *Losses) plain(ctx context.Context, inputs map[string]*tensor.Tensor) error {
	block := func(inputs map[string]*tensor.Tensor) error {
		want, got, err := l.both(ctx, inputs, inputs)
		if err == nil {
			err = l.compare(want, got)
		}
		return err
	}
	names := slices.Collect(maps.Keys(inputs))
	n := fixedBatch(l.full, names)
	if n == 0 || len(names) == 0 {
		return block(inputs)
	}
	return inBatches(inputs[names[0]].Shape()[0], n, func(from int) error { return block(rowsOf(inputs, from, n)) })
}

// both runs both models.
func (l *Losses) both(ctx context.Context, full, reduced map[string]*tensor.Tensor) (want, got []*tensor.Tensor, err error) {
	if want, err = runOn(ctx, l.full, full); err != nil {
		return nil, nil, err
	}
	got, err = runOn(ctx, l.reduced, reduced)
	return want, got, err
}

// compare adds what both models give for some rows.
func (l *Losses) compare(want, got []*tensor.Tensor) error {
	for i, w := range want {
		g, name := got[i], l.full.Outputs()[i].Name
		if g.DType() != w.DType() || !slices.Equal(g.Shape(), w.Shape()) {
			return fmt.Errorf("output %q is %v and %v", name, w, g)
		}
		if i == 0 && w.Rank() > 0 {
			l.loss.Rows += w.Shape()[0]
		}
		if w.DType() != tensor.Float32 {
			size := w.DType().Size()
			for k := range w.Len() {
				l.loss.Choices++
				if string(w.Bytes()[k*size:(k+1)*size]) != string(g.Bytes()[k*size:(k+1)*size]) {
					l.loss.Changed++
				}
			}
			continue
		}
		for k, x := range w.Float32s() {
			y := g.Float32s()[k]
			d := math.Abs(float64(x) - float64(y))
			if x == y || x != x && y != y {
				d = 0
			} else if d-d != 0 {
				return fmt.Errorf("output %q, element %d: %g in full precision and %g in the lower one", name, k, x, y)
			}
			l.loss.Values++
			l.loss.MaxDelta = max(l.loss.MaxDelta, d)
			l.sum += d
			if n := len(l.policy.Low); name == l.policy.Action && n > 0 {
				d /= l.policy.High[k%n] - l.policy.Low[k%n]
				l.action, l.farAction = l.action+d, max(l.farAction, d)
				l.actions++
			}
		}
	}
	return l.divergence(want, got)
}

// divergence adds those of the rows' distributions.
func (l *Losses) divergence(want, got []*tensor.Tensor) error {
	var rows []float64
	for _, c := range l.policy.Choices {
		if c.Scores != l.policy.LogProbs {
			continue
		}
		i := output(l.full, c.Scores)
		w, g := want[i].Float32s(), got[i].Float32s()
		rows = make([]float64, want[i].Shape()[0])
		for k, p := range w {
			if p := float64(p); p > math.Inf(-1) {
				rows[k*len(rows)/len(w)] += math.Exp(p) * (p - float64(g[k]))
			}
		}
	}
	if n := l.policy.Gaussian; n != nil {
		mean, dev := output(l.full, n.Mean), output(l.full, n.LogStd)
		rows = make([]float64, want[mean].Shape()[0])
		for k, m := range want[mean].Float32s() {
			p, q := float64(want[dev].Float32s()[k]), float64(got[dev].Float32s()[k])
			d := float64(m) - float64(got[mean].Float32s()[k])
			rows[k*len(rows)/want[mean].Len()] += q - p + (math.Exp(2*(p-q))+d*d*math.Exp(-2*q)-1)/2
		}
	}
	for row, kl := range rows {
		if kl-kl != 0 {
			return fmt.Errorf("row %d: the divergence of the policies is %g", row, kl)
		}
		kl = max(kl, 0) // rounding of logarithms
		l.kl, l.largestKL = l.kl+kl, max(l.largestKL, kl)
		l.klRows++
	}
	return nil
}

// output is the place of an output, -1 for none.
func output(s engine.Session, name string) int {
	return slices.IndexFunc(s.Outputs(), func(p engine.Port) bool { return p.Name == name })
}

// Loss is that of all rows so far.
func (l *Losses) Loss() Loss {
	out := l.loss
	if out.Values > 0 {
		out.MeanDelta = l.sum / float64(out.Values)
	}
	if l.klRows > 0 {
		mean, most := l.kl/float64(l.klRows), l.largestKL
		out.KL, out.MaxKL = &mean, &most
	}
	if l.actions > 0 {
		mean, most := l.action/float64(l.actions), l.farAction
		out.MeanAction, out.MaxAction = &mean, &most
	}
	return out
}

// runOn runs a session on inputs by name.
func runOn(ctx context.Context, s engine.Session, inputs map[string]*tensor.Tensor) ([]*tensor.Tensor, error) {
	in, out := make([]*tensor.Tensor, len(s.Inputs())), make([]*tensor.Tensor, len(s.Outputs()))
	for i, p := range s.Inputs() {
		if in[i] = inputs[p.Name]; in[i] == nil {
			return nil, fmt.Errorf("input %v is not given", p)
		}
	}
	return out, s.Run(ctx, out, in)
}
