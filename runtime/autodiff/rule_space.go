package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

var spaceRules = []Rule{
	{Op: "DepthToSpace", Versions: []int{1, 11, 13, 28}, VJP: vjpDepthToSpace},
	{Op: "SpaceToDepth", Versions: []int{1, 13, 28}, VJP: vjpSpaceToDepth},
	{Op: "Col2Im", Versions: []int{18}, VJP: vjpCol2Im},
}

// vjpDepthToSpace moves the blocks back: SpaceToDepth for the mode DCR, whose channels are ordered
// block first, and a permutation for CRD.
func vjpDepthToSpace(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	b := n.Int("blocksize", 1)
	if n.Str("mode", "DCR") == "DCR" {
		return []onnx.Value{c.Unary("SpaceToDepth", g[0], onnx.AttrInt("blocksize", b))}, nil
	}
	x := n.In(0)
	e := c.Extents(x)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	if e[1].Of != "" {
		c.failOpen(x, "its number of channels")
		return nil, c.b.Err()
	}
	block := Extent{N: b}
	blocks := c.ReshapeTo(g[0], e[0], Extent{N: e[1].N / (b * b)}, e[2], block, e[3], block)
	return []onnx.Value{c.ReshapeLike(c.Transpose(blocks, 0, 1, 3, 5, 2, 4), x)}, nil
}

// vjpSpaceToDepth is DepthToSpace of the same mode, which only opset 28 and later let one choose.
func vjpSpaceToDepth(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	attrs := []*onnx.Attribute{onnx.AttrInt("blocksize", n.Int("blocksize", 1))}
	if n.Has("mode") {
		attrs = append(attrs, onnx.AttrStr("mode", n.Str("mode", "")))
	}
	return []onnx.Value{c.Unary("DepthToSpace", g[0], attrs...)}, nil
}

// vjpCol2Im cuts g into the overlapping blocks that the forward node adds up.
func vjpCol2Im(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	image, ok := c.KnownInts(n.In(1))
	block, known := c.KnownInts(n.In(2))
	xs := c.Shape(n.In(0))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	if !ok || !known {
		c.Fail("image_shape and block_shape must be constant")
		return nil, c.b.Err()
	}
	win := newWindow(n, block, image, filled(1, len(image)))
	for i := range image {
		win.out[i] = (image[i]+win.before[i]+win.after[i]-(block[i]-1)*win.dilation[i]-1)/win.stride[i] + 1
	}
	channels := xs[1] / prod(block)
	padded := c.padSpatial(g[0], win.before, win.tail())
	var parts []onnx.Value
	win.taps(func(tap []int) {
		parts = append(parts, c.Reshape(c.tapSlice(padded, win, tap), xs[0], channels, 1, xs[2]))
	})
	return []onnx.Value{c.Reshape(c.Concat(2, parts...), xs...)}, nil
}
