package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// tapes are the element types that values of a branch are kept in: float64, everything else that is
// floating-point, and integers with booleans. Each conversion there and back is exact.
var tapes = []tensor.DType{tensor.Float32, tensor.Float64, tensor.Int64}

// tapeOf returns the tape for an element type; ok is false where none fits.
func tapeOf(d tensor.DType) (tensor.DType, bool) {
	switch d {
	case tensor.Float32, tensor.Float16, tensor.BFloat16:
		return tensor.Float32, true
	case tensor.Float64:
		return tensor.Float64, true
	case tensor.Int64, tensor.Int32, tensor.Int16, tensor.Int8, tensor.Uint32, tensor.Uint16, tensor.Uint8, tensor.Bool:
		return tensor.Int64, true
	}
	return tensor.Undefined, false
}

// keepValues makes the forward node n hand over the values that the gradients of its branches need:
// flattened, one behind the other, on one output for each kind of element. The shorter of two tapes
// is filled up, so that the extent is known whichever branch runs. Nothing is done where no branch
// is nested, and where a value has a shape that only a run can tell.
func (p *pass) keepValues(n *onnx.Node, sides []*branch) error {
	if !slices.ContainsFunc(sides, (*branch).nested) {
		return nil
	}
	c := p.c
	layouts := make([]map[tensor.DType][]string, len(sides))
	constants := make([]map[string]string, len(sides))
	extents := map[tensor.DType]int{}
	for i, b := range sides {
		layouts[i], constants[i] = map[tensor.DType][]string{}, map[string]string{}
		size := map[tensor.DType]int{}
		for _, v := range b.needed() {
			if known := c.Known(onnx.Value(v)); known != nil {
				constants[i][v] = string(c.b.Const(known))
				continue
			}
			t, fits := tapeOf(c.DType(onnx.Value(v)))
			shape, static := c.Type(onnx.Value(v)).Static()
			if !fits || !static {
				return nil
			}
			layouts[i][t] = append(layouts[i][t], v)
			size[t] += prod(shape)
			extents[t] = max(extents[t], size[t])
		}
	}
	scope := c.b.SetScope(p.scope + c.originOf(n.Label()) + "/")
	defer c.b.SetScope(scope)
	bodies := make([]*onnx.Graph, len(sides))
	for i, b := range sides {
		bodies[i] = &onnx.Graph{Name: b.name, Node: b.forward}
		own := made(b.forward)
		for j, v := range b.outs {
			if !own[string(v)] || slices.Contains(b.outs[:j], v) {
				bodies[i].Node = append(bodies[i].Node, c.emitted(func() { v = c.Unary("Identity", v) })...)
			}
			bodies[i].Output = append(bodies[i].Output, onnx.NewValueInfo(v, c.declarable(c.Type(v))))
		}
	}
	unpack := make([][]*onnx.Node, len(sides))
	for _, t := range tapes {
		length := extents[t]
		if length == 0 {
			continue
		}
		tape := c.b.Fresh("tape")
		n.Output = append(n.Output, string(tape))
		c.env.Set(tape, factOf(onnx.TypeOf(t, length)))
		for i := range sides {
			var v onnx.Value
			bodies[i].Node = append(bodies[i].Node, c.emitted(func() { v = c.pack(t, length, layouts[i][t]) })...)
			bodies[i].Output = append(bodies[i].Output, onnx.NewValueInfo(v, onnx.TypeOf(t, length)))
			unpack[i] = append(unpack[i], c.emitted(func() { c.unpack(tape, length, layouts[i][t], constants[i]) })...)
		}
	}
	for i, b := range sides {
		n.SetAttr(onnx.AttrGraph(b.name, bodies[i]))
		renameValues(b.backward, constants[i])
		b.forward, b.backward = nil, append(unpack[i], b.backward...)
	}
	return c.b.Err()
}

// pack emits values flattened and joined, filled up to a length.
func (c *Context) pack(t tensor.DType, length int, values []string) onnx.Value {
	var parts []onnx.Value
	at := 0
	for _, v := range values {
		n := prod(c.Shape(onnx.Value(v)))
		if n == 0 {
			continue
		}
		parts = append(parts, c.Reshape(c.Cast(onnx.Value(v), t), n))
		at += n
	}
	if at < length {
		parts = append(parts, c.Fill(t, 0, length-at))
	}
	if len(parts) == 1 {
		// An output of a branch must be made there.
		return c.Unary("Identity", parts[0])
	}
	return c.Concat(0, parts...)
}

// unpack emits the values of a tape and adds their new names to names.
func (c *Context) unpack(tape onnx.Value, length int, values []string, names map[string]string) {
	var sizes []int
	at := 0
	for _, v := range values {
		n := prod(c.Shape(onnx.Value(v)))
		if n == 0 {
			names[v] = string(c.ZerosLike(onnx.Value(v)))
			continue
		}
		sizes = append(sizes, n)
		at += n
	}
	if len(sizes) == 0 {
		return
	}
	if at < length {
		sizes = append(sizes, length-at)
	}
	parts := c.Split(tape, 0, sizes...)
	for _, v := range values {
		if names[v] != "" {
			continue
		}
		names[v] = string(c.Cast(c.Reshape(parts[0], c.Shape(onnx.Value(v))...), c.DType(onnx.Value(v))))
		parts = parts[1:]
	}
}
