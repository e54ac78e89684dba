package bake

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// weightLevels is the largest quantised weight. It leaves one bit of eight unused: without it, the
// sum of two products overflows the 16 bits that processors without VNNI add them in, and a model
// would give different answers on different machines.
const weightLevels = 63

// activationZero is the quantised 0 of activations, which take 1 to 255.
const activationZero = 128

// Int8 returns m with the larger constant weights of MatMul, Gemm and Conv as int8, and the number
// of quantised weights.
//
// A weight that a Split takes apart is quantised in its parts. MatMul and Gemm compute in int8:
// weights have one scale for each output channel, fixed here; activations have one for each row,
// which the graph computes (dynamic quantisation). ONNX Runtime's own quantize_dynamic has one for
// the whole tensor instead, so what a row gives depends on the other rows of its batch, and a
// server that joins requests would give different answers from one time to the next. Weights of
// Conv are stored as int8 with one scale per output channel and computed with in float32.
// Activations must be finite.
func Int8(m *onnx.Model) (*onnx.Model, int, error) {
	m, err := parted(m)
	if err != nil {
		return nil, 0, fmt.Errorf("int8 weights: %w", err)
	}
	q := &quantizer{m: m.ShallowClone(), rows: map[string]quantized{}, weights: map[string]bool{}}
	q.b = onnx.Extend(q.m)
	nodes := q.m.Graph.Node
	q.m.Graph.Node = nil
	for _, n := range nodes {
		if err := q.node(n); err != nil {
			return nil, 0, fmt.Errorf("int8 weights: node %q (%s): %w", n.Name, n.OpType, err)
		}
	}
	if err := q.b.Err(); err != nil {
		return nil, 0, fmt.Errorf("int8 weights: %w", err)
	}
	q.m.SetMeta(metaWeights, "int8")
	out, err := onnx.Prune(q.m)
	if err == nil {
		err = onnx.Check(out)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("int8 weights: %w", err)
	}
	return out, len(q.weights), nil
}

// quantizer rewrites a graph node by node, in order.
type quantizer struct {
	m *onnx.Model
	b *onnx.Builder
	// rows are the activations that have been quantised.
	rows    map[string]quantized
	weights map[string]bool
}

// quantized is uint8 values and the float32 scale of every row.
type quantized struct{ values, scale onnx.Value }

func (q *quantizer) node(n *onnx.Node) error {
	w, rank := 1, 2
	if n.OpType == "Conv" {
		rank = 0 // Any.
	} else if n.OpType != "MatMul" && n.OpType != "Gemm" {
		q.b.Append(n)
		return nil
	}
	t, err := q.weight(n, w, rank)
	if err != nil || t == nil {
		q.b.Append(n)
		return err
	}
	switch n.OpType {
	case "Conv":
		scale := channels(t, 0)
		in := slices.Clone(n.Input)
		in[1] = string(q.dequantized(levels(t, scale, 0), scale))
		q.b.Append(&onnx.Node{Name: n.Name, OpType: n.OpType, Domain: n.Domain, Input: in, Output: n.Output, Attribute: n.Attribute, DocString: n.DocString, MetadataProps: n.MetadataProps})
	default:
		q.product(n, t)
	}
	q.weights[n.Input[1]] = true
	return nil
}

// dequantized appends what makes numbers of levels with a scale for each element of the first axis.
// ONNX Runtime computes it once, when it prepares the model; a DequantizeLinear it would compute in
// every run, for convolutions of 16 and 32 channels in as much time as these take.
func (q *quantizer) dequantized(levels, scale *tensor.Tensor) onnx.Value {
	shape := slices.Repeat([]int{1}, levels.Rank())
	shape[0] = scale.Len()
	numbers := q.b.Op("Cast", []onnx.Value{q.b.Const(levels)}, onnx.AttrInt("to", int(tensor.Float32)))
	return q.b.Op("Mul", []onnx.Value{numbers, q.b.Const(scale.Reshape(shape...))})
}

// weight returns the constant weight of a node that can be quantised, nil for others.
func (q *quantizer) weight(n *onnx.Node, input, rank int) (*tensor.Tensor, error) {
	if onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard || len(n.Input) <= input || isInput(q.m.Graph, n.Input[input]) {
		return nil, nil
	}
	i := slices.IndexFunc(q.m.Graph.Initializer, func(p *onnx.TensorProto) bool { return p.Name == n.Input[input] })
	if i < 0 {
		return nil, nil
	}
	p := q.m.Graph.Initializer[i]
	if tensor.DType(p.DataType) != tensor.Float32 || rank > 0 && len(p.Dims) != rank {
		return nil, nil
	}
	t, err := onnx.TensorOf(p)
	if err != nil || t.Len() < SmallestWeight {
		return nil, err
	}
	for _, x := range t.Float32s() {
		if x-x != 0 {
			return nil, nil
		}
	}
	if n.OpType == "Gemm" && (n.Int("transA", 0) != 0 || n.Float("alpha", 1) != 1 || n.Float("beta", 1) != 1) {
		return nil, nil
	}
	if n.OpType == "Gemm" && n.Int("transB", 0) != 0 {
		t = transposed(t)
	}
	return t, nil
}

func transposed(t *tensor.Tensor) *tensor.Tensor {
	r, c := t.Shape()[0], t.Shape()[1]
	out := tensor.New(tensor.Float32, c, r)
	for i := range r {
		for j := range c {
			out.Float32s()[j*r+i] = t.Float32s()[i*c+j]
		}
	}
	return out
}

// channels returns the scales of a weight's channels along an axis, the first or the last.
func channels(t *tensor.Tensor, axis int) *tensor.Tensor {
	n := t.Shape()[axis]
	s := tensor.New(tensor.Float32, n)
	each(t, axis, func(channel, i int) {
		s.Float32s()[channel] = max(s.Float32s()[channel], float32(math.Abs(float64(t.Float32s()[i]))))
	})
	for i, v := range s.Float32s() {
		s.Float32s()[i] = max(v/weightLevels, 1e-30)
	}
	return s
}

// levels quantises a weight.
func levels(t, scale *tensor.Tensor, axis int) *tensor.Tensor {
	out := tensor.New(tensor.Int8, t.Shape()...)
	each(t, axis, func(channel, i int) {
		v := math.RoundToEven(float64(t.Float32s()[i]) / float64(scale.Float32s()[channel]))
		out.Bytes()[i] = byte(int8(max(-weightLevels, min(weightLevels, v))))
	})
	return out
}

// each calls f with the channel of every element.
func each(t *tensor.Tensor, axis int, f func(channel, i int)) {
	n := t.Shape()[axis]
	inner := 1
	for _, d := range t.Shape()[axis+1:] {
		inner *= d
	}
	for i := range t.Len() {
		f(i/inner%n, i)
	}
}

// product replaces x·W (+ C) by the product of integers and its scales.
func (q *quantizer) product(n *onnx.Node, w *tensor.Tensor) {
	outer := q.b.SetScope(n.Output[0] + "/int8/")
	defer q.b.SetScope(outer)
	op := func(op string, in ...onnx.Value) onnx.Value { return q.b.Op(op, in) }
	x := q.quantize(n.Input[0])
	scale := channels(w, 1)
	zero := tensor.Scalar(uint8(activationZero))
	sum := op("MatMulInteger", x.values, q.b.Const(levels(w, scale, 1)), q.b.Const(zero))
	// One scale after the other: ONNX Runtime 1.27 takes a product of both for that of a whole
	// tensor, fuses it with a bias behind it, and computes something else.
	y := op("Mul", op("Mul", q.b.Op("Cast", []onnx.Value{sum}, onnx.AttrInt("to", int(tensor.Float32))), q.b.Const(scale)), x.scale)
	last := &onnx.Node{Name: n.Name, OpType: "Identity", Input: []string{string(y)}, Output: n.Output[:1]}
	if len(n.Input) > 2 && n.Input[2] != "" {
		last.OpType, last.Input = "Add", append(last.Input, n.Input[2])
	}
	q.b.Append(last)
}

// quantize appends the quantisation of an activation's rows, once: x ≈ scale·(values − 128), where
// scale is the largest |x| of the row over 127.
func (q *quantizer) quantize(x string) quantized {
	if have, ok := q.rows[x]; ok {
		return have
	}
	op := func(op string, in ...onnx.Value) onnx.Value { return q.b.Op(op, in) }
	var largest onnx.Value
	if abs := op("Abs", onnx.Value(x)); q.m.Opset(onnx.DomainStandard) < 18 {
		largest = q.b.Op("ReduceMax", []onnx.Value{abs}, onnx.AttrInts("axes", -1), onnx.AttrInt("keepdims", 1))
	} else {
		largest = q.b.Op("ReduceMax", []onnx.Value{abs, q.b.Ints(-1)}, onnx.AttrInt("keepdims", 1))
	}
	scale := op("Mul", op("Max", largest, q.b.Float(1e-30)), q.b.Float(1/127.0))
	level := op("Add", op("Round", op("Div", onnx.Value(x), scale)), q.b.Float(activationZero))
	out := quantized{values: q.b.Op("Cast", []onnx.Value{level}, onnx.AttrInt("to", int(tensor.Uint8))), scale: scale}
	q.rows[x] = out
	return out
}
