package bake

import (
	"context"
	"fmt"
	"math"
	"slices"

	"onnxrl/runtime/engine"
	"onnxrl/runtime/tensor"
)

// batch compares rows [from, from+n).
func (v *Prover) batch(ctx context.Context, from, n int) error {
	want, err := v.run(ctx, v.trained, func(i int) *tensor.Tensor { return v.p.Samples[i] }, from, n)
	if err != nil {
		return fmt.Errorf("trained model: %w", err)
	}
	got, err := v.run(ctx, v.served, v.p.raw, from, n)
	if err != nil {
		return fmt.Errorf("baked model: %w", err)
	}
	v.report.Rows += n
	for i, port := range v.trained.Outputs() {
		if b := v.served.Outputs()[i]; b.Name != port.Name || got[i].DType() != want[i].DType() || !slices.Equal(got[i].Shape(), want[i].Shape()) {
			return fmt.Errorf("output %q is %v when trained, and the baked model has %q of %v in its place", port.Name, want[i], b.Name, got[i])
		}
		e := ParityError{Output: port.Name, Batch: n, Row: from, Want: math.NaN(), Got: math.NaN()}
		switch c := v.choices[i]; {
		case c.heads != nil:
			err = v.report.choices(c, want[i], got[i], want[c.scores].Float32s(), e)
		case want[i].DType() == tensor.Float32:
			err = v.report.floats(want[i].Float32s(), got[i].Float32s(), e)
		default:
			v.report.Values += want[i].Len()
			if string(want[i].Bytes()) != string(got[i].Bytes()) {
				err = &e
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// run gives a session its inputs, by name: rows of the samples, and the parameters where it has them as inputs.
func (v *Prover) run(ctx context.Context, s engine.Session, sample func(i int) *tensor.Tensor, from, n int) ([]*tensor.Tensor, error) {
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for k, port := range s.Inputs() {
		if i := slices.Index(v.p.Network.Inputs, port.Name); i >= 0 {
			in[k] = sample(i).Rows(from, from+n)
		} else if in[k] = v.p.Params.View(port.Name); in[k] == nil {
			return nil, fmt.Errorf("input %v is neither an input nor a parameter of the network", port)
		}
	}
	out := make([]*tensor.Tensor, len(s.Outputs()))
	return out, s.Run(ctx, out, in)
}

// floats compares two blocks of e.Batch rows.
func (r *Report) floats(want, got []float32, e ParityError) error {
	first := e.Row
	for k, w := range want {
		d := math.Abs(float64(w)-float64(got[k])) / (1 + math.Abs(float64(w)))
		r.Values++
		if !(d <= Tolerance) && w != got[k] {
			e.Row, e.Want, e.Got = first+k*e.Batch/len(want), float64(w), float64(got[k])
			return &e
		}
		if w != got[k] {
			r.MaxError = max(r.MaxError, d)
		}
	}
	return nil
}
