package serve

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Control is what an input says of a request's place in its sequence, as Triton's control inputs
// do.
type Control int

// The controls, by Triton's numbers.
const (
	SequenceStart Control = iota
	SequenceReady
	SequenceEnd
	SequenceID
)

var controlKinds = []string{"CONTROL_SEQUENCE_START", "CONTROL_SEQUENCE_READY", "CONTROL_SEQUENCE_END", "CONTROL_SEQUENCE_CORRID"}

// String is Triton's name.
func (c Control) String() string { return controlKinds[c] }

// ControlInput is an input that the server fills.
type ControlInput struct {
	Input string
	Kind  Control
	// DType is that of the input. False and True are what a row holds; SequenceID needs neither.
	DType       tensor.DType
	False, True float64
}

// idTypes are the types that an identifier may be given in.
var idTypes = []tensor.DType{tensor.Int32, tensor.Int64, tensor.Uint32, tensor.Uint64, tensor.String}

func (c ControlInput) validate() error {
	types := []tensor.DType{tensor.Int32, tensor.Float32, tensor.Bool}
	if c.Kind == SequenceID {
		types = idTypes
	}
	switch {
	case c.Input == "":
		return fmt.Errorf("%v has no input", c.Kind)
	case c.Kind < SequenceStart || c.Kind > SequenceID:
		return fmt.Errorf("input %q: %d is no control", c.Input, int(c.Kind))
	case !slices.Contains(types, c.DType):
		return fmt.Errorf("input %q: %v as %v, expected one of %v", c.Input, c.Kind, c.DType, types)
	}
	return nil
}

// controls reads control_input.
func (f *fields) controls(m message) []ControlInput {
	var list []ControlInput
	for _, in := range f.messages(m, "control_input") {
		name, kinds := f.text(in, "name"), f.messages(in, "control")
		if len(kinds) != 1 {
			f.fail("control_input %q has %d controls, expected one", name, len(kinds))
			continue
		}
		c := ControlInput{Input: name, DType: f.dtype(kinds[0])}
		if kind := f.text(kinds[0], "kind"); kind != "" {
			at := slices.Index(controlKinds, kind)
			if at < 0 {
				f.fail("control_input %q: kind is %q, expected one of %s", name, kind, strings.Join(controlKinds, ", "))
				continue
			}
			c.Kind = Control(at)
		}
		for _, form := range []struct {
			key   string
			dtype tensor.DType
		}{{"int32_false_true", tensor.Int32}, {"fp32_false_true", tensor.Float32}, {"bool_false_true", tensor.Bool}} {
			values := f.texts(kinds[0], form.key)
			if len(values) == 0 {
				continue
			}
			if len(values) != 2 || c.Kind == SequenceID {
				f.fail("control_input %q: %s has %d values, expected those for false and true, of a control that is either", name, form.key, len(values))
				continue
			}
			c.DType, c.False, c.True = form.dtype, f.controlValue(name, form.key, values[0]), f.controlValue(name, form.key, values[1])
		}
		list = append(list, c)
	}
	return list
}

func (f *fields) controlValue(input, key, text string) float64 {
	switch text {
	case "true":
		return 1
	case "false":
		return 0
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v-v != 0 || key != "fp32_false_true" && (v != math.Trunc(v) || math.Abs(v) > math.MaxInt32) {
		f.fail("control_input %q: %s has %q, expected a number", input, key, text)
	}
	return v
}

// controlSlot is an input that the server fills, with the row for either value; of an identifier,
// the rows are empty.
type controlSlot struct {
	in     int
	kind   Control
	values [2]*tensor.Tensor
}

// sequential reports whether requests to the model belong to sequences.
func (p *plan) sequential() bool { return len(p.state)+len(p.control) > 0 }

func (p *plan) addControls(list []ControlInput) error {
	p.inControl = slices.Repeat([]int{-1}, len(p.in))
	for k, c := range list {
		at, ok := p.inAt[c.Input]
		if !ok {
			return fmt.Errorf("control input %q: the model has %s", c.Input, portNames(p.in))
		}
		port := p.in[at]
		if p.inControl[at] >= 0 || p.inState[at] >= 0 {
			return fmt.Errorf("control input %q: it has another meaning already", c.Input)
		}
		row, ok := p.row(port)
		if !ok || port.DType != c.DType {
			return fmt.Errorf("control input %q: the model has %v, expected %v of known extents", c.Input, port, c.DType)
		}
		slot := controlSlot{in: at, kind: c.Kind}
		for i, v := range []float64{c.False, c.True} {
			if c.DType == tensor.String {
				slot.values[i] = tensor.OfStrings(make([]string, elements(row)), row...)
				continue
			}
			slot.values[i] = tensor.New(c.DType, row...)
			if c.Kind != SequenceID {
				var err error
				if slot.values[i], err = fill(c.DType, row, Values{v}); err != nil {
					return fmt.Errorf("control input %q: %w", c.Input, err)
				}
			}
		}
		p.inControl[at] = k
		p.control = append(p.control, slot)
	}
	return nil
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// takeControls fills the control inputs of a call.
func (p *plan) takeControls(c *call, sequence bool) error {
	if len(p.control) > 0 && !sequence {
		return invalid("inference request must specify a non-zero or non-empty correlation ID: the model takes requests in sequences only, by sequence_id")
	}
	for k, slot := range p.control {
		switch slot.kind {
		case SequenceStart:
			c.in[slot.in] = slot.values[btoi(c.start)]
		case SequenceEnd:
			c.in[slot.in] = slot.values[btoi(c.end)]
		case SequenceReady:
			c.in[slot.in] = slot.values[1]
		case SequenceID:
			c.in[slot.in] = c.seq.ids[k]
		}
	}
	return nil
}

// identifiers are what a sequence's identifier is in the inputs that take it, by control; nil where
// none does.
func (p *plan) identifiers(id string) ([]*tensor.Tensor, error) {
	var list []*tensor.Tensor
	for k, slot := range p.control {
		if slot.kind != SequenceID {
			continue
		}
		if list == nil {
			list = make([]*tensor.Tensor, len(p.control))
		}
		t := slot.values[0].Clone()
		if t.DType() == tensor.String {
			for i := range t.Strings() {
				t.Strings()[i] = id
			}
		} else if err := fillNumber(t, id); err != nil {
			return nil, invalid("sequence_id %q: input %q takes it as %v: %w", id, p.in[slot.in].Name, t.DType(), err)
		}
		list[k] = t
	}
	return list, nil
}

// fillNumber writes a whole number into every element.
func fillNumber(t *tensor.Tensor, text string) error {
	bits := 8 * t.DType().Size()
	signed := t.DType() == tensor.Int32 || t.DType() == tensor.Int64
	u, err := strconv.ParseUint(text, 10, bits)
	if signed {
		var i int64
		i, err = strconv.ParseInt(text, 10, bits)
		u = uint64(i)
	}
	if err != nil {
		return fmt.Errorf("expected a whole number of %d bits", bits)
	}
	b := t.Bytes()
	for i := range b {
		b[i] = byte(u >> (8 * (i % (bits / 8))))
	}
	return nil
}

// rows is the control of a run that belongs to no sequence, a warm-up.
func (s controlSlot) rows(n int, batch bool) *tensor.Tensor {
	row := s.values[btoi(s.kind == SequenceReady)]
	if !batch {
		return row
	}
	shape := append([]int{n}, row.Shape()[1:]...)
	if row.DType() == tensor.String {
		return tensor.OfStrings(make([]string, elements(shape)), shape...)
	}
	t := tensor.New(row.DType(), shape...)
	for r := range n {
		copy(t.Rows(r, r+1).Bytes(), row.Bytes())
	}
	return t
}
