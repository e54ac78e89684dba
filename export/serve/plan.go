package serve

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MaxRows is the most rows of a request to a model whose largest batch is not configured.
const MaxRows = 1 << 16

// plan is what is known of a version's calls before the first one.
type plan struct {
	in, out        []engine.Port // in the order of the session
	given, answers []engine.Port // what requests give and get
	inner          [][]int       // by input, the extents behind the batch that the model has where requests give others; otherwise nil
	outer          [][]int       // by output, the extents behind the batch that requests get where the model gives others; otherwise nil
	inAt, outAt    map[string]int
	state          []stateSlot
	inState        []int       // by input, the state that it reads, or -1
	outState       []int       // by output, the state that it writes, or -1
	states         []StatePort // as the configuration or the model has them, with their shapes
	control        []controlSlot
	inControl      []int // by input, the control that fills it, or -1
	visible, every []int // outputs that a request gets which asks for none: in a sequence or without state, and otherwise
	// batch says that the first axis of every input and output is the batch.
	batch bool
	// maxBatch is the most rows that are combined, 1 where their rows may depend on each other;
	// limit is the most of one request.
	maxBatch, limit int
	// fixed says that all extents but the batch are known, so that buffers can be made before a
	// request comes.
	fixed bool
	// checkIn and checkOut say where NaN and infinities are refused: in which inputs, and whether
	// in outputs.
	checkIn  []bool
	checkOut bool
	// spaces are those of inputs that are looked through, with choices.
	spaces        []artifact.Space
	inRow, outRow []int // bytes of a row, where fixed
}

// stateSlot is a pair of ports that carries state; initial is that of one sequence.
type stateSlot struct {
	in, out int
	initial *tensor.Tensor
}

func newPlan(s engine.Session, content *Content, c Config, maxBatch int) (*plan, error) {
	m := content.Model
	p := &plan{in: s.Inputs(), out: s.Outputs(), inAt: map[string]int{}, outAt: map[string]int{}}
	for i, port := range p.in {
		p.inAt[port.Name] = i
	}
	for i, port := range p.out {
		p.outAt[port.Name] = i
	}
	p.batch = !c.NoBatchAxis && hasBatchAxis(p, m)
	switch {
	case c.MaxBatch > 0 && !p.batch:
		return nil, fmt.Errorf("max_batch is %d, but not every input and output has the batch as its first axis", c.MaxBatch)
	case !p.batch:
		p.maxBatch, p.limit = 1, 1
	case c.MaxBatch > 0:
		p.maxBatch, p.limit = c.MaxBatch, c.MaxBatch
	default:
		p.maxBatch, p.limit = maxBatch, max(MaxRows, maxBatch)
	}
	if c.Batching.Off {
		p.maxBatch = 1
	}
	if err := p.checkValues(c.NonFinite, content); err != nil {
		return nil, err
	}
	p.fix()
	if err := p.declare(c); err != nil {
		return nil, err
	}
	if err := p.addState(m, c.State, files{content.Files}); err != nil {
		return nil, err
	}
	return p, p.addControls(c.Controls)
}

// hasBatchAxis reports whether the first extents of all ports are free and, as far as the model
// names them, the same.
func hasBatchAxis(p *plan, m *onnx.Model) bool {
	for _, port := range slices.Concat(p.in, p.out) {
		if len(port.Shape) == 0 || port.Shape[0] >= 0 {
			return false
		}
	}
	name := ""
	in, out := artifact.PortsOf(m)
	for _, port := range slices.Concat(in, out) {
		if len(port.Axes) == 0 || port.Axes[0] == "" {
			continue
		}
		if name != "" && port.Axes[0] != name {
			return false
		}
		name = port.Axes[0]
	}
	return len(p.in) > 0
}

// fix decides whether buffers can be made in advance.
func (p *plan) fix() {
	p.fixed = true
	rowBytes := func(ports []engine.Port) []int {
		bytes := make([]int, len(ports))
		for i, port := range ports {
			row, ok := p.row(port)
			if !ok || port.DType.Size() == 0 {
				p.fixed = false
				return nil
			}
			n, err := tensor.Len(row)
			if err != nil || n > math.MaxInt/16 {
				p.fixed = false
				return nil
			}
			bytes[i] = port.DType.ByteLen(n)
		}
		return bytes
	}
	p.inRow, p.outRow = rowBytes(p.in), rowBytes(p.out)
}

// row is the shape of one row of a port, the batch axis with extent 1; all of it where there is no
// batch. ok is false where an extent is free.
func (p *plan) row(port engine.Port) (shape []int, ok bool) {
	if port.Shape == nil {
		return nil, false
	}
	shape = slices.Clone(port.Shape)
	if p.batch {
		shape[0] = 1
	}
	return shape, !slices.ContainsFunc(shape, func(d int) bool { return d < 0 })
}

// addState connects the ports that carry state.
func (p *plan) addState(m *onnx.Model, ports []StatePort, f files) error {
	if len(ports) == 0 {
		for _, e := range m.GetMetadataProps() {
			if e.GetKey() == StateKey {
				var err error
				if ports, err = parseState(e.GetValue()); err != nil {
					return err
				}
			}
		}
	}
	p.inState, p.outState = make([]int, len(p.in)), make([]int, len(p.out))
	for i := range p.inState {
		p.inState[i] = -1
	}
	for i := range p.outState {
		p.outState[i] = -1
	}
	for k, s := range ports {
		slot, err := p.slot(s, f)
		if err != nil {
			return fmt.Errorf("state %d (%q to %q): %w", k, s.Input, s.Output, err)
		}
		p.inState[slot.in], p.outState[slot.out] = k, k
		p.state = append(p.state, slot)
		s.Shape = slices.Clone(slot.initial.Shape()[btoi(p.batch):])
		p.states = append(p.states, s)
	}
	for i := range p.out {
		p.every = append(p.every, i)
		if p.outState[i] < 0 {
			p.visible = append(p.visible, i)
		}
	}
	return nil
}

func (p *plan) slot(s StatePort, f files) (stateSlot, error) {
	in, ok := p.inAt[s.Input]
	if !ok {
		return stateSlot{}, fmt.Errorf("the model has no input %q", s.Input)
	}
	out, ok := p.outAt[s.Output]
	if !ok {
		return stateSlot{}, fmt.Errorf("the model has no output %q", s.Output)
	}
	if p.inState[in] >= 0 || p.outState[out] >= 0 {
		return stateSlot{}, fmt.Errorf("a port carries one state only")
	}
	if p.in[in].DType != p.out[out].DType {
		return stateSlot{}, fmt.Errorf("the input is %v and the output %v", p.in[in], p.out[out])
	}
	row, ok := p.row(p.in[in])
	if !ok {
		if s.Shape == nil {
			return stateSlot{}, fmt.Errorf("input %v has free extents, expected a shape", p.in[in])
		}
		row = slices.Clone(s.Shape)
		if p.batch {
			row = append([]int{1}, row...)
		}
	} else if declared := row[btoi(p.batch):]; s.Shape != nil && !slices.Equal(s.Shape, declared) && !slices.Equal(s.Shape, row) {
		return stateSlot{}, fmt.Errorf("shape %v, the input has %v for each sequence", s.Shape, declared)
	}
	initial, err := fill(p.in[in].DType, row, s.Initial)
	if err == nil && s.File != "" {
		initial, err = f.read(initialFolder, s.File, p.in[in].DType, row)
	}
	if err != nil {
		return stateSlot{}, err
	}
	if err := p.in[in].Accepts(initial); err != nil {
		return stateSlot{}, err
	}
	return stateSlot{in: in, out: out, initial: initial}, nil
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// fill makes a tensor of one value for all elements, one for each, or zeros.
func fill(d tensor.DType, shape []int, values Values) (*tensor.Tensor, error) {
	n, err := tensor.Len(shape)
	if err != nil {
		return nil, err
	}
	if n > 1<<28 || d.Size() == 0 {
		return nil, fmt.Errorf("%v%v cannot be kept as state", d, shape)
	}
	t := tensor.New(d, shape...)
	if len(values) == 0 {
		return t, nil
	}
	if len(values) != 1 && len(values) != n {
		return nil, fmt.Errorf("%d initial values, expected none, 1 or %d", len(values), n)
	}
	at := func(i int) float64 { return values[i%len(values)] }
	switch d {
	case tensor.Float32:
		set(t.Float32s(), at)
	case tensor.Float64:
		set(t.Float64s(), at)
	case tensor.Int64:
		set(t.Int64s(), at)
	case tensor.Int32:
		set(t.Int32s(), at)
	case tensor.Bool:
		for i := range n {
			t.Bools()[i] = at(i) != 0
		}
	default:
		return nil, fmt.Errorf("initial values of %v, expected float32, float64, int32, int64 or bool, or none for zeros", d)
	}
	return t, nil
}

func set[T float32 | float64 | int32 | int64](to []T, at func(int) float64) {
	for i := range to {
		to[i] = T(at(i))
	}
}
