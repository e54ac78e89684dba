//go:build cgo

package ort

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Bounds of convolutions that are executed as one product. They are from how many pairs of
// channels on, and up to how many places of an image, in all and for each tap, and elements of the
// matrix. The matrix is read for each batch; larger ones pay from so many images on.
const (
	leastPairs   = 64
	mostPlaces   = 32
	placesPerTap = 2
	mostCached   = 1 << 21
	manyImages   = 16
	mostElements = 1 << 22
)

// productsForConvs returns m with convolutions of images that are hardly larger than their kernel,
// and have constant weights, as products with one matrix [channels·places, places·channels]. The
// matrix has the weight of each pair of places, and ONNX Runtime folds it when a session is made.
// It has fewer elements than the windows of the kernel, most of which are padding. The images of a
// batch are the rows of one product, where the convolution multiplies small matrices for each of
// them. Package autodiff does the same where weights are trained. m is not changed.
func productsForConvs(m *onnx.Model, env *shape.Env, level engine.OptLevel) *onnx.Model {
	if env == nil || level == engine.OptNone || m.Opset(onnx.DomainStandard) < 13 || !slices.ContainsFunc(m.Graph.Node, isConv) {
		return m
	}
	known := constants{made: map[string]bool{}}
	for _, t := range m.Graph.Initializer {
		known.made[t.Name] = true
	}
	for _, v := range m.Graph.Input {
		// Whoever runs the session may give it another value.
		delete(known.made, v.Name)
	}
	c := m.ShallowClone()
	b := onnx.Extend(c)
	nodes := c.Graph.Node
	c.Graph.Node = nil
	changed := false
	for _, n := range nodes {
		if p, ok := smallConv(n, env); ok && known.made[string(n.In(1))] {
			p.emit(b, n)
			changed = true
		} else {
			c.Graph.Node = append(c.Graph.Node, n)
		}
		known.see(n)
	}
	if _, err := b.Model(); !changed || err != nil {
		return m
	}
	return c
}

func isConv(n *onnx.Node) bool {
	return n.OpType == "Conv" && onnx.NormalizeDomain(n.Domain) == ""
}

// constants are the values that are made of initializers alone.
type constants struct{ made map[string]bool }

// see adds the outputs of a node. Those of operators that draw numbers are never the same.
func (c constants) see(n *onnx.Node) {
	fixed := n.OpType == "Constant" || len(n.Input) > 0
	for _, in := range n.Input {
		fixed = fixed && (in == "" || c.made[in])
	}
	random := slices.Contains([]string{"Bernoulli", "Dropout", "Multinomial", "RandomNormalLike", "RandomUniformLike"}, n.OpType)
	if !fixed || random || onnx.NormalizeDomain(n.Domain) != "" || len(n.Subgraphs()) > 0 {
		return
	}
	for _, out := range n.Output {
		c.made[out] = true
	}
}

// product is a convolution as a product.
type product struct {
	x, w, y []int // extents; the first of x and y is 0 where it is not known
	// at is the tap of the kernel by which each place of the input counts for each of the output,
	// the number of taps where they are out of reach of each other.
	at []int
}

// smallConv returns a convolution as a product, if it is one that pays.
func smallConv(n *onnx.Node, env *shape.Env) (p product, ok bool) {
	if !isConv(n) || n.Int("group", 1) != 1 {
		return p, false
	}
	extents := func(v onnx.Value, batched bool) []int {
		t := env.Type(v)
		if t.DType != tensor.Float32 || !t.Ranked || len(t.Dims) != 4 {
			return nil
		}
		out := make([]int, 4)
		for i, d := range t.Dims {
			if d.IsKnown() {
				out[i] = d.Value
			} else if i > 0 || !batched {
				return nil
			}
		}
		return out
	}
	p.x, p.w, p.y = extents(n.In(0), true), extents(n.In(1), false), extents(n.Out(0), true)
	if p.x == nil || p.w == nil || p.y == nil {
		return p, false
	}
	in, out, taps, pairs := p.x[2]*p.x[3], p.y[2]*p.y[3], p.w[2]*p.w[3], p.w[0]*p.w[1]
	elements := in * out * pairs
	switch {
	case pairs < leastPairs, in > min(mostPlaces, placesPerTap*taps), out > mostPlaces, in*out == 0:
		return p, false
	case elements > mostElements, elements > mostCached && p.x[0] < manyImages:
		return p, false
	}
	before, ok := padding(n)
	if !ok {
		return p, false
	}
	stride, dilation := ones(n.Ints("strides")), ones(n.Ints("dilations"))
	tap := func(axis, i, o int) (k int, reached bool) {
		k = i + before[axis] - o*stride[axis]
		return k / dilation[axis], k >= 0 && k%dilation[axis] == 0 && k/dilation[axis] < p.w[2+axis]
	}
	for r := range p.x[2] {
		for s := range p.x[3] {
			for y := range p.y[2] {
				for x := range p.y[3] {
					k, above := tap(0, r, y)
					l, beside := tap(1, s, x)
					if above && beside {
						p.at = append(p.at, k*p.w[3]+l)
					} else {
						p.at = append(p.at, taps)
					}
				}
			}
		}
	}
	return p, true
}

// padding is that before the image; ok is false where the node leaves it to rules.
func padding(n *onnx.Node) (before []int, ok bool) {
	switch n.Str("auto_pad", "NOTSET") {
	case "NOTSET":
	case "VALID":
		return []int{0, 0}, true
	default:
		return nil, false
	}
	if pads := n.Ints("pads"); len(pads) == 4 {
		return pads[:2], true
	}
	return []int{0, 0}, true
}

func ones(list []int) []int {
	if len(list) == 2 {
		return list
	}
	return []int{1, 1}
}

// emit appends the product in the place of the node.
func (p product) emit(b *onnx.Builder, n *onnx.Node) {
	in, out, taps := p.x[2]*p.x[3], p.y[2]*p.y[3], p.w[2]*p.w[3]
	scope := b.SetScope("onnxrl/product/")
	defer b.SetScope(scope)
	m := b.Op("Reshape", []onnx.Value{b.Op("Transpose", []onnx.Value{n.In(1)}, onnx.AttrInts("perm", 1, 2, 3, 0)), b.Ints(p.w[1], taps, p.w[0])})
	if slices.Contains(p.at, taps) {
		// One more tap, of zeros.
		m = b.Op("Pad", []onnx.Value{m, b.Ints(0, 0, 0, 0, 1, 0)})
	}
	m = b.Op("Gather", []onnx.Value{m, b.Ints(p.at...)}, onnx.AttrInt("axis", 1))
	m = b.Op("Reshape", []onnx.Value{m, b.Ints(p.x[1]*in, out*p.w[0])})
	// An extent of 0 is that of the input.
	y := b.Op("MatMul", []onnx.Value{b.Op("Reshape", []onnx.Value{n.In(0), b.Ints(0, p.x[1]*in)}), m})
	y = b.Op("Reshape", []onnx.Value{y, b.Ints(0, p.y[2], p.y[3], p.w[0])})
	if bias := n.In(2); bias != "" {
		y = b.Op("Add", []onnx.Value{y, bias})
	}
	b.Append(&onnx.Node{OpType: "Transpose", Name: n.Name, Input: []string{string(y)}, Output: n.Output, Attribute: []*onnx.Attribute{onnx.AttrInts("perm", 0, 3, 1, 2)}})
}
