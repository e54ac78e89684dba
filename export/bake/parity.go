package bake

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"onnxrl/models"
	"onnxrl/runtime/engine"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// Tolerance is the largest accepted error: |Δ| ≤ Tolerance · (1 + |y|). Engines fold and fuse constant weights, which changes the rounding but not the function.
const Tolerance = 1e-4

// Batches are the batch sizes at which parity is proved.
var Batches = []int{1, 7, 64}

// smallRuns is how many batches prove a size; only the largest size covers all rows, because small batches of a large model take long.
const smallRuns = 4

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
	if err := checkSamples(net, samples); err != nil {
		return r, fmt.Errorf("prove parity: %w", err)
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
			if batch < Batches[len(Batches)-1] && from/batch >= smallRuns-1 {
				break
			}
		}
	}
	return r, nil
}

// checkSamples requires one tensor per input, all with the same rows and at least one.
func checkSamples(net *models.Network, samples []*tensor.Tensor) error {
	if len(samples) != len(net.Inputs) || len(samples) == 0 {
		return fmt.Errorf("%d samples for the inputs %q", len(samples), net.Inputs)
	}
	for i, s := range samples {
		if s == nil || s.Rank() == 0 || s.Shape()[0] == 0 || s.Shape()[0] != samples[0].Shape()[0] {
			return fmt.Errorf("the samples of input %q are %v; every input needs the same number of rows, at least one", net.Inputs[i], s)
		}
	}
	return nil
}

// compare runs both forms on one batch of rows.
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
	baked := served.Outputs()
	if len(baked) != len(want) {
		return fmt.Errorf("prove parity: %d outputs when trained and %d when baked", len(want), len(baked))
	}
	for i, p := range trained.Outputs() {
		if baked[i].Name != p.Name || got[i].DType() != want[i].DType() || !slices.Equal(got[i].Shape(), want[i].Shape()) {
			return fmt.Errorf("prove parity: output %q is %v when trained, and the baked model has %q of %v in its place", p.Name, want[i], baked[i].Name, got[i])
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
