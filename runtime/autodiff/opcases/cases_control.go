package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sub builds a sub-graph with a builder of its own. Its values are called prefix/…; inputs are
// declared with the given types, and what make returns are its outputs.
func sub(prefix string, inputs []onnx.TensorType, make func(b *onnx.Builder, in []onnx.Value) []onnx.Value) *onnx.Graph {
	b := onnx.NewBuilder(prefix, 18)
	b.SetScope(prefix + "/")
	var in []onnx.Value
	for _, t := range inputs {
		in = append(in, b.Input(string(b.Fresh("in"))+"/value", t))
	}
	outs := make(b, in)
	g := b.Graph()
	// Constants of several sub-graphs must not share names.
	old := map[string]string{}
	for _, t := range g.Initializer {
		old[t.Name] = prefix + "/" + t.Name
		t.Name = old[t.Name]
	}
	for _, n := range g.Node {
		for i, v := range n.Input {
			if to, ok := old[v]; ok {
				n.Input[i] = to
			}
		}
	}
	for _, v := range outs {
		if to, ok := old[string(v)]; ok {
			v = onnx.Value(to)
		}
		g.Output = append(g.Output, &onnx.ValueInfo{Name: string(v)})
	}
	return g
}

func branches(yes, no *onnx.Graph) []*onnx.Attribute {
	return []*onnx.Attribute{onnx.AttrGraph("then_branch", yes), onnx.AttrGraph("else_branch", no)}
}

func two(a, b onnx.Value) []onnx.Value { return []onnx.Value{a, b} }

func controlCases() []Case {
	yes := Tensor(tensor.Scalar(true))
	dynamic := func(v bool) Arg { return Arg{dynamic: true, gen: bools(nil, v).gen} }
	f := func(shape ...int) onnx.TensorType { return onnx.TypeOf(tensor.Float32, shape...) }
	i64, cond := onnx.TypeOf(tensor.Int64), onnx.TypeOf(tensor.Bool)
	// choose multiplies two outer values in one branch and uses one of them in the other.
	choose := func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		then := sub("then", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Mul", two(in[1], in[2]))}
		})
		other := sub("else", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Add", two(b.Op("Tanh", []onnx.Value{in[1]}), b.Float(2)))}
		})
		return b.OpN("If", "", 1, in[:1], branches(then, other)...)
	}
	// nested has an If within an If and gives two outputs, one of them an outer value.
	nested := func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		inner := func(b *onnx.Builder, tag string) onnx.Value {
			return b.OpN("If", "", 1, in[1:2], branches(
				sub(tag+"/a", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value { return []onnx.Value{b.Op("Exp", in[2:3])} }),
				sub(tag+"/b", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
					return []onnx.Value{b.Op("Mul", two(in[2], in[3]))}
				}))...)[0]
		}
		y := b.OpN("If", "", 2, in[:1], branches(
			sub("then", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
				return two(inner(b, "then"), b.Op("Identity", in[3:4]))
			}),
			sub("else", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
				v := inner(b, "else")
				return two(b.Op("Mul", two(v, v)), v)
			}))...)
		return y
	}
	// norm holds operators in its branches that are expanded, have fused gradients, or are asked
	// for another output.
	norm := func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		then := sub("then", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("LayerNormalization", in[1:3])}
		})
		other := sub("else", nil, func(b *onnx.Builder, _ []onnx.Value) []onnx.Value {
			return []onnx.Value{b.Op("Mul", two(b.Op("MaxPool", in[1:2], onnx.AttrInts("kernel_shape", 3), onnx.AttrInts("pads", 1, 1)), in[2]))}
		})
		return b.OpN("If", "", 1, in[:1], branches(then, other)...)
	}
	// recurse carries x ← tanh(x·w) and stacks the squares.
	recurse := func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		body := sub("body", []onnx.TensorType{i64, cond, f(2, 2)}, func(b *onnx.Builder, v []onnx.Value) []onnx.Value {
			x := b.Op("Tanh", []onnx.Value{b.Op("MatMul", two(v[2], in[3]))})
			return []onnx.Value{b.Op("Identity", v[1:2]), x, b.Op("Mul", two(x, x))}
		})
		return b.OpN("Loop", "", 2, in[:3], onnx.AttrGraph("body", body))
	}
	// until stops by a condition computed from the iteration.
	until := func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		body := sub("body", []onnx.TensorType{i64, cond, f(3)}, func(b *onnx.Builder, v []onnx.Value) []onnx.Value {
			return two(b.Op("Less", two(v[0], b.Int(2))), b.Op("Mul", two(v[2], b.Op("Sin", v[2:3]))))
		})
		return b.OpN("Loop", "", 1, in[:3], onnx.AttrGraph("body", body))
	}
	// grow stops once a value is large, which is known at run time alone.
	grow := func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		body := sub("body", []onnx.TensorType{i64, cond, f()}, func(b *onnx.Builder, v []onnx.Value) []onnx.Value {
			x := b.Op("Mul", two(v[2], in[3]))
			return two(b.Op("Less", two(x, b.Float(6))), x)
		})
		return b.OpN("Loop", "", 1, in[:3], onnx.AttrGraph("body", body))
	}
	// scan keeps a running sum of products over two inputs.
	scan := func(attrs ...*onnx.Attribute) func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
		return func(b *onnx.Builder, in []onnx.Value) []onnx.Value {
			body := sub("body", []onnx.TensorType{f(2), f(2), f(2)}, func(b *onnx.Builder, v []onnx.Value) []onnx.Value {
				s := b.Op("Add", two(v[0], b.Op("Mul", two(v[1], v[2]))))
				return two(s, b.Op("Tanh", []onnx.Value{s}))
			})
			return b.OpN("Scan", "", 2, in, append(attrs, onnx.AttrGraph("body", body), onnx.AttrInt("num_scan_inputs", 2))...)
		}
	}
	axes := func(name string, v ...int) *onnx.Attribute { return onnx.AttrInts(name, v...) }
	return []Case{
		op("If", "taken", dynamic(true), Any(2, 3), Any(3)).graph(choose),
		op("If", "not taken", dynamic(false), Any(2, 3), Any(2, 3)).graph(choose),
		op("If", "constant condition", yes, Any(2), Any(2)).graph(choose),
		op("If", "nested, both", dynamic(true), dynamic(true), Any(3), Any(3)).graph(nested),
		op("If", "nested, inner not", dynamic(true), dynamic(false), Any(3), Any(3)).graph(nested),
		op("If", "nested, outer not", dynamic(false), dynamic(true), Any(3), Any(3)).graph(nested),
		op("If", "nested, neither", dynamic(false), dynamic(false), Any(3), Any(3)).graph(nested),

		op("If", "normalisation", dynamic(true), Any(2, 1, 4), Any(4)).graph(norm),
		op("If", "pool", dynamic(false), Distinct(2, 1, 4), Any(4)).graph(norm),

		op("Loop", "recurrence", Int(3), yes, Any(2, 2), Any(2, 2)).graph(recurse),
		op("Loop", "once", Int(1), yes, Any(2, 2), Any(2, 2)).graph(recurse),
		op("Loop", "no condition", Int(4), none, Any(2, 2), Any(2, 2)).graph(recurse),
		op("Loop", "condition of the iteration", Int(10), yes, Between(0.5, 1.5, 3)).graph(until),
		op("Loop", "condition without count", none, yes, Between(0.5, 1.5, 3)).graph(until),
		op("Loop", "condition of a value", Int(8), yes, Between(0.9, 1.1), Between(1.9, 2.1)).graph(grow),

		op("Scan", "two inputs", Any(2), Any(4, 2), Any(4, 2)).graph(scan()),
		op("Scan", "backwards", Any(2), Any(3, 2), Any(3, 2)).graph(scan(axes("scan_input_directions", 1, 0), axes("scan_output_directions", 1))),
		op("Scan", "axes", Any(2), Any(2, 4), Any(4, 2)).graph(scan(axes("scan_input_axes", 1, 0), axes("scan_output_axes", -1))),
		op("Scan", "one step", Any(2), Any(1, 2), Any(1, 2)).graph(scan()),
	}
}
