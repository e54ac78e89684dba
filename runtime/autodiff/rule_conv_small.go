package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Bounds of convolutions that are written as one product: from how many images and pairs of
// channels on, and up to how many places of an image, in all and for each tap, and elements of the
// matrix.
const (
	leastImages  = 16
	leastPairs   = 256
	mostPlaces   = 32
	placesPerTap = 2
	mostPaired   = 1 << 22
)

// expandSmallConv writes a convolution of images that are hardly larger than its kernel as a
// product with one matrix [channels·places, places·channels], which has the weights of each pair of
// places, 0 where they are out of reach of each other: with so few places most are not, where the
// windows of a kernel are mostly padding. All images are the rows of the product. The weights are
// copied into the matrix by rows of output channels; the gradient adds them up, along the columns
// and the rows of the kernel, by products with matrices of zeros and ones. Other convolutions are
// left as they are.
//
// TimesNet folds windows of 20 steps into images of 20 to 24 places for kernels of up to 11×11: a
// step of one block of 32 channels with five periods, batch 32, takes 24 ms of one core on ONNX
// Runtime 1.27, and 66 ms with convolutions. Half of the 24 ms are products; building the matrices
// and summing their gradient does not depend on the batch, so that each shard does it again.
func expandSmallConv(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x, w, bias := n.In(0), n.In(1), n.In(2)
	if !c.allStatic(x, w, n.Out(0)) || !slices.Contains([]tensor.DType{tensor.Float32, tensor.Float64}, c.DType(x)) || n.Int("group", 1) != 1 {
		return nil, nil
	}
	xs, ws, ys := c.Shape(x), c.Shape(w), c.Shape(n.Out(0))
	if len(xs) != 4 {
		return nil, nil
	}
	in, out := xs[2]*xs[3], ys[2]*ys[3]
	if xs[0] < leastImages || ws[0]*ws[1] < leastPairs || in > min(mostPlaces, placesPerTap*ws[2]*ws[3]) || out > mostPlaces || in*out*ws[0]*ws[1] > mostPaired {
		return nil, nil
	}
	win := newWindow(n, ws[2:], xs[2:], ys[2:])
	whole, at := c.uncut(w)
	ks := c.Shape(whole)
	// tap is the tap of the whole kernel by which place i of the input counts for place o of the
	// output along an axis, -1 where they are out of reach.
	tap := func(axis, i, o int) int {
		k := i + win.before[axis] - o*win.stride[axis]
		if k < 0 || k%win.dilation[axis] != 0 || k/win.dilation[axis] >= ws[2+axis] {
			return -1
		}
		return at[axis] + k/win.dilation[axis]
	}
	taps := c.tapMajor(whole)
	m := c.pairs(taps, ks, xs, ys, tap)
	c.Fuse(m, []onnx.Value{taps}, func(c *Context, _ *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
		return []onnx.Value{c.pairsGrad(g[0], ks, xs, ys, tap)}, nil
	})
	y := c.MatMul(c.Reshape(x, xs[0], xs[1]*in), c.Reshape(m, xs[1]*in, out*ws[0]))
	y = c.Reshape(y, xs[0], ys[2], ys[3], ws[0])
	if bias != "" {
		y = c.Add(y, bias)
	}
	return []onnx.Value{c.Transpose(y, 0, 3, 1, 2)}, nil
}

// pairs emits the weights of all pairs of places [C, places of x·places of y, O].
func (c *Context) pairs(taps onnx.Value, ks, xs, ys []int, tap func(axis, i, o int) int) onnx.Value {
	n := ks[2] * ks[3]
	var at []int
	for r := range xs[2] {
		for s := range xs[3] {
			for y := range ys[2] {
				for x := range ys[3] {
					if k, l := tap(0, r, y), tap(1, s, x); k < 0 || l < 0 {
						at = append(at, n)
					} else {
						at = append(at, k*ks[3]+l)
					}
				}
			}
		}
	}
	flat := c.Reshape(taps, ks[1], n, ks[0])
	if slices.Contains(at, n) {
		// One more tap, of zeros.
		flat = c.Op("Pad", two(flat, c.b.Ints(0, 0, 0, 0, 1, 0)))
	}
	return c.Op("Gather", two(flat, c.b.Ints(at...)), onnx.AttrInt("axis", 1))
}

// pairsGrad sums the gradient of pairs over those of the same tap: [C, H, W, O].
func (c *Context) pairsGrad(g onnx.Value, ks, xs, ys []int, tap func(axis, i, o int) int) onnx.Value {
	sums := func(axis int) onnx.Value {
		from, to := xs[2+axis], ys[2+axis]
		m := make([]float64, ks[2+axis]*from*to)
		for i := range from {
			for o := range to {
				if k := tap(axis, i, o); k >= 0 {
					m[(k*from+i)*to+o] = 1
				}
			}
		}
		return c.matrix(g, ks[2+axis], from*to, m)
	}
	g = c.Transpose(c.Reshape(g, ks[1], xs[2], xs[3], ys[2], ys[3], ks[0]), 1, 3, 2, 4, 0, 5)
	g = c.MatMul(sums(1), c.Reshape(g, xs[2]*ys[2], xs[3]*ys[3], ks[1]*ks[0]))
	g = c.MatMul(sums(0), c.Reshape(g, xs[2]*ys[2], ks[3]*ks[1]*ks[0]))
	return c.Transpose(c.Reshape(g, ks[2], ks[3], ks[1], ks[0]), 2, 0, 1, 3)
}

// uncut returns the weights that w [O, C, H, W] is cut out of along the axes of the kernel, which
// several convolutions may have in common, and at which of their taps it begins.
func (c *Context) uncut(w onnx.Value) (whole onnx.Value, at [2]int) {
	nodes := c.b.Graph().Node
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		if n.OpType != "Slice" || n.Out(0) != w {
			continue
		}
		starts, known := c.KnownInts(n.In(1))
		axes, has := c.KnownInts(n.In(3))
		steps, stepped := c.KnownInts(n.In(4))
		if _, static := c.Type(n.In(0)).Static(); !static || !known || !has || n.In(4) != "" && !stepped {
			break
		}
		cut := [2]int{}
		for k, axis := range axes {
			if axis < 2 || axis > 3 || starts[k] < 0 || stepped && steps[k] != 1 {
				return w, at
			}
			cut[axis-2] = starts[k]
		}
		at[0], at[1], w = at[0]+cut[0], at[1]+cut[1], n.In(0)
	}
	return w, at
}

// tapMajor returns weights [O, C, H, W] as [C, H, W, O]: the same value for all that ask.
func (c *Context) tapMajor(w onnx.Value) onnx.Value {
	perm := []int{1, 2, 3, 0}
	for _, n := range slices.Backward(c.b.Graph().Node) {
		if n.OpType == "Transpose" && n.In(0) == w && slices.Equal(n.Ints("perm"), perm) {
			return n.Out(0)
		}
	}
	return c.Transpose(w, perm...)
}
