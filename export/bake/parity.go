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
const Tolerance = 1e-5

// Batches are the batch sizes at which parity is proved. Where there are fewer rows than the largest, one batch has all of them.
var Batches = []int{1, 7, 1024}

// Observations is how many recorded rows an exported model is proved on where an environment gives them.
const Observations = 10_000

// smallRuns is how many batches prove a size with each block of rows; only the largest size covers all rows, because small batches of a large model take long.
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

// Prove compares the baked model with the network. Every row is used at the largest size of Batches, and some at the others. Numbers must agree within Tolerance, choices wherever the network is not undecided, and everything else bit for bit; the first
// difference is a *ParityError, and too many undecided choices are ErrTies. More rows than fit into memory are for a [Prover].
func Prove(ctx context.Context, c engine.Compiler, p Pair) (r Report, err error) {
	v, err := NewProver(c, p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.Add(ctx, p.Samples, p.Raw); err != nil {
		return v.report, err
	}
	return v.Report()
}

// Prover compares both forms of a pair block by block, compiled once. It is not safe for concurrent use.
type Prover struct {
	p               Pair
	trained, served engine.Session
	choices         []choice // by output of the trained form; the zero choice where an output is none
	report          Report
}

// NewProver compiles both forms. The pair's rows are not looked at: [Prover.Add] gets them.
func NewProver(c engine.Compiler, p Pair) (_ *Prover, err error) {
	v := &Prover{p: p}
	defer func() {
		if err != nil {
			err = fmt.Errorf("prove parity: %w", errors.Join(err, v.Close()))
		}
	}()
	if v.trained, err = c.Compile(p.Network.Model, engine.Options{}); err != nil {
		return nil, fmt.Errorf("trained model: %w", err)
	}
	if v.served, err = c.Compile(p.Baked, engine.Options{}); err != nil {
		return nil, fmt.Errorf("baked model: %w", err)
	}
	have, baked := v.trained.Outputs(), v.served.Outputs()
	if len(have) != len(baked) {
		return nil, fmt.Errorf("%d outputs when trained and %d when baked", len(have), len(baked))
	}
	v.choices = make([]choice, len(have))
	for _, c := range p.Choices {
		if err := v.choose(c, have); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// Close frees both sessions.
func (v *Prover) Close() error {
	var errs []error
	for _, s := range []engine.Session{v.trained, v.served} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Add compares a block of rows, laid out as Pair.Samples and Pair.Raw are: some of them at the small sizes of Batches and all at the largest. After an error the proof has failed.
func (v *Prover) Add(ctx context.Context, samples, raw []*tensor.Tensor) error {
	v.p.Samples, v.p.Raw = samples, raw
	if err := v.p.check(); err != nil {
		return fmt.Errorf("prove parity: %w", err)
	}
	rows := samples[0].Shape()[0]
	for k, size := range Batches {
		runs := smallRuns
		if k == len(Batches)-1 {
			runs = rows
		}
		for from := 0; from < rows && runs > 0; runs-- {
			n := min(size, rows-from)
			if n < size && from > 0 && k < len(Batches)-1 {
				break // A rest is proved with all others, at the largest size.
			}
			if err := v.batch(ctx, from, n); err != nil {
				return fmt.Errorf("prove parity: %w", err)
			}
			from += n
		}
	}
	return nil
}

// Report says what was compared so far; too many undecided choices are ErrTies.
func (v *Prover) Report() (Report, error) { return v.report, v.report.checkTies(v.p.AllowTies) }

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
