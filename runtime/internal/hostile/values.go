package hostile

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Ints are hostile integers: small ones that make counts negative or divisors zero, and large
// ones that overflow 32 or 64 bits when something is added to or multiplied by them.
var Ints = []int64{
	0, 1, -1, 2, -2, 3, 7, -7, 64, 1000, math.MaxInt32, math.MinInt32, 1 << 31, 1 << 32, 1<<33 + 1, 1 << 40, 1 << 62,
	math.MaxInt64, math.MinInt64,
}

// Floats are hostile numbers.
var Floats = []float64{0, 1, -1, 2, 0.5, math.SmallestNonzeroFloat32, 1e10, -1e10, math.MaxFloat32, math.Inf(1), math.Inf(-1), math.NaN()}

// microsoft lists the numeric attributes of operators of com.microsoft, for which there is no
// schema here.
var microsoft = map[string][]schema.Attr{
	"FusedConv":                        convAttrs,
	"FusedGemm":                        {{Name: "alpha", Type: "FLOAT"}, {Name: "beta", Type: "FLOAT"}, {Name: "transA", Type: "INT"}, {Name: "transB", Type: "INT"}},
	"FusedMatMul":                      matmulAttrs,
	"TransposeMatMul":                  matmulAttrs,
	"BiasSoftmax":                      {{Name: "axis", Type: "INT"}, {Name: "is_inner_broadcast", Type: "INT"}},
	"GridSample":                       {{Name: "align_corners", Type: "INT"}},
	"MultiHeadAttention":               {{Name: "num_heads", Type: "INT"}, {Name: "mask_filter_value", Type: "FLOAT"}, {Name: "scale", Type: "FLOAT"}, {Name: "unidirectional", Type: "INT"}},
	"QuickGelu":                        {{Name: "alpha", Type: "FLOAT"}},
	"SimplifiedLayerNormalization":     {{Name: "axis", Type: "INT"}, {Name: "epsilon", Type: "FLOAT"}, {Name: "stash_type", Type: "INT"}},
	"SkipLayerNormalization":           {{Name: "epsilon", Type: "FLOAT"}},
	"SkipSimplifiedLayerNormalization": {{Name: "epsilon", Type: "FLOAT"}},
	"Trilu":                            {{Name: "upper", Type: "INT"}},
	"UnfoldTensor":                     {{Name: "dim", Type: "INT"}, {Name: "size", Type: "INT"}, {Name: "step", Type: "INT"}},
}

var convAttrs = []schema.Attr{
	{Name: "dilations", Type: "INTS"}, {Name: "group", Type: "INT"}, {Name: "kernel_shape", Type: "INTS"}, {Name: "pads", Type: "INTS"}, {Name: "strides", Type: "INTS"},
}

var matmulAttrs = []schema.Attr{
	{Name: "alpha", Type: "FLOAT"}, {Name: "transA", Type: "INT"}, {Name: "transB", Type: "INT"}, {Name: "transBatchA", Type: "INT"}, {Name: "transBatchB", Type: "INT"},
}

// formal lists the attributes that a node may carry: those of its operator's schema, and those
// that it carries anyhow.
func formal(m *onnx.Model, n *onnx.Node) []schema.Attr {
	var list []schema.Attr
	if op, ok := schema.Lookup(onnx.NormalizeDomain(n.Domain), n.OpType, m.Opset(n.Domain)); ok {
		list = slices.Clone(op.Attributes)
	} else if onnx.NormalizeDomain(n.Domain) == onnx.DomainMS {
		list = slices.Clone(microsoft[n.OpType])
	}
	for _, a := range n.Attribute {
		if !slices.ContainsFunc(list, func(f schema.Attr) bool { return f.Name == a.Name }) {
			list = append(list, schema.Attr{Name: a.Name, Type: a.Type.String()})
		}
	}
	return list
}

// attributes puts hostile numbers into the attributes of every node of the main graph.
func attributes(b Base) []Variant {
	var out []Variant
	for i, n := range b.Model.Graph.Node {
		for _, f := range formal(b.Model, n) {
			for _, h := range hostileAttributes(f, n.Attr(f.Name)) {
				out = append(out, Variant{b.Name, n.QualifiedOp(), "attribute " + f.Name, h.name, "", func() (*onnx.Model, []*tensor.Tensor, error) {
					m := b.Model.ShallowClone()
					m.Graph = forgetOutputs(m.Graph)
					c := n.ShallowClone()
					c.Attribute = slices.DeleteFunc(slices.Clone(n.Attribute), func(a *onnx.Attribute) bool { return a.Name == f.Name })
					c.Attribute = append(c.Attribute, h.attr)
					m.Graph.Node = slices.Clone(m.Graph.Node)
					m.Graph.Node[i] = c
					return m, b.Inputs, nil
				}})
			}
		}
	}
	return out
}

// forgetOutputs drops what a graph declares of computed values, since that may be what saves it.
func forgetOutputs(g *onnx.Graph) *onnx.Graph {
	c := g.ShallowClone()
	c.Output = slices.Clone(g.Output)
	for i, v := range c.Output {
		if t, ok := v.TensorType(); ok {
			c.Output[i] = onnx.NewValueInfo(onnx.Value(v.Name), onnx.TensorType{DType: t.DType})
		}
	}
	c.ValueInfo = nil
	return c
}

type named struct {
	name string
	attr *onnx.Attribute
}

// hostileAttributes lists the hostile values of an attribute; have is what the node carries, nil
// for nothing.
func hostileAttributes(f schema.Attr, have *onnx.Attribute) []named {
	var out []named
	put := func(name string, a *onnx.Attribute) { out = append(out, named{name, a}) }
	switch f.Type {
	case "INT":
		for _, v := range Ints {
			put(fmt.Sprint(v), &onnx.Attribute{Name: f.Name, Type: onnx.AttributeProto_INT, I: v})
		}
	case "FLOAT":
		for _, v := range Floats {
			put(fmt.Sprint(v), onnx.AttrFloat(f.Name, float32(v)))
		}
	case "INTS":
		lists(have.GetInts(), Ints, []int64{1, 1}, func(name string, l []int64) {
			put(name, &onnx.Attribute{Name: f.Name, Type: onnx.AttributeProto_INTS, Ints: l})
		})
	case "FLOATS":
		var hostile []float32
		for _, v := range Floats {
			hostile = append(hostile, float32(v))
		}
		lists(have.GetFloats(), hostile, []float32{1, 1}, func(name string, l []float32) {
			put(name, &onnx.Attribute{Name: f.Name, Type: onnx.AttributeProto_FLOATS, Floats: l})
		})
	}
	return out
}

// lists makes hostile lists of one that works, or of def where there is none.
func lists[T any](have, hostile, def []T, put func(string, []T)) {
	base := have
	if len(base) == 0 {
		base = def
	}
	for _, v := range hostile {
		put(fmt.Sprintf("all %v", v), slices.Repeat([]T{v}, len(base)))
		if len(base) > 1 {
			first, last := slices.Clone(base), slices.Clone(base)
			first[0], last[len(last)-1] = v, v
			put(fmt.Sprintf("first %v", v), first)
			put(fmt.Sprintf("last %v", v), last)
		}
	}
	put("empty", []T{})
	put("one less", slices.Clone(base[:len(base)-1]))
	put("one more", append(slices.Clone(base), base[len(base)-1]))
	put("many more", slices.Repeat(base, 100))
}

type fill struct {
	name  string
	apply func(t *tensor.Tensor) *tensor.Tensor
}

// fills lists hostile contents for a tensor: every element the same, or one element only.
func fills(t *tensor.Tensor) []fill {
	var out []fill
	add := func(name string, set func(t *tensor.Tensor, i int)) {
		every := func(from, to func(n int) int) func(*tensor.Tensor) *tensor.Tensor {
			return func(t *tensor.Tensor) *tensor.Tensor {
				c := t.Clone()
				for i := from(c.Len()); i < to(c.Len()); i++ {
					set(c, i)
				}
				return c
			}
		}
		zero, one := func(int) int { return 0 }, func(int) int { return 1 }
		all, last := func(n int) int { return n }, func(n int) int { return n - 1 }
		out = append(out, fill{"all " + name, every(zero, all)})
		if t.Len() > 1 {
			out = append(out, fill{"first " + name, every(zero, one)}, fill{"last " + name, every(last, all)})
		}
	}
	switch d := t.DType(); {
	case d == tensor.Bool:
		add("false", func(t *tensor.Tensor, i int) { t.Bytes()[i] = 0 })
		add("true", func(t *tensor.Tensor, i int) { t.Bytes()[i] = 1 })
		// Bytes of bools that are neither.
		add("255", func(t *tensor.Tensor, i int) { t.Bytes()[i] = 255 })
	case d == tensor.Float16 || d == tensor.BFloat16:
		for _, bits := range []uint16{0, 0x3c00, 0xbc00, 0x7c00, 0x7f80, 0xffff, 0x0001, 0x7bff} {
			add(fmt.Sprintf("bits %#x", bits), func(t *tensor.Tensor, i int) { tensor.Data[uint16](t)[i] = bits })
		}
	case d == tensor.Float32:
		for _, v := range Floats {
			add(fmt.Sprint(v), func(t *tensor.Tensor, i int) { t.Float32s()[i] = float32(v) })
		}
	case d == tensor.Float64:
		for _, v := range append([]float64{math.MaxFloat64, 5e-324}, Floats...) {
			add(fmt.Sprint(v), func(t *tensor.Tensor, i int) { t.Float64s()[i] = v })
		}
	case d.Bits() >= 8 && d.Bits() <= 64 && !d.IsFloat():
		size := d.Bits() / 8
		if len(t.Bytes()) != size*t.Len() {
			return nil
		}
		values := slices.Concat(Ints, []int64{-128, 127, 255, math.MinInt16, math.MaxInt16, math.MaxUint16, math.MaxUint32})
		for _, v := range values {
			if v > 0 && size < 8 && v >= 1<<(8*size) || v < 0 && size < 8 && v < -1<<(8*size-1) {
				continue
			}
			add(fmt.Sprint(v), func(t *tensor.Tensor, i int) {
				for k := range size {
					t.Bytes()[i*size+k] = byte(v >> (8 * k))
				}
			})
		}
	}
	return out
}
