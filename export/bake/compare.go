package bake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// batch compares rows [from, from+n), each form with its states for all rows.
func (v *Prover) batch(ctx context.Context, from, n int, trained, served []*tensor.Tensor) error {
	part := func(all []*tensor.Tensor) []*tensor.Tensor {
		out := make([]*tensor.Tensor, len(all))
		for i, t := range all {
			out[i] = t.Rows(from, from+n)
		}
		return out
	}
	raw := make([]*tensor.Tensor, len(v.inputs))
	for i := range raw {
		raw[i] = v.p.raw(i)
	}
	_, _, err := v.compare(ctx, part(v.p.Samples), part(raw), part(trained), part(served), n, func(row int) int { return from + row })
	return err
}

// compare runs both forms on n rows with their states, and compares what they give. It returns both
// forms' outputs. place says which row of the samples a row is.
func (v *Prover) compare(ctx context.Context, samples, raw, trained, served []*tensor.Tensor, n int, place func(row int) int) (want, got []*tensor.Tensor, err error) {
	if want, err = v.run(ctx, v.trained, samples, trained); err != nil {
		return nil, nil, fmt.Errorf("trained model: %w", err)
	}
	if got, err = v.run(ctx, v.served, raw, served); err != nil {
		return nil, nil, fmt.Errorf("baked model: %w", err)
	}
	v.report.Rows += n
	for i, port := range v.trained.Outputs() {
		if f := v.p.Actions[port.Name]; f != nil {
			want[i] = f(want[i])
		}
		if b := v.served.Outputs()[i]; b.Name != port.Name || got[i].DType() != want[i].DType() || !slices.Equal(got[i].Shape(), want[i].Shape()) {
			return nil, nil, fmt.Errorf("output %q is %v when trained, and the baked model has %q of %v in its place", port.Name, want[i], b.Name, got[i])
		}
		e := ParityError{Output: port.Name, Batch: n, Want: math.NaN(), Got: math.NaN()}
		switch c := v.choices[i]; {
		case c.heads != nil:
			err = v.report.choices(c, want[i], got[i], want[c.scores].Float32s(), e, place)
		case want[i].DType() == tensor.Float32:
			err = v.report.floats(want[i].Float32s(), got[i].Float32s(), e, place)
		default:
			v.report.Values += want[i].Len()
			if w, g := want[i].Bytes(), got[i].Bytes(); string(w) != string(g) {
				e.Row = place(firstDifference(w, g) * n / len(w))
				err = &e
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return want, got, nil
}

func firstDifference(x, y []byte) int {
	for i := range x {
		if x[i] != y[i] {
			return i
		}
	}
	return len(x)
}

// run gives a form its inputs, by name: samples, states, and the parameters where it has them as
// inputs.
func (v *Prover) run(ctx context.Context, s side, samples, states []*tensor.Tensor) ([]*tensor.Tensor, error) {
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for k, port := range s.Inputs() {
		if i := slices.IndexFunc(s.memory, func(m models.State) bool { return m.Input == port.Name }); i >= 0 {
			in[k] = states[i]
		} else if i := slices.Index(v.inputs, port.Name); i >= 0 {
			in[k] = samples[i]
		} else if in[k] = v.p.Params.View(port.Name); in[k] == nil {
			return nil, fmt.Errorf("input %v is neither an input nor a parameter of the network", port)
		}
	}
	return engine.Run(ctx, s, in...)
}

// floats compares two blocks of e.Batch rows.
func (r *Report) floats(want, got []float32, e ParityError, place func(row int) int) error {
	for k, w := range want {
		d := math.Abs(float64(w)-float64(got[k])) / (1 + math.Abs(float64(w)))
		r.Values++
		if !(d <= Tolerance) && w != got[k] {
			e.Row, e.Want, e.Got = place(k*e.Batch/len(want)), float64(w), float64(got[k])
			return &e
		}
		if w != got[k] {
			r.MaxError = max(r.MaxError, d)
		}
	}
	return nil
}
