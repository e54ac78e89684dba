package bake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Tolerance is the largest accepted error: |Δ| ≤ Tolerance · (1 + |y|). Engines fold and fuse
// constant weights, which changes the rounding but not the function.
const Tolerance = 1e-5

// Batches are the batch sizes at which parity is checked. Where there are fewer rows than
// the largest, one batch has all of them. A model that takes one size only is checked at
// that.
var Batches = []int{1, 7, 1024}

// Observations is the number of recorded rows of the parity check of an exported model where an
// environment gives them.
const Observations = 10_000

// smallRuns is how many batches prove a size with each block of rows; only the largest size covers
// all rows, because small batches of a large model take long.
const smallRuns = 4

// Pair is what parity is about: a network with its parameters, the model that was made of it, and
// the rows to compare them on.
type Pair struct {
	Network *models.Network
	Params  *models.Params
	Baked   *onnx.Model
	// Memory are the states of the network, by the names of its inputs and outputs. Those of the
	// baked model are listed in its metadata; they may be others, such as the frames of a stack
	// that the network is given whole.
	Memory []models.State
	// Samples are what the network is given: one tensor per data input that is no state, each with
	// the same number of rows.
	Samples []*tensor.Tensor
	// Raw are the same rows as the baked model is given them, where that differs; nil, or nil for
	// an input, is Samples.
	Raw []*tensor.Tensor
	// Actions make of an output of the network what the baked model gives in its place, such as an
	// action in the environment's bounds; nil for none.
	Actions map[string]func(*tensor.Tensor) *tensor.Tensor
	// Choices name the outputs that may differ where the network itself is undecided.
	Choices []Choice
	// AllowTies accepts a network that is undecided in more than MaxTies of its choices.
	AllowTies bool
}

// Report says what [Prove] compared.
type Report struct {
	// Rows and Values count compared rows and output elements; MaxError is the largest |Δ| / (1 +
	// |y|). Episodes counts those that were gone through from beginning to end by a model that
	// remembers.
	Rows     int     `json:"rows"`
	Values   int     `json:"values"`
	MaxError float64 `json:"max_error"`
	Episodes int     `json:"episodes,omitempty"`
	// Choices counts the compared choices. In Ties of them the network's two best scores are at
	// most Margin apart, and in Changed of these the baked model chose differently.
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

// Prove compares the baked model with the network. Every row is used at the largest size of
// Batches, and some at the others. Numbers must agree within Tolerance, choices wherever the
// network is not undecided, and everything else bit for bit; the first difference is a
// *ParityError, and too many undecided choices are ErrTies. More rows than fit into memory are for
// a [Prover].
func Prove(ctx context.Context, c engine.Compiler, p Pair) (r Report, err error) {
	v, err := NewProver(c, p)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	if err := v.Add(ctx, p.Samples, p.Raw, nil); err != nil {
		return v.report, err
	}
	return v.Report()
}

// Prover compares both forms of a pair block by block, compiled once. It is not safe for concurrent
// use.
type Prover struct {
	p               Pair
	inputs          []string // of the network, without its states
	trained, served side
	choices         []choice // by output of the trained form; the zero choice where an output is none
	report          Report
}

// side is one of both forms: its states are by Input and Output of its own.
type side struct {
	engine.Session
	memory []models.State
}

// NewProver compiles both forms. The pair's rows are not looked at: [Prover.Add] gets them.
func NewProver(c engine.Compiler, p Pair) (_ *Prover, err error) {
	v := &Prover{p: p}
	defer func() {
		if err != nil {
			err = fmt.Errorf("prove parity: %w", errors.Join(err, v.Close()))
		}
	}()
	v.trained.memory = p.Memory
	if v.served.memory, err = models.States(p.Baked); err != nil {
		return nil, err
	}
	for _, name := range p.Network.Inputs {
		if !isState(p.Memory, name) {
			v.inputs = append(v.inputs, name)
		}
	}
	if v.trained.Session, err = c.Compile(v.constant(), engine.Options{}); err != nil {
		return nil, fmt.Errorf("trained model: %w", err)
	}
	if v.served.Session, err = c.Compile(p.Baked, engine.Options{}); err != nil {
		return nil, fmt.Errorf("baked model: %w", err)
	}
	have, baked := v.trained.Outputs(), v.served.Outputs()
	if len(have) > len(baked) {
		return nil, fmt.Errorf("%d outputs when trained and %d when baked", len(have), len(baked))
	}
	for _, more := range baked[len(have):] {
		if !slices.ContainsFunc(v.served.memory, func(s models.State) bool { return s.Output == more.Name }) {
			return nil, fmt.Errorf("the baked model has an output %q, which is no state and not the network's", more.Name)
		}
	}
	v.choices = make([]choice, len(have))
	for _, c := range p.Choices {
		if err := v.choose(c, have); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// constant is the network with its parameters as initializers: engines execute what is constant
// faster, several times so a TimesNet. It is made here and not as the baked model is, so that a
// fault of that is not one of both.
func (v *Prover) constant() *onnx.Model {
	if v.p.Params == nil {
		return v.p.Network.Model
	}
	m := v.p.Network.Model.ShallowClone()
	m.Graph.Input = slices.DeleteFunc(slices.Clone(m.Graph.Input), func(in *onnx.ValueInfo) bool {
		if slices.Contains(v.inputs, in.Name) || isState(v.trained.memory, in.Name) {
			return false
		}
		t := v.p.Params.View(in.Name)
		if t != nil {
			m.Graph.Initializer = append(slices.Clip(m.Graph.Initializer), onnx.ProtoOf(in.Name, t))
		}
		return t != nil
	})
	return m
}

// Close frees both sessions.
func (v *Prover) Close() error {
	var errs []error
	for _, s := range []engine.Session{v.trained.Session, v.served.Session} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}

// Add compares a block of rows, laid out as Pair.Samples and Pair.Raw are: some of them at the
// small sizes of Batches and all at the largest. begins [rows] says of a model that remembers which
// rows begin an episode, which goes on to the row before the next; without it each row is one, and
// the first always is. After an error the proof has failed.
//
// A model that remembers goes through every episode with its own memory, several of them side by
// side as rows of the middle one of Batches, and the first alone. Then all rows are compared at the
// largest size, with the memory that they were met with.
func (v *Prover) Add(ctx context.Context, samples, raw []*tensor.Tensor, begins []bool) error {
	v.p.Samples, v.p.Raw = samples, raw
	if err := v.check(); err != nil {
		return fmt.Errorf("prove parity: %w", err)
	}
	rows := samples[0].Shape()[0]
	if begins != nil && len(begins) != rows {
		return fmt.Errorf("prove parity: %d marks for %d rows", len(begins), rows)
	}
	var err error
	if len(v.trained.memory)+len(v.served.memory) > 0 {
		err = v.remember(ctx, rows, begins)
	} else {
		err = v.plain(ctx, rows)
	}
	if err != nil {
		return fmt.Errorf("prove parity: %w", err)
	}
	return nil
}

// plain compares rows that have nothing to do with each other.
func (v *Prover) plain(ctx context.Context, rows int) error {
	if n := fixedBatch(v.trained.Session, v.inputs); n > 0 {
		return inBatches(rows, n, func(from int) error { return v.batch(ctx, from, n, nil, nil) })
	}
	for k, size := range Batches {
		runs := smallRuns
		if k == len(Batches)-1 {
			runs = rows
		}
		for from := 0; from < rows && runs > 0; runs-- {
			n := min(size, rows-from)
			if n < size && from > 0 && k < len(Batches)-1 {
				break // A rest is checked with all others, at the largest size.
			}
			if err := v.batch(ctx, from, n, nil, nil); err != nil {
				return err
			}
			from += n
		}
	}
	return nil
}

// Report says what was compared so far; too many undecided choices are ErrTies.
func (v *Prover) Report() (Report, error) { return v.report, v.report.checkTies(v.p.AllowTies) }

// check requires one tensor per input, all with the same rows and at least one.
func (v *Prover) check() error {
	inputs, rows := v.inputs, -1
	for _, list := range [][]*tensor.Tensor{v.p.Samples, v.p.Raw} {
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
