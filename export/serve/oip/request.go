package oip

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Request is a decoded body. It may be used again for the next one; tensors are views of the body,
// which must not change before the request is answered.
type Request struct {
	// Request is what the body asks for; model and version are not in it.
	serve.Request
	// Timeout is the parameter "timeout", 0 without.
	Timeout time.Duration

	// binary is how outputs are written that do not say; forms belong to the outputs that are
	// named.
	binary bool
	forms  []form
	parts  []part
	text   scanner
}

// reset forgets the last request and keeps its memory.
func (r *Request) reset() {
	clear(r.Inputs)
	clear(r.parts)
	*r = Request{
		Request: serve.Request{Inputs: r.Inputs[:0], Outputs: r.Outputs[:0]},
		forms:   r.forms[:0], parts: r.parts[:0],
	}
}

// Decode reads a body whose first jsonLen bytes are JSON, all of it when jsonLen is negative. Every
// error is an InvalidArgument that names the input, where it is about one.
func (r *Request) Decode(body []byte, jsonLen int) error {
	r.reset()
	text, rest := body, []byte(nil)
	if jsonLen >= 0 {
		if jsonLen > len(body) {
			return bad("%s is %d, but the body has %d bytes", HeaderLength, jsonLen, len(body))
		}
		text, rest = body[:jsonLen], body[jsonLen:]
	}
	r.text = scanner{b: text}
	if err := r.object(&r.text); err != nil {
		return wrap(err)
	}
	if err := r.text.end(); err != nil {
		return wrap(err)
	}
	if err := split(r.parts, "input", rest, jsonLen >= 0); err != nil {
		return err
	}
	for i := range r.parts {
		r.Inputs = append(r.Inputs, serve.Tensor{Name: r.parts[i].name, Value: r.parts[i].value})
	}
	return nil
}

// DecodeRaw reads a body that is the bytes of a model's only input. Extents of the port that are
// free are found from the number of bytes, which works when there is one, or when all but the first
// are 1. The answer is asked for in binary.
func (r *Request) DecodeRaw(body []byte, port serve.Port) error {
	r.reset()
	r.binary = true
	shape := append(make([]int, 0, len(port.Shape)), port.Shape...)
	known, free := 1, -1
	for i, d := range shape {
		switch {
		case d >= 0:
			known *= d
		case free < 0:
			free = i
		default:
			shape[i] = 1
		}
	}
	size := port.DType.Size()
	if port.DType == tensor.String {
		size = max(len(body), 1) // a string per request: its length precedes it
	}
	if free >= 0 {
		if known*size == 0 || len(body)%(known*size) != 0 {
			return bad("input %q: %d bytes are not a whole number of %s elements of shape %v", port.Name, len(body), Datatype(port.DType), port.Shape)
		}
		shape[free] = len(body) / (known * size)
	}
	v, err := FromBytes(port.DType, shape, body)
	if err != nil {
		return bad("input %q: %w", port.Name, err)
	}
	r.Inputs = append(r.Inputs, serve.Tensor{Name: port.Name, Value: v})
	return nil
}

// wrap classes an error of the scanner.
func wrap(err error) error {
	if serve.CodeOf(err) == serve.InvalidArgument {
		return err
	}
	return bad("request: %w", err)
}

func (r *Request) object(s *scanner) error {
	if err := s.open('{'); err != nil {
		return err
	}
	var seen struct{ id, params, inputs, outputs bool }
	for n := 0; ; {
		ok, err := s.more('}', &n)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		twice := false
		switch string(key) {
		case "id":
			twice, seen.id = seen.id, true
			var text []byte
			if text, err = s.name("the request's id"); err == nil {
				r.ID = string(text)
			}
		case "parameters":
			twice, seen.params = seen.params, true
			err = s.params(r.param)
		case "inputs":
			if twice, seen.inputs = seen.inputs, true; !twice {
				r.parts, err = s.parts(r.parts, "input")
			}
		case "outputs":
			if twice, seen.outputs = seen.outputs, true; !twice {
				err = r.outputs(s)
			}
		default:
			_, err = s.skip()
		}
		if err != nil {
			return err
		}
		if twice {
			return fmt.Errorf("%q is there twice", key)
		}
	}
	if !seen.inputs {
		return fmt.Errorf("inputs are missing")
	}
	return nil
}

// param takes a parameter of the request; what is not known is left to others, as the protocol
// asks.
func (r *Request) param(name []byte, p param) (err error) {
	switch string(name) {
	case "binary_data_output":
		r.binary, err = p.boolean("binary_data_output")
	case "sequence_id":
		switch {
		case p.kind == 's':
			r.Sequence.ID = p.text
		case p.kind == 'i':
			if r.Sequence.ID = p.text; p.text == "0" {
				r.Sequence.ID = "" // Triton's number for no sequence
			}
		default:
			err = bad("parameter sequence_id: expected an integer or a string")
		}
		if err == nil {
			err = serve.CheckName("the sequence's id", r.Sequence.ID)
		}
	case "sequence_start":
		r.Sequence.Start, err = p.boolean("sequence_start")
	case "sequence_end":
		r.Sequence.End, err = p.boolean("sequence_end")
	case "reward":
		r.Sequence.Outcome.Reward, err = p.number("reward")
		r.Sequence.Outcome.Given = true
	case "terminated":
		r.Sequence.Outcome.Terminated, err = p.boolean("terminated")
	case "truncated":
		r.Sequence.Outcome.Truncated, err = p.boolean("truncated")
	case "timeout":
		var us int
		if us, err = p.size("timeout"); err == nil {
			r.Timeout = time.Duration(min(us, int(time.Hour/time.Microsecond)*24)) * time.Microsecond
		}
	}
	return err
}

func (r *Request) outputs(s *scanner) error {
	var list [8]part
	outs, err := s.parts(list[:0], "output")
	if err != nil {
		return err
	}
	for _, p := range outs {
		r.Outputs = append(r.Outputs, p.name)
		r.forms = append(r.forms, p.form)
	}
	return nil
}

// split gives the bytes after the JSON to the tensors that announced them and checks that every
// tensor has a value.
func split(parts []part, what string, rest []byte, binary bool) error {
	left := len(rest)
	for i := range parts {
		p := &parts[i]
		if err := p.complete(); err != nil {
			return bad("%s %q: %w", what, p.name, err)
		}
		switch {
		case p.size < 0 && p.value == nil:
			return bad("%s %q: it has neither data nor binary_data_size", what, p.name)
		case p.size < 0:
			continue
		case p.value != nil:
			return bad("%s %q: it has both data and binary_data_size", what, p.name)
		case !binary:
			return bad("%s %q: it has binary_data_size, but the header %s is missing", what, p.name, HeaderLength)
		case p.size > len(rest):
			return bad("%s %q: binary_data_size is %d, but %d of the %d bytes after the JSON are left", what, p.name, p.size, len(rest), left)
		}
		var err error
		if p.value, err = FromBytes(p.dtype, p.shape, rest[:p.size:p.size]); err != nil {
			return bad("%s %q: %w", what, p.name, err)
		}
		rest = rest[p.size:]
	}
	if len(rest) > 0 {
		return bad("%d of the %d bytes after the JSON belong to no %s", len(rest), left, what)
	}
	return nil
}
