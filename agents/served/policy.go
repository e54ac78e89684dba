package served

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Policy is a compiled model with buffers for a fixed number of rows. It is not safe for concurrent
// use; several policies of one model are independent of each other.
type Policy struct {
	rows    int
	meta    map[string]string
	session engine.Session
	binding engine.Binding
	in, out map[string]*tensor.Tensor
	inputs  []string
	outputs []string
	// memory are the model's states; rows [state][row] are the parts of their inputs.
	memory []models.State
	states []remembered
}

// remembered is the buffers of a state.
type remembered struct {
	in, out *tensor.Tensor
	rows    [][]float32
}

// Open reads a model and prepares it for batches of that many rows. The compiler must outlive the
// policy.
func Open(ctx context.Context, path string, c engine.Compiler, rows int) (*Policy, error) {
	m, err := onnx.Load(path)
	if err != nil {
		return nil, fmt.Errorf("open policy: %w", err)
	}
	p, err := newPolicy(ctx, m, c, engine.Options{BaseDir: filepath.Dir(path)}, rows)
	if err != nil {
		return nil, fmt.Errorf("open policy %s: %w", path, err)
	}
	return p, nil
}

// New prepares a model in memory. It may be dropped afterwards; its weights must not change while
// the policy is open.
func New(ctx context.Context, m *onnx.Model, c engine.Compiler, rows int) (*Policy, error) {
	p, err := newPolicy(ctx, m, c, engine.Options{}, rows)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	return p, nil
}

func newPolicy(ctx context.Context, m *onnx.Model, c engine.Compiler, o engine.Options, rows int) (_ *Policy, err error) {
	if rows < 1 {
		return nil, fmt.Errorf("a batch of %d rows", rows)
	}
	if m.GetGraph() == nil {
		return nil, errors.New("the model has no graph")
	}
	p := &Policy{rows: rows, meta: map[string]string{}, in: map[string]*tensor.Tensor{}, out: map[string]*tensor.Tensor{}}
	for _, kv := range m.MetadataProps {
		p.meta[kv.Key] = kv.Value
	}
	if m, err = fix(m, rows); err != nil {
		return nil, err
	}
	if p.session, err = c.Compile(m, o); err != nil {
		return nil, err
	}
	if err := p.bind(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// fix gives the batch its number, so that the engine plans its memory once.
func fix(m *onnx.Model, rows int) (*onnx.Model, error) {
	bind := map[string]int{}
	for _, v := range m.Graph.Inputs() {
		t, ok := v.TensorType()
		if !ok || !t.Ranked || len(t.Dims) == 0 {
			return nil, fmt.Errorf("input %q is %v, expected a tensor with a batch in front", v.Name, t)
		}
		if d := t.Dims[0]; d.IsKnown() && d.Value != rows {
			return nil, fmt.Errorf("input %q is %v, for batches of %d rows only; %d are asked for", v.Name, t, d.Value, rows)
		} else if !d.IsKnown() && d.Param != "" {
			bind[d.Param] = rows
		}
	}
	for _, v := range m.Graph.Inputs() {
		t, _ := v.TensorType()
		for i, d := range t.Dims {
			if _, ok := bind[d.Param]; i > 0 && !d.IsKnown() && !ok {
				return nil, fmt.Errorf("input %q is %v: only the batch may be symbolic", v.Name, t)
			}
		}
	}
	return onnx.BindDims(m, bind)
}

// bind runs the model once, on zeros, which also finds the outputs' shapes, and fixes the buffers.
func (p *Policy) bind(ctx context.Context) (err error) {
	in := make([]*tensor.Tensor, len(p.session.Inputs()))
	for i, port := range p.session.Inputs() {
		shape := append([]int{p.rows}, port.Shape[1:]...)
		in[i] = tensor.New(port.DType, shape...)
		p.in[port.Name], p.inputs = in[i], append(p.inputs, port.Name)
	}
	out := make([]*tensor.Tensor, len(p.session.Outputs()))
	if err := p.session.Run(ctx, out, in); err != nil {
		return fmt.Errorf("first run: %w", err)
	}
	for i, port := range p.session.Outputs() {
		if out[i].Rank() == 0 || out[i].Shape()[0] != p.rows {
			return fmt.Errorf("output %q is %v for a batch of %d rows, expected the batch in front", port.Name, out[i], p.rows)
		}
		p.out[port.Name], p.outputs = out[i], append(p.outputs, port.Name)
	}
	if p.out[agents.ActionOutput] == nil {
		return fmt.Errorf("a policy has an output %q; this model's are %v", agents.ActionOutput, p.session.Outputs())
	}
	if err := p.remember(); err != nil {
		return err
	}
	p.binding, err = p.session.Bind(out, in)
	return err
}

// remember finds the buffers of the states, and begins an episode in every row.
func (p *Policy) remember() (err error) {
	text, ok := p.meta[models.StateKey]
	if !ok {
		return nil
	}
	if p.memory, err = models.ParseStates(text); err != nil {
		return err
	}
	for _, s := range p.memory {
		r := remembered{in: p.in[s.Input], out: p.out[s.Output]}
		for side, t := range map[string]*tensor.Tensor{"input " + s.Input: r.in, "output " + s.Output: r.out} {
			if t == nil || t.DType() != tensor.Float32 || !slices.Equal(t.Shape()[1:], s.Shape) {
				return fmt.Errorf("state: %s is %v, expected float32[%d %v]", side, t, p.rows, s.Shape)
			}
		}
		for row := range p.rows {
			r.rows = append(r.rows, r.in.Rows(row, row+1).Float32s())
		}
		p.states = append(p.states, r)
	}
	for row := range p.rows {
		p.Begin(row)
	}
	return nil
}

// Rows is the number of rows of every buffer.
func (p *Policy) Rows() int { return p.rows }

// Inputs and Outputs name the buffers, in the model's order. The caller must not change them.
func (p *Policy) Inputs() []string { return p.inputs }

// Outputs names the output buffers.
func (p *Policy) Outputs() []string { return p.outputs }

// Input returns the buffer [rows, …] of an input, which keeps its content between runs, or nil when
// there is none of that name.
func (p *Policy) Input(name string) *tensor.Tensor { return p.in[name] }

// Output returns the buffer [rows, …] of an output, valid after Run until the next Run, or nil when
// there is none of that name.
func (p *Policy) Output(name string) *tensor.Tensor { return p.out[name] }

// Meta returns a metadata property of the model; ok is false when it has none of that key.
func (p *Policy) Meta(key string) (value string, ok bool) {
	value, ok = p.meta[key]
	return value, ok
}

// Remembers reports whether an input is one of the model's states, which [Policy.Begin] and
// [Policy.Advance] fill.
func (p *Policy) Remembers(input string) bool {
	for i := range p.memory {
		if p.memory[i].Input == input {
			return true
		}
	}
	return false
}

// Begin gives a row the states that an episode begins with. A model that does not remember has
// none. It allocates nothing.
func (p *Policy) Begin(row int) {
	for i, s := range p.memory {
		s.Fill(p.states[i].rows[row])
	}
}

// Advance makes the states that the last run gave those of the next. It allocates nothing.
func (p *Policy) Advance() {
	for _, s := range p.states {
		copy(s.in.Float32s(), s.out.Float32s())
	}
}

// Run computes the outputs from the inputs. It allocates nothing.
func (p *Policy) Run() error { return p.binding.Run() }

// Close frees the session. The buffers stay readable.
func (p *Policy) Close() error {
	var err error
	if p.binding != nil {
		err = p.binding.Close()
	}
	return errors.Join(err, p.session.Close())
}

// SaveMemory returns the states of all rows, nil of a model that remembers nothing.
func (p *Policy) SaveMemory() (memory []byte) {
	for _, s := range p.states {
		memory = append(memory, s.in.Bytes()...)
	}
	return memory
}

// LoadMemory makes the states those that were saved of the same model for as many rows. An error
// changes nothing.
func (p *Policy) LoadMemory(memory []byte) error {
	size := 0
	for _, s := range p.states {
		size += len(s.in.Bytes())
	}
	if len(memory) != size {
		return fmt.Errorf("load the memory of a policy: %d bytes, expected %d", len(memory), size)
	}
	for _, s := range p.states {
		memory = memory[copy(s.in.Bytes(), memory):]
	}
	return nil
}
