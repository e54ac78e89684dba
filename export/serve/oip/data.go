package oip

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// part is an element of "inputs" or "outputs".
type part struct {
	name            string
	dtype           tensor.DType
	shape           []int
	hasType, hasShp bool
	// dataAt is where "data" begins when it came before the datatype or the shape; -1 otherwise.
	dataAt int
	// size is binary_data_size, -1 without.
	size int
	// form is what "binary_data" asks for.
	form  form
	value *tensor.Tensor
}

// form is how an output is written.
type form uint8

const (
	asDefault form = iota
	asJSON
	asBinary
)

// parts reads a list of tensors into dst. what is "input" or "output".
func (s *scanner) parts(dst []part, what string) ([]part, error) {
	if err := s.open('['); err != nil {
		return dst, err
	}
	for n := 0; ; {
		if ok, err := s.more(']', &n); err != nil || !ok {
			return dst, err
		}
		if n > serve.MaxPorts {
			return dst, serve.CheckPorts(what+"s", n)
		}
		p := part{dataAt: -1, size: -1}
		if err := s.part(&p); err != nil {
			if p.name == "" {
				return dst, bad("%ss[%d]: %w", what, n-1, err)
			}
			return dst, bad("%s %q: %w", what, p.name, err)
		}
		if p.name == "" {
			return dst, bad("%ss[%d]: a name is missing", what, n-1)
		}
		for i := range dst {
			if dst[i].name == p.name {
				return dst, bad("%s %q is there twice", what, p.name)
			}
		}
		dst = append(dst, p)
	}
}

func (s *scanner) part(p *part) error {
	if err := s.open('{'); err != nil {
		return err
	}
	var seen struct{ name, params, data bool }
	for n := 0; ; {
		if ok, err := s.more('}', &n); err != nil || !ok {
			if err == nil && p.dataAt >= 0 && (p.hasType || p.hasShp) {
				err = s.laterData(p)
			}
			return err
		}
		key, err := s.key()
		if err != nil {
			return err
		}
		twice := false
		switch string(key) {
		case "name":
			twice, seen.name = seen.name, true
			var text []byte
			if text, err = s.name("the name of an input or output"); err == nil {
				p.name = string(text)
			}
		case "datatype":
			twice, p.hasType = p.hasType, true
			var text []byte
			if text, err = s.str(); err == nil {
				p.dtype, err = ParseDatatype(string(text))
			}
		case "shape":
			twice, p.hasShp = p.hasShp, true
			if !twice {
				err = s.shape(p)
			}
		case "parameters":
			twice, seen.params = seen.params, true
			err = s.params(p.param)
		case "data":
			if twice, seen.data = seen.data, true; twice {
				break
			}
			if p.hasType && p.hasShp {
				p.value, err = s.data(p.dtype, p.shape)
				break
			}
			s.peek()
			p.dataAt = s.i
			_, err = s.skip()
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
}

// laterData reads data that stood before what says how to read it.
func (s *scanner) laterData(p *part) (err error) {
	if err := p.complete(); err != nil {
		return err
	}
	again := scanner{b: s.b[:s.i], i: p.dataAt, depth: s.depth + 1}
	p.value, err = again.data(p.dtype, p.shape)
	return err
}

// complete checks that a tensor says what it is.
func (p *part) complete() error {
	switch {
	case !p.hasType:
		return fmt.Errorf("the datatype is missing")
	case !p.hasShp:
		return fmt.Errorf("the shape is missing")
	}
	return nil
}

func (p *part) param(name []byte, v param) (err error) {
	switch string(name) {
	case "binary_data_size":
		p.size, err = v.size("binary_data_size")
	case "binary_data":
		var on bool
		if on, err = v.boolean("binary_data"); on {
			p.form = asBinary
		} else {
			p.form = asJSON
		}
	case "shared_memory_region", "shared_memory_offset", "shared_memory_byte_size":
		err = fmt.Errorf("shared memory is not supported; send the tensor in the body")
	case "classification":
		if v.kind != 'i' || v.i != 0 {
			err = fmt.Errorf("classification is not supported")
		}
	}
	return err
}

// name reads a string that is kept, and so is not longer than serve.MaxName.
func (s *scanner) name(what string) ([]byte, error) {
	text, err := s.str()
	if err == nil && len(text) > serve.MaxName {
		err = serve.CheckName(what, string(text))
	}
	return text, err
}

func (s *scanner) shape(p *part) error {
	if err := s.open('['); err != nil {
		return err
	}
	p.shape = make([]int, 0, 4)
	for n := 0; ; {
		if ok, err := s.more(']', &n); err != nil || !ok {
			return err
		}
		if err := serve.CheckRank(n); err != nil {
			return err
		}
		d, err := s.number()
		if err != nil {
			return err
		}
		v, err := d.signed(64, "INT64")
		if err != nil || v < 0 || int64(int(v)) != v {
			return fmt.Errorf("extent %d of the shape is %s, expected an integer of at least 0", n-1, clip(string(d.text)))
		}
		p.shape = append(p.shape, int(v))
	}
}

// data reads the elements of a tensor, flat or nested.
func (s *scanner) data(dtype tensor.DType, shape []int) (*tensor.Tensor, error) {
	n, err := tensor.Len(shape)
	if err != nil {
		return nil, err
	}
	if left := len(s.b) - s.i; n > (left+1)/2 { // "1,": every element but the last takes two bytes
		return nil, fmt.Errorf("shape %v has %d elements, more than the data has", shape, n)
	}
	if dtype == tensor.String {
		if err := serve.CheckStrings(n); err != nil {
			return nil, err
		}
		v := make([]string, n)
		if err := elements(s, v, shape, func(s *scanner) (string, error) { text, err := s.str(); return string(text), err }); err != nil {
			return nil, err
		}
		return tensor.OfStrings(v, shape...), nil
	}
	t := tensor.New(dtype, shape...)
	switch dtype {
	case tensor.Float32:
		err = elements(s, t.Float32s(), shape, (*scanner).float32)
	case tensor.Float64:
		err = elements(s, t.Float64s(), shape, (*scanner).float64)
	case tensor.Float16:
		err = elements(s, tensor.Data[uint16](t), shape, (*scanner).float16)
	case tensor.BFloat16:
		err = elements(s, tensor.Data[uint16](t), shape, (*scanner).bfloat16)
	case tensor.Bool:
		err = elements(s, t.Bools(), shape, (*scanner).boolean)
	case tensor.Int8:
		err = elements(s, tensor.Data[int8](t), shape, signed[int8](8, "INT8"))
	case tensor.Int16:
		err = elements(s, tensor.Data[int16](t), shape, signed[int16](16, "INT16"))
	case tensor.Int32:
		err = elements(s, t.Int32s(), shape, signed[int32](32, "INT32"))
	case tensor.Int64:
		err = elements(s, t.Int64s(), shape, signed[int64](64, "INT64"))
	case tensor.Uint8:
		err = elements(s, tensor.Data[uint8](t), shape, unsigned[uint8](8, "UINT8"))
	case tensor.Uint16:
		err = elements(s, tensor.Data[uint16](t), shape, unsigned[uint16](16, "UINT16"))
	case tensor.Uint32:
		err = elements(s, tensor.Data[uint32](t), shape, unsigned[uint32](32, "UINT32"))
	case tensor.Uint64:
		err = elements(s, tensor.Data[uint64](t), shape, unsigned[uint64](64, "UINT64"))
	default:
		err = fmt.Errorf("%v has no JSON form", dtype)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

func (s *scanner) float32() (float32, error) {
	d, err := s.number()
	if err != nil {
		return 0, err
	}
	return d.float32()
}

func (s *scanner) float64() (float64, error) {
	d, err := s.number()
	if err != nil {
		return 0, err
	}
	return d.float64()
}

func (s *scanner) float16() (uint16, error) {
	d, err := s.number()
	if err != nil {
		return 0, err
	}
	f, err := d.float32()
	h := tensor.Float32ToFloat16(f)
	if err != nil || h&0x7c00 == 0x7c00 {
		return 0, d.outOf("FP16")
	}
	return h, nil
}

func (s *scanner) bfloat16() (uint16, error) {
	d, err := s.number()
	if err != nil {
		return 0, err
	}
	f, err := d.float32()
	h := tensor.Float32ToBFloat16(f)
	if err != nil || h&0x7f80 == 0x7f80 {
		return 0, d.outOf("BF16")
	}
	return h, nil
}

func signed[T int8 | int16 | int32 | int64](bits int, datatype string) func(*scanner) (T, error) {
	return func(s *scanner) (T, error) {
		d, err := s.number()
		if err != nil {
			return 0, err
		}
		v, err := d.signed(bits, datatype)
		return T(v), err
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64](bits int, datatype string) func(*scanner) (T, error) {
	return func(s *scanner) (T, error) {
		d, err := s.number()
		if err != nil {
			return 0, err
		}
		v, err := d.unsigned(bits, datatype)
		return T(v), err
	}
}

// nesting checks that lists are regular: numbers lie at one depth, and lists of one depth have one
// length.
type nesting struct {
	leaf  int // the depth of numbers, 0 before the first
	width []int
}

// elements fills dst from a list; a tensor of rank 0 may also be a value by itself.
func elements[T any](s *scanner, dst []T, shape []int, elem func(*scanner) (T, error)) error {
	var g nesting
	if len(shape) == 0 && s.peek() != '[' {
		v, err := elem(s)
		dst[0] = v
		return err
	}
	n, err := fill(s, &g, 1, dst, 0, elem)
	if err != nil {
		return err
	}
	if n != len(dst) {
		return fmt.Errorf("data has %d elements, but shape %v has %d", n, shape, len(dst))
	}
	return nil
}

// fill reads one list at a depth of at least 1; n elements are there already.
func fill[T any](s *scanner, g *nesting, depth int, dst []T, n int, elem func(*scanner) (T, error)) (int, error) {
	if err := s.open('['); err != nil {
		return n, err
	}
	members := 0
	for {
		ok, err := s.more(']', &members)
		if err != nil {
			return n, err
		}
		if !ok {
			break
		}
		if s.peek() == '[' {
			if g.leaf != 0 && g.leaf <= depth {
				return n, s.errorf("a list beside an element")
			}
			if n, err = fill(s, g, depth+1, dst, n, elem); err != nil {
				return n, err
			}
			continue
		}
		if g.leaf == 0 {
			g.leaf = depth
		}
		if g.leaf != depth {
			return n, s.errorf("elements lie at different depths of the lists")
		}
		if n == len(dst) {
			return n, fmt.Errorf("data has more elements than the shape, which has %d", len(dst))
		}
		if dst[n], err = elem(s); err != nil {
			return n, fmt.Errorf("element %d: %w", n, err)
		}
		n++
	}
	g.width = slices.Grow(g.width, max(0, depth-len(g.width)))
	for len(g.width) < depth {
		g.width = append(g.width, -1)
	}
	if w := &g.width[depth-1]; *w < 0 {
		*w = members
	} else if *w != members {
		return n, s.errorf("the lists are ragged: one has %d members, one beside it %d", *w, members)
	}
	return n, nil
}
