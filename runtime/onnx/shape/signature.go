package shape

import (
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// A signature lists an operator's inputs, one word each, so that arity, kinds and element types are
// checked before a rule runs. A word is one or more class letters, or the number of an earlier
// input whose element type this one must have, and a suffix: "?" for an input that may be absent,
// "*" for any number of further inputs, "+" for at least one.
//
//	f float   r float32   n numeric   i integer   j int32 or int64   l int64   b bool   s string   q quantised   a any tensor
//	S sequence   O optional   V a value of any kind
//
// "f f ?" is written "f 0 0?": a float, a second one of the same element type, and an optional
// third. The classes are the union over all opsets: whether a kernel exists for a type is the
// engine's business.
type signature struct {
	in  []param
	min int  // inputs that must be given
	any bool // the last parameter repeats
}

type param struct {
	types uint64 // set of element types; 0 for any
	kinds uint8  // set of kinds
	same  int    // input whose element type this one shares; -1 for none
	opt   bool
	class string
}

func bits(ds ...tensor.DType) (m uint64) {
	for _, d := range ds {
		m |= 1 << d
	}
	return m
}

var (
	floats   = bits(tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64)
	integers = bits(tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64, tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64)
	quants   = bits(tensor.Int8, tensor.Uint8, tensor.Int16, tensor.Uint16, tensor.Int32, tensor.Uint32, tensor.Int4, tensor.Uint4, tensor.Int2, tensor.Uint2, tensor.Float4E2M1,
		tensor.Float8E4M3FN, tensor.Float8E4M3FNUZ, tensor.Float8E5M2, tensor.Float8E5M2FNUZ, tensor.Float8E8M0)
	classes = map[rune]struct {
		types uint64
		kinds uint8
		name  string
	}{
		'f': {floats, 1 << Tensor, "float"}, 'r': {bits(tensor.Float32), 1 << Tensor, "float32"}, 'n': {floats | integers, 1 << Tensor, "numeric"}, 'i': {integers, 1 << Tensor, "integer"},
		'j': {bits(tensor.Int32, tensor.Int64), 1 << Tensor, "int32 or int64"}, 'l': {bits(tensor.Int64), 1 << Tensor, "int64"},
		'b': {bits(tensor.Bool), 1 << Tensor, "bool"}, 's': {bits(tensor.String), 1 << Tensor, "string"}, 'q': {quants, 1 << Tensor, "quantised"},
		'a': {0, 1 << Tensor, "tensor"}, 'S': {0, 1 << Sequence, "sequence"}, 'O': {0, 1<<Optional | 1<<OptionalSequence, "optional"},
		'V': {0, 1<<Tensor | 1<<Sequence | 1<<Optional | 1<<OptionalSequence | 1<<Map, "any value"},
	}
)

// parseSignature panics on a malformed text: signatures are part of the program.
func parseSignature(s string) signature {
	var g signature
	for _, w := range strings.Fields(s) {
		p := param{same: -1}
		var names []string
		for _, r := range w {
			switch c, ok := classes[r]; {
			case ok && r == 'a', ok && c.types == 0:
				p.types, p.kinds = 0, p.kinds|c.kinds
				names = append(names, c.name)
			case ok:
				p.types, p.kinds = p.types|c.types, p.kinds|c.kinds
				names = append(names, c.name)
			case r >= '0' && r <= '9':
				p.same, p.kinds = int(r-'0'), 1<<Tensor
			case r == '?':
				p.opt = true
			case r == '*':
				p.opt, g.any = true, true
			case r == '+':
				g.any = true
			default:
				panic("shape: signature " + s)
			}
		}
		p.class = strings.Join(names, " or ")
		g.in = append(g.in, p)
		if !p.opt {
			g.min = len(g.in)
		}
	}
	return g
}

// check compares the inputs of a call with the signature.
func (g *signature) check(c *call) error {
	if len(c.ins) < g.min {
		return fmt.Errorf("it has %d inputs, at least %d are needed", len(c.ins), g.min)
	}
	if len(c.ins) > len(g.in) && !g.any {
		return fmt.Errorf("it has %d inputs, at most %d are allowed", len(c.ins), len(g.in))
	}
	for i, f := range c.ins {
		p := &g.in[min(i, len(g.in)-1)]
		if f == nil {
			if !p.opt {
				return fmt.Errorf("input %d is absent but not optional", i)
			}
			continue
		}
		if p.kinds&(1<<f.Kind) == 0 {
			return fmt.Errorf("input %d %q is a %v, want %s", i, c.node.In(i), f.Kind, p.class)
		}
		d := f.Type.DType
		if d == tensor.Undefined {
			continue
		}
		if p.types != 0 && p.types&(1<<uint(d&63)) == 0 {
			return fmt.Errorf("input %d %q is %v, want element type %s", i, c.node.In(i), f.Type, p.class)
		}
		if p.same >= 0 {
			if o := c.dtype(p.same); o != d && o != tensor.Undefined {
				return fmt.Errorf("input %d %q is %v, want the element type of input %d, %v", i, c.node.In(i), f.Type, p.same, c.typ(p.same))
			}
		}
	}
	return nil
}

// dtypeAttr reads an attribute that holds an element type.
func (c *call) dtypeAttr(name string, def tensor.DType) tensor.DType {
	v := c.int(name, int(def))
	d := tensor.DType(v)
	if v != int(def) && (v < 0 || v > 63 || d.Bits() == 0 && d != tensor.String) {
		c.failf("attribute %q is %d, which is no element type", name, v)
		return tensor.Undefined
	}
	return d
}

// axisOf normalises an axis of a shape of n axes.
func axisOf(axis, n int) (int, error) {
	if axis < -n || axis >= n {
		return 0, fmt.Errorf("axis %d is out of range for rank %d", axis, n)
	}
	if axis < 0 {
		axis += n
	}
	return axis, nil
}

// axesOf normalises a list of axes and refuses repeated ones. The result says for each axis whether
// it is listed.
func axesOf(axes []int, n int) ([]bool, error) {
	in := make([]bool, n)
	for _, a := range axes {
		a, err := axisOf(a, n)
		if err != nil {
			return nil, err
		}
		if in[a] {
			return nil, fmt.Errorf("axis %d is listed twice", a)
		}
		in[a] = true
	}
	return in, nil
}

func unknownDims(n int) []onnx.Dim {
	d := make([]onnx.Dim, n)
	for i := range d {
		d[i] = onnx.Symbol("")
	}
	return d
}
