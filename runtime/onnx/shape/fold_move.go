package shape

import "github.com/onnxrl/onnxrl/runtime/onnx"

// strides returns the row-major strides of a shape.
func strides(shape []int) []int {
	s := make([]int, len(shape))
	n := 1
	for i := len(shape) - 1; i >= 0; i-- {
		s[i] = n
		n *= shape[i]
	}
	return s
}

// walk calls f for every index of a shape in row-major order, with its flat position. The slice is
// used again.
func walk(shape []int, f func(pos int, at []int)) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	at := make([]int, len(shape))
	for pos := range n {
		f(pos, at)
		for a := len(at) - 1; a >= 0; a-- {
			if at[a]++; at[a] < shape[a] {
				break
			}
			at[a] = 0
		}
	}
}

// movable returns the content of the first input and the static, small shape of output o.
func (c *call) movable(o int) (src *content, shape []int) {
	if o >= len(c.out) {
		return nil, nil
	}
	n, ok := elements(c.out[o].Type)
	if !ok || n > MaxConst {
		return nil, nil
	}
	return c.content(0), c.out[o].Type.MustStatic()
}

// foldSame gives the output the elements of the first input in the same order, under the output's
// own shape.
func foldSame(c *call) error {
	if f := c.loaded(0); f.Const != nil && f.Kind == Tensor {
		// Sharing covers every element type and copies nothing.
		shape, ok := c.out[0].Type.Static()
		if n, _ := elements(c.out[0].Type); ok && n == f.Const.Len() && f.Const.DType() == c.out[0].Type.DType {
			c.out[0].Const = f.Const.Reshape(shape...)
		}
		return nil
	}
	src, shape := c.movable(0)
	if src == nil {
		return nil
	}
	if n, _ := elements(c.out[0].Type); n == src.len() {
		c.give(0, &content{dtype: src.dtype, shape: shape, ints: src.ints, flts: src.flts})
	}
	return nil
}

func foldTranspose(c *call) error {
	src, shape := c.movable(0)
	if src == nil {
		return nil
	}
	perm := c.ints("perm")
	if perm == nil {
		for i := range shape {
			perm = append(perm, len(shape)-1-i)
		}
	}
	in := strides(src.shape)
	out := src.like(shape)
	walk(shape, func(pos int, at []int) {
		j := 0
		for k, a := range perm {
			j += at[k] * in[a]
		}
		out.copyFrom(pos, src, j)
	})
	c.give(0, out)
	return nil
}

// broadcastIndex returns the flat position in a tensor of the given shape that a broadcast index
// reads.
func broadcastIndex(at, shape, str []int) int {
	j := 0
	off := len(at) - len(shape)
	for k, d := range shape {
		if d != 1 {
			j += at[off+k] * str[k]
		}
	}
	return j
}

func foldExpand(c *call) error {
	src, shape := c.movable(0)
	if src == nil {
		return nil
	}
	str := strides(src.shape)
	out := src.like(shape)
	walk(shape, func(pos int, at []int) { out.copyFrom(pos, src, broadcastIndex(at, src.shape, str)) })
	c.give(0, out)
	return nil
}

func foldTile(c *call) error {
	src, shape := c.movable(0)
	if src == nil {
		return nil
	}
	str := strides(src.shape)
	out := src.like(shape)
	walk(shape, func(pos int, at []int) {
		j := 0
		for k, d := range src.shape {
			j += at[k] % d * str[k]
		}
		out.copyFrom(pos, src, j)
	})
	c.give(0, out)
	return nil
}

func foldGather(c *call) error {
	src, shape := c.movable(0)
	idx, ok := c.values(1)
	if src == nil || !ok {
		return nil
	}
	axis, err := axisOf(c.int("axis", 0), len(src.shape))
	if err != nil {
		return err
	}
	inner, ext := 1, src.shape[axis]
	for _, d := range src.shape[axis+1:] {
		inner *= d
	}
	out := src.like(shape)
	for pos := range out.len() {
		o, rest := pos/(inner*max(len(idx), 1)), pos%(inner*max(len(idx), 1))
		v := idx[rest/inner]
		if !v.known {
			if out.flts != nil {
				return nil
			}
			continue
		}
		k := int(v.n)
		if k < 0 {
			k += ext
		}
		if k < 0 || k >= ext {
			return nil // Gather has checked the numbers; only symbols with negative values come here.
		}
		out.copyFrom(pos, src, (o*ext+k)*inner+rest%inner)
	}
	c.give(0, out)
	return nil
}

// contentOrUnknown is content, or unknown elements for an integer input of static shape.
func (c *call) contentOrUnknown(i int) *content {
	if src := c.content(i); src != nil {
		return src
	}
	t := c.typ(i)
	shape, ok := t.Static()
	if n, _ := elements(t); !ok || n > MaxConst || !t.DType.IsInteger() {
		return nil
	}
	return (&content{dtype: t.DType}).like(shape)
}

// foldConcat keeps what is known of each part.
func foldConcat(c *call) error {
	n, ok := elements(c.out[0].Type)
	if !ok || n > MaxConst {
		return nil
	}
	shape := c.out[0].Type.MustStatic()
	axis, err := axisOf(c.int("axis", 0), len(shape))
	if err != nil {
		return err
	}
	inner := 1
	for _, d := range shape[axis+1:] {
		inner *= d
	}
	var out *content
	off := 0
	for i := range c.ins {
		src := c.contentOrUnknown(i)
		if src == nil || axis >= len(src.shape) || out != nil && src.dtype != out.dtype {
			return nil
		}
		if out == nil {
			out = src.like(shape)
		}
		run := src.shape[axis] * inner
		for j := range src.len() {
			out.copyFrom(j/run*shape[axis]*inner+off+j%run, src, j)
		}
		off += run
	}
	c.give(0, out)
	return nil
}

// foldSplit gives each output its part of the first input along the axis.
func foldSplit(c *call) error {
	src := c.content(0)
	if src == nil || len(src.shape) == 0 {
		return nil
	}
	axis, err := axisOf(c.int("axis", 0), len(src.shape))
	if err != nil {
		return err
	}
	inner := 1
	for _, d := range src.shape[axis+1:] {
		inner *= d
	}
	off := 0
	for i := range c.out {
		_, shape := c.movable(i)
		if shape == nil {
			return nil
		}
		out := src.like(shape)
		run := shape[axis] * inner
		for j := range out.len() {
			out.copyFrom(j, src, j/run*src.shape[axis]*inner+off+j%run)
		}
		off += run
		c.give(i, out)
	}
	return nil
}

func foldSlice(c *call) error {
	src, shape := c.movable(0)
	if src == nil {
		return nil
	}
	starts, _, axes, steps, ok := c.sliceBounds()
	if !ok {
		return nil
	}
	first, step := make([]int, len(shape)), make([]int, len(shape))
	for i := range step {
		step[i] = 1
	}
	for i, a := range axes {
		a, err := axisOf(a, len(shape))
		if err != nil {
			return err
		}
		if !starts[i].known {
			return nil
		}
		first[a], step[a] = clampStart(starts[i].n, steps[i], src.shape[a]), steps[i]
	}
	str := strides(src.shape)
	out := src.like(shape)
	walk(shape, func(pos int, at []int) {
		j := 0
		for k := range at {
			j += (first[k] + at[k]*step[k]) * str[k]
		}
		out.copyFrom(pos, src, j)
	})
	c.give(0, out)
	return nil
}

// static returns numbers for extents that are all known.
func static(dims []onnx.Dim) ([]int, bool) { return onnx.TensorType{Ranked: true, Dims: dims}.Static() }
