package bake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Loss is how far a model of lower precision is from the one that it was made of.
type Loss struct {
	// Rows and Values count compared rows and floating-point output elements.
	Rows   int `json:"rows"`
	Values int `json:"values"`
	// MaxDelta and MeanDelta are of |Δ| over all values, NaN differing from numbers by infinity.
	MaxDelta  float64 `json:"max_delta"`
	MeanDelta float64 `json:"mean_delta"`
	// Choices counts the elements of all other outputs, such as actions, and Changed those that are
	// not the same.
	Choices int `json:"choices"`
	Changed int `json:"changed"`
}

// Losses measures a [Loss] block by block. It is not safe for concurrent use.
type Losses struct {
	full, reduced engine.Session
	loss          Loss
	sum           float64
}

// NewLosses compiles both models. The reduced one may have further outputs behind those of the full
// one.
func NewLosses(c engine.Compiler, full, reduced *onnx.Model) (_ *Losses, err error) {
	l := &Losses{}
	defer func() {
		if err != nil {
			err = fmt.Errorf("measure loss: %w", errors.Join(err, l.Close()))
		}
	}()
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

// Add compares both models on a block of rows by input name.
func (l *Losses) Add(ctx context.Context, inputs map[string]*tensor.Tensor) error {
	want, err := runOn(ctx, l.full, inputs)
	if err != nil {
		return fmt.Errorf("measure loss: %w", err)
	}
	got, err := runOn(ctx, l.reduced, inputs)
	if err != nil {
		return fmt.Errorf("measure loss: %w", err)
	}
	for i, w := range want {
		g := got[i]
		if g.DType() != w.DType() || !slices.Equal(g.Shape(), w.Shape()) {
			return fmt.Errorf("measure loss: output %q is %v and %v", l.full.Outputs()[i].Name, w, g)
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
			d := math.Abs(float64(x) - float64(g.Float32s()[k]))
			if x == g.Float32s()[k] || x != x && g.Float32s()[k] != g.Float32s()[k] {
				d = 0
			} else if d != d {
				d = math.Inf(1)
			}
			l.loss.Values++
			l.loss.MaxDelta = max(l.loss.MaxDelta, d)
			l.sum += d
		}
	}
	return nil
}

// Loss is that of all rows so far.
func (l *Losses) Loss() Loss {
	out := l.loss
	if out.Values > 0 {
		out.MeanDelta = l.sum / float64(out.Values)
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
