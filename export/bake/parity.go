package bake

import (
	"context"
	"errors"
	"fmt"
	"math"

	"onnxrl/models"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// Tolerance is the largest accepted error: |Δ| ≤ Tolerance · (1 + |y|). Engines fold and fuse constant weights, which changes the rounding but not the function.
const Tolerance = 1e-4

// Batches are the batch sizes at which parity is proved.
var Batches = []int{1, 7, 64}

// Report says what [Prove] compared.
type Report struct {
	// Rows and Values count compared rows and output elements; MaxError is the largest |Δ| / (1 + |y|).
	Rows     int     `json:"rows"`
	Values   int     `json:"values"`
	MaxError float64 `json:"max_error"`
}

// ParityError says where the baked model differs from the trained one.
type ParityError struct {
	Output     string
	Batch, Row int
	Want, Got  float64
}

func (e *ParityError) Error() string {
	return fmt.Sprintf("parity: output %q, batch %d, row %d: the trained model gives %g, the baked one %g", e.Output, e.Batch, e.Row, e.Want, e.Got)
}

// Prove compares the baked model with the network and its parameters on samples: one tensor per data input of net, each with the same number of rows. Rows are used at every batch size of
// Batches that they suffice for, at least once.
func Prove(ctx context.Context, c engine.Compiler, net *models.Network, params *models.Params, baked *onnx.Model, samples []*tensor.Tensor) (_ Report, err error) {
	var r Report
	if len(samples) != len(net.Inputs) || len(samples) == 0 || samples[0].Rank() == 0 || samples[0].Shape()[0] == 0 {
		return r, fmt.Errorf("prove parity: %d samples for %d inputs, or no rows", len(samples), len(net.Inputs))
	}
	trained, err := c.Compile(net.Model, engine.Options{})
	if err != nil {
		return r, fmt.Errorf("prove parity: trained model: %w", err)
	}
	defer func() { err = errors.Join(err, trained.Close()) }()
	served, err := c.Compile(baked, engine.Options{})
	if err != nil {
		return r, fmt.Errorf("prove parity: baked model: %w", err)
	}
	defer func() { err = errors.Join(err, served.Close()) }()
	rows := samples[0].Shape()[0]
	for _, batch := range Batches {
		batch = min(batch, rows)
		for from := 0; from+batch <= rows; from += batch {
			if err := r.compare(ctx, trained, served, net, params, samples, from, batch); err != nil {
				return r, err
			}
			// A few batches of each size prove the size; the largest one covers all rows.
			if batch < Batches[len(Batches)-1] && from/batch >= 15 {
				break
			}
		}
	}
	return r, nil
}

func (r *Report) compare(ctx context.Context, trained, served engine.Session, net *models.Network, params *models.Params, samples []*tensor.Tensor, from, batch int) error {
	byName := map[string]*tensor.Tensor{}
	for i, name := range net.Inputs {
		byName[name] = samples[i].Rows(from, from+batch)
	}
	pick := func(ports []engine.Port) []*tensor.Tensor {
		in := make([]*tensor.Tensor, len(ports))
		for i, p := range ports {
			if in[i] = byName[p.Name]; in[i] == nil {
				in[i] = params.View(p.Name)
			}
		}
		return in
	}
	want := make([]*tensor.Tensor, len(trained.Outputs()))
	if err := trained.Run(ctx, want, pick(trained.Inputs())); err != nil {
		return fmt.Errorf("prove parity: trained model: %w", err)
	}
	got := make([]*tensor.Tensor, len(served.Outputs()))
	if err := served.Run(ctx, got, pick(served.Inputs())); err != nil {
		return fmt.Errorf("prove parity: baked model: %w", err)
	}
	r.Rows += batch
	for i, p := range trained.Outputs() {
		if len(got) <= i || got[i].DType() != want[i].DType() || got[i].Len() != want[i].Len() {
			return fmt.Errorf("prove parity: output %q is %v when trained and %v when baked", p.Name, want[i], got[i])
		}
		if want[i].DType() != tensor.Float32 {
			if string(want[i].Bytes()) != string(got[i].Bytes()) {
				return &ParityError{Output: p.Name, Batch: batch, Row: from, Want: math.NaN(), Got: math.NaN()}
			}
			r.Values += want[i].Len()
			continue
		}
		g := got[i].Float32s()
		for k, w := range want[i].Float32s() {
			e := math.Abs(float64(w)-float64(g[k])) / (1 + math.Abs(float64(w)))
			r.MaxError = max(r.MaxError, e)
			r.Values++
			if !(e <= Tolerance) && w != g[k] {
				return &ParityError{Output: p.Name, Batch: batch, Row: from + k*batch/max(1, want[i].Len()), Want: float64(w), Got: float64(g[k])}
			}
		}
	}
	return nil
}
