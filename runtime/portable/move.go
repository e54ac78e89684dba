package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators that move elements by strides: the pattern does not depend on the elements.
var moveOperators = []operator{
	{name: "Transpose", versions: []int{1, 13, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, build: buildTranspose},
	{name: "Expand", versions: []int{8, 13}, minIn: 2, maxIn: 2, exact: true, build: plain(expand)},
	{name: "Tile", versions: []int{6, 13}, minIn: 2, maxIn: 2, exact: true, build: plain(tile)},
	{name: "Concat", versions: []int{4, 11, 13}, minIn: 1, maxIn: -1, exact: true, build: buildConcat},
	{name: "Split", versions: []int{2, 11, 13, 18}, minIn: 1, maxIn: 2, exact: true, build: buildSplit},
	{name: "Slice", versions: []int{1}, minIn: 1, maxIn: 1, exact: true, build: buildSliceAttr},
	{name: "Slice", versions: []int{10, 11, 13}, minIn: 3, maxIn: 5, exact: true, build: plain(sliceKernel)},
	{name: "DepthToSpace", versions: []int{1, 11, 13, 28}, minIn: 1, maxIn: 1, exact: true, build: buildDepthToSpace},
	{name: "SpaceToDepth", versions: []int{1, 13, 28}, minIn: 1, maxIn: 1, exact: true, build: buildSpaceToDepth},
}

// moveState is the strided copy that a step keeps between runs.
type moveState struct {
	copy   strided
	st, sd []int
}

// moved copies src to dst, whose element types are equal.
func (s *strided) moved(dst, src *tensor.Tensor) error {
	d, err := elementsOf(dst)
	if err != nil {
		return err
	}
	e, err := elementsOf(src)
	if err != nil {
		return err
	}
	s.run(d, e)
	return nil
}

func buildTranspose(n *node) (kernel, error) {
	perm := n.Ints("perm")
	return func(c *call) error {
		x := c.arg(0)
		r := x.Rank()
		p := append(c.shapeBuf(0), perm...)
		if perm == nil {
			for i := range r {
				p = append(p, r-1-i)
			}
		}
		c.keepBuf(0, p)
		if err := checkPermutation(p, r); err != nil {
			return err
		}
		return permute(c, 0, x, p)
	}, nil
}

func checkPermutation(p []int, rank int) error {
	if len(p) != rank {
		return fmt.Errorf("permutation %v of an input of rank %d", slices.Clone(p), rank)
	}
	for i := range rank {
		if !slices.Contains(p, i) {
			return fmt.Errorf("%v is no permutation of %d axes", slices.Clone(p), rank)
		}
	}
	return nil
}

// permute writes x with its axes in the order p to output i.
func permute(c *call, i int, x *tensor.Tensor, p []int) error {
	m := keep[moveState](c)
	m.st = rowMajor(m.st, x.Shape())
	shape := c.shapeBuf(3)
	for _, a := range p {
		shape = append(shape, x.Shape()[a])
	}
	c.keepBuf(3, shape)
	m.sd = rowMajor(m.sd, shape)
	m.copy.reset()
	for k, a := range p {
		m.copy.axis(shape[k], m.sd[k], m.st[a])
	}
	return m.copy.moved(c.make(i, x.DType(), shape...), x)
}

func expand(c *call) error {
	x := c.arg(0)
	want, err := intsOf(c.shapeBuf(0), c.arg(1))
	if err != nil {
		return fmt.Errorf("shape: %w", err)
	}
	c.keepBuf(0, want)
	shape, err := broadcastShape(c.shapeBuf(1), x.Shape(), want)
	if err != nil {
		return err
	}
	c.keepBuf(1, shape)
	return expandTo(c, c.make(0, x.DType(), shape...), x)
}

// expandTo repeats x along the axes that it lacks or where its extent is 1.
func expandTo(c *call, out, x *tensor.Tensor) error {
	m := keep[moveState](c)
	shape := out.Shape()
	m.st, m.sd = rowMajor(m.st, x.Shape()), rowMajor(m.sd, shape)
	m.copy.reset()
	off := len(shape) - x.Rank()
	for i, d := range shape {
		ss := 0
		if i >= off && x.Shape()[i-off] != 1 {
			ss = m.st[i-off]
		}
		m.copy.axis(d, m.sd[i], ss)
	}
	return m.copy.moved(out, x)
}

func tile(c *call) error {
	x := c.arg(0)
	reps, err := intsOf(c.shapeBuf(0), c.arg(1))
	if err != nil {
		return fmt.Errorf("repeats: %w", err)
	}
	c.keepBuf(0, reps)
	if len(reps) != x.Rank() {
		return fmt.Errorf("%d repeats for an input of rank %d", len(reps), x.Rank())
	}
	shape := c.shapeBuf(1)
	for i, r := range reps {
		if r < 0 {
			return fmt.Errorf("repeat %d of axis %d is negative", r, i)
		}
		shape = append(shape, r*x.Shape()[i])
	}
	c.keepBuf(1, shape)
	out := c.make(0, x.DType(), shape...)
	m := keep[moveState](c)
	m.st, m.sd = rowMajor(m.st, x.Shape()), rowMajor(m.sd, shape)
	m.copy.reset()
	for i, r := range reps {
		d := x.Shape()[i]
		m.copy.axis(r, d*m.sd[i], 0)
		m.copy.axis(d, m.sd[i], m.st[i])
	}
	return m.copy.moved(out, x)
}

func buildConcat(n *node) (kernel, error) {
	if n.opset >= 4 && !n.Has("axis") {
		return nil, fmt.Errorf("attribute axis is required")
	}
	axis := n.Int("axis", 1)
	return func(c *call) error { return concat(c, c.args, axis) }, nil
}

// concat joins tensors along an axis as output 0.
func concat(c *call, list []*tensor.Tensor, axis int) error {
	x := list[0]
	a, err := normAxis(axis, x.Rank())
	if err != nil {
		return err
	}
	shape := append(c.shapeBuf(0), x.Shape()...)
	c.keepBuf(0, shape)
	shape[a] = 0
	for i, t := range list {
		if t == nil || t.DType() != x.DType() || t.Rank() != len(shape) {
			return fmt.Errorf("input %d is %v, input 0 is %v", i, t, x)
		}
		for k, d := range t.Shape() {
			if k != a && d != shape[k] {
				return fmt.Errorf("input %d is %v, input 0 is %v: they differ outside axis %d", i, t, x, a)
			}
		}
		shape[a] += t.Shape()[a]
	}
	dst, err := elementsOf(c.make(0, x.DType(), shape...))
	if err != nil {
		return err
	}
	inner := product(shape[a+1:])
	outer, row, at := product(shape[:a]), shape[a]*inner, 0
	for _, t := range list {
		src, err := elementsOf(t)
		if err != nil {
			return err
		}
		w := t.Shape()[a] * inner
		for o := range outer {
			dst.copy(o*row+at, src, o*w, w)
		}
		at += w
	}
	return nil
}

func buildSplit(n *node) (kernel, error) {
	axis, attr, parts := n.Int("axis", 0), n.Ints("split"), len(n.Output)
	if n.opset >= 18 && n.Has("num_outputs") {
		if k := n.Int("num_outputs", 0); k != parts {
			return nil, fmt.Errorf("num_outputs is %d, the node has %d outputs", k, parts)
		}
	}
	return func(c *call) error {
		x := c.arg(0)
		a, err := normAxis(axis, x.Rank())
		if err != nil {
			return err
		}
		total := x.Shape()[a]
		sizes := append(c.shapeBuf(0), attr...)
		if t := c.arg(1); t != nil {
			if sizes, err = intsOf(sizes[:0], t); err != nil {
				return fmt.Errorf("split: %w", err)
			}
		}
		if len(sizes) == 0 {
			// Equal parts, the last one smaller where they do not divide.
			each := (total + parts - 1) / parts
			for i := range parts {
				sizes = append(sizes, min(each, max(0, total-i*each)))
			}
		}
		c.keepBuf(0, sizes)
		sum := 0
		for _, s := range sizes {
			sum += s
			if s < 0 {
				sum = -1
				break
			}
		}
		if len(sizes) != parts || sum != total {
			return fmt.Errorf("split %v of axis %d with extent %d into %d outputs", slices.Clone(sizes), a, total, parts)
		}
		src, err := elementsOf(x)
		if err != nil {
			return err
		}
		inner := product(x.Shape()[a+1:])
		outer, row, at := product(x.Shape()[:a]), total*inner, 0
		shape := append(c.shapeBuf(1), x.Shape()...)
		c.keepBuf(1, shape)
		for i, s := range sizes {
			w := s * inner
			if c.wants(i) {
				shape[a] = s
				dst, err := elementsOf(c.make(i, x.DType(), shape...))
				if err != nil {
					return err
				}
				for o := range outer {
					dst.copy(o*w, src, o*row+at, w)
				}
			}
			at += w
		}
		return nil
	}, nil
}

func buildSliceAttr(n *node) (kernel, error) {
	starts, ends, axes := n.Ints("starts"), n.Ints("ends"), n.Ints("axes")
	return func(c *call) error { return slice(c, starts, ends, axes, nil) }, nil
}

func sliceKernel(c *call) error {
	var lists [4][]int
	for i := range lists {
		t := c.arg(i + 1)
		if t == nil {
			continue
		}
		v, err := intsOf(c.shapeBuf(i), t)
		if err != nil {
			return fmt.Errorf("input %d: %w", i+1, err)
		}
		lists[i] = c.keepBuf(i, v)
	}
	return slice(c, lists[0], lists[1], lists[2], lists[3])
}

// sliceState is what Slice keeps beside its copy.
type sliceState struct {
	moveState
	shape, start, step []int
}

func slice(c *call, starts, ends, axes, steps []int) error {
	x := c.arg(0)
	if len(starts) != len(ends) || axes != nil && len(axes) != len(starts) || steps != nil && len(steps) != len(starts) || len(starts) > x.Rank() {
		return fmt.Errorf("%d starts, %d ends, %d axes and %d steps for an input of rank %d", len(starts), len(ends), len(axes), len(steps), x.Rank())
	}
	m := keep[sliceState](c)
	m.shape = append(m.shape[:0], x.Shape()...)
	m.start, m.step = resize(m.start, x.Rank()), resize(m.step, x.Rank())
	for i := range m.step {
		m.start[i], m.step[i] = 0, 1
	}
	for i := range starts {
		a, step := i, 1
		if axes != nil {
			var err error
			if a, err = normAxis(axes[i], x.Rank()); err != nil {
				return err
			}
		}
		if steps != nil {
			step = steps[i]
		}
		if step == 0 {
			return fmt.Errorf("the step of axis %d is zero", a)
		}
		lo, n := sliceRange(starts[i], ends[i], step, x.Shape()[a])
		m.start[a], m.step[a], m.shape[a] = lo, step, n
	}
	m.st, m.sd = rowMajor(m.st, x.Shape()), rowMajor(m.sd, m.shape)
	m.copy.reset()
	for i, d := range m.shape {
		m.copy.axis(d, m.sd[i], m.step[i]*m.st[i])
		m.copy.so += m.start[i] * m.st[i]
	}
	return m.copy.moved(c.make(0, x.DType(), m.shape...), x)
}

// sliceRange clamps as ONNX says: a negative bound counts from the end, then everything is cut to
// the axis. It returns the first index and how many follow.
func sliceRange(lo, hi, step, d int) (first, n int) {
	if lo < 0 {
		lo += d
	}
	if hi < 0 {
		hi += d
	}
	if step > 0 {
		lo, hi = min(max(lo, 0), d), min(max(hi, 0), d)
		if hi <= lo {
			return 0, 0
		}
		return lo, (hi-lo-1)/step + 1
	}
	lo, hi = min(max(lo, 0), d-1), min(max(hi, -1), d-1)
	if lo <= hi {
		return 0, 0
	}
	if -step < 0 { // the most negative step
		return lo, 1
	}
	return lo, (lo-hi-1)/-step + 1
}

// blocks splits H and W of an NCHW tensor into block × block pieces or joins them again; order
// gives the axes of the six-axis form.
func blocks(c *call, six, order, out []int) error {
	x := c.arg(0)
	m := keep[moveState](c)
	m.st = rowMajor(m.st, six)
	o := c.make(0, x.DType(), out...)
	shape := c.shapeBuf(3)
	for _, a := range order {
		shape = append(shape, six[a])
	}
	m.sd = rowMajor(m.sd, c.keepBuf(3, shape))
	m.copy.reset()
	for k, a := range order {
		m.copy.axis(six[a], m.sd[k], m.st[a])
	}
	return m.copy.moved(o, x)
}

func buildDepthToSpace(n *node) (kernel, error) {
	b, mode := n.Int("blocksize", 0), n.Str("mode", "DCR")
	if b <= 0 || mode != "DCR" && mode != "CRD" {
		return nil, fmt.Errorf("blocksize %d, mode %q", b, mode)
	}
	return func(c *call) error {
		s := c.arg(0).Shape()
		if len(s) != 4 || s[1]%(b*b) != 0 {
			return fmt.Errorf("input %v with block size %d", c.arg(0), b)
		}
		out := c.keepBuf(1, append(c.shapeBuf(1), s[0], s[1]/(b*b), s[2]*b, s[3]*b))
		if mode == "DCR" {
			six := c.keepBuf(2, append(c.shapeBuf(2), s[0], b, b, s[1]/(b*b), s[2], s[3]))
			return blocks(c, six, dcrOrder, out)
		}
		six := c.keepBuf(2, append(c.shapeBuf(2), s[0], s[1]/(b*b), b, b, s[2], s[3]))
		return blocks(c, six, crdOrder, out)
	}, nil
}

var (
	dcrOrder = []int{0, 3, 4, 1, 5, 2}
	crdOrder = []int{0, 1, 4, 2, 5, 3}
	// Space to depth: the blocks' places before the channels (DCR), or behind them (CRD).
	s2dOrder = []int{0, 3, 5, 1, 2, 4}
	s2cOrder = []int{0, 1, 3, 5, 2, 4}
)

func buildSpaceToDepth(n *node) (kernel, error) {
	b, order := n.Int("blocksize", 0), s2dOrder
	if b <= 0 {
		return nil, fmt.Errorf("blocksize %d", b)
	}
	if n.Str("mode", "DCR") == "CRD" { // since opset 28
		order = s2cOrder
	}
	return func(c *call) error {
		s := c.arg(0).Shape()
		if len(s) != 4 || s[2]%b != 0 || s[3]%b != 0 {
			return fmt.Errorf("input %v with block size %d", c.arg(0), b)
		}
		out := c.keepBuf(1, append(c.shapeBuf(1), s[0], s[1]*b*b, s[2]/b, s[3]/b))
		six := c.keepBuf(2, append(c.shapeBuf(2), s[0], s[1], s[2]/b, b, s[3]/b, b))
		return blocks(c, six, order, out)
	}, nil
}
