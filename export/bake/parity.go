package bake

import (
	"context"
	"errors"
	"fmt"

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

// Pair is what parity is about: a network with its parameters, the model that was made of it, and the rows to compare them on.
type Pair struct {
	Network *models.Network
	Params  *models.Params
	Baked   *onnx.Model
	// Samples are what the network is given: one tensor per data input, each with the same number of rows.
	Samples []*tensor.Tensor
	// Raw are the same rows as the baked model is given them, where that differs; nil, or nil for an input, is Samples.
	Raw []*tensor.Tensor
	// Choices name the outputs that may differ where the network itself is undecided.
	Choices []Choice
	// AllowTies accepts a network that is undecided in more than MaxTies of its choices.
	AllowTies bool
}

// Report says what [Prove] compared.
type Report struct {
	// Rows and Values count compared rows and output elements; MaxError is the largest |Δ| / (1 + |y|).
	Rows     int     `json:"rows"`
	Values   int     `json:"values"`
	MaxError float64 `json:"max_error"`
	// Choices counts the compared choices. In Ties of them the network's two best scores are at most Margin apart, and in Changed of these the baked model chose differently.
	Choices int `json:"choices"`
	Ties    int `json:"ties"`
	Changed int `json:"changed"`
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

// Prove compares the baked model with the network. Rows are used at every batch size of Batches that they suffice for, at least once. Numbers must agree within Tolerance, choices wherever the network is not undecided, and everything else bit for bit; the first
// difference is a *ParityError, and too many undecided choices are ErrTies.
func Prove(ctx context.Context, c engine.Compiler, p Pair) (r Report, err error) {
	if err := p.check(); err != nil {
		return r, fmt.Errorf("prove parity: %w", err)
	}
	trained, err := c.Compile(p.Network.Model, engine.Options{})
	if err != nil {
		return r, fmt.Errorf("prove parity: trained model: %w", err)
	}
	defer func() { err = errors.Join(err, trained.Close()) }()
	served, err := c.Compile(p.Baked, engine.Options{})
	if err != nil {
		return r, fmt.Errorf("prove parity: baked model: %w", err)
	}
	defer func() { err = errors.Join(err, served.Close()) }()
	v, err := newComparison(p, trained, served, &r)
	if err != nil {
		return r, fmt.Errorf("prove parity: %w", err)
	}
	rows := p.Samples[0].Shape()[0]
	for _, batch := range Batches {
		batch = min(batch, rows)
		for from := 0; from+batch <= rows; from += batch {
			if err := v.batch(ctx, from, batch); err != nil {
				return r, fmt.Errorf("prove parity: %w", err)
			}
			if batch < Batches[len(Batches)-1] && from/batch >= smallRuns-1 {
				break
			}
		}
	}
	return r, r.checkTies(p.AllowTies)
}

// check requires one tensor per input, all with the same rows and at least one.
func (p *Pair) check() error {
	inputs, rows := p.Network.Inputs, -1
	for _, list := range [][]*tensor.Tensor{p.Samples, p.Raw} {
		if list == nil && rows >= 0 {
			break
		}
		if len(list) != len(inputs) || len(list) == 0 {
			return fmt.Errorf("%d samples for the inputs %q", len(list), inputs)
		}
		for i, s := range list {
			if s == nil && rows >= 0 {
				continue // Given as it is.
			}
			if s == nil || s.Rank() == 0 || s.Shape()[0] == 0 || rows >= 0 && s.Shape()[0] != rows {
				return fmt.Errorf("the samples of input %q are %v; every input needs the same number of rows, at least one", inputs[i], s)
			}
			rows = s.Shape()[0]
		}
	}
	return nil
}

// raw returns what the baked model is given for input i.
func (p *Pair) raw(i int) *tensor.Tensor {
	if p.Raw != nil && p.Raw[i] != nil {
		return p.Raw[i]
	}
	return p.Samples[i]
}
