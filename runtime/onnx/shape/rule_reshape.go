package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func reshape(c *call) error {
	d := c.dtype(0)
	if c.opset() < 5 && c.hasAttr("shape") {
		var want []val
		for _, v := range c.ints("shape") {
			want = append(want, num(int64(v)))
		}
		return c.reshapeTo(d, want)
	}
	if !c.has(1) {
		return fmt.Errorf("the new shape (input 1) is absent")
	}
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	want, ok := c.values(1)
	if !ok {
		if n, ok := c.lengthOf(1); ok && n <= maxRank {
			c.setDims(0, d, unknownDims(n)...)
		} else {
			c.setUnranked(0, d)
		}
		return nil
	}
	return c.reshapeTo(d, want)
}

func (c *call) reshapeTo(d tensor.DType, want []val) error {
	in := c.typ(0)
	keepZero := c.int("allowzero", 0) != 0
	out := make([]onnx.Dim, len(want))
	copied := make([]bool, max(len(want), len(in.Dims)))
	free, unknown := -1, 0
	for i, w := range want {
		switch {
		case w.known && w.n == -1:
			if free >= 0 {
				return fmt.Errorf("shape %v has more than one -1", texts(want))
			}
			free = i
		case w.known && w.n < 0:
			return fmt.Errorf("shape %v has the extent %d", texts(want), w.n)
		case w.known && w.n == 0 && !keepZero:
			switch {
			case !in.Ranked:
				out[i] = onnx.Symbol("")
			case i >= len(in.Dims):
				return fmt.Errorf("shape %v copies axis %d, which %v does not have", texts(want), i, in)
			default:
				out[i], copied[i] = in.Dims[i], true
			}
		default:
			out[i] = w.dim()
		}
		if i != free && !copied[i] && !out[i].IsKnown() && out[i].Param == "" {
			unknown++
		}
	}
	c.resolveFree(in, out, copied, free, unknown)
	if c.err == nil && in.Ranked {
		have, ok := elements(in)
		need, ok2 := elements(onnx.TensorType{Ranked: true, Dims: out})
		if ok && ok2 && have != need {
			return fmt.Errorf("%v has %d elements, which do not fill shape %v", in, have, texts(want))
		}
	}
	c.setDims(0, d, out...)
	return nil
}

// resolveFree finds the one extent that the number of elements leaves open: the -1, or else a
// single unknown extent. Copied axes cancel, whatever they are.
func (c *call) resolveFree(in onnx.TensorType, out []onnx.Dim, copied []bool, free, unknown int) {
	if free < 0 && unknown == 1 {
		// A shape element that is not known at all may itself be -1 or 0, yet the count of elements
		// decides it.
		for i, d := range out {
			if !d.IsKnown() && d.Param == "" && !copied[i] {
				free = i
			}
		}
	} else if free < 0 {
		return
	} else if unknown > 0 {
		out[free] = onnx.Symbol("")
		return
	}
	out[free] = onnx.Symbol("")
	if !in.Ranked {
		return
	}
	var from, rest []onnx.Dim
	for i, d := range in.Dims {
		if !copied[i] {
			from = append(from, d)
		}
	}
	for i, d := range out {
		if !copied[i] && i != free {
			rest = append(rest, d)
		}
	}
	have, ok := elements(onnx.TensorType{Ranked: true, Dims: from})
	need, ok2 := elements(onnx.TensorType{Ranked: true, Dims: rest})
	if ok && ok2 {
		if need == 0 || have%need != 0 {
			c.failf("%v does not fill shape %v evenly", in, onnx.TensorType{DType: in.DType, Ranked: true, Dims: out})
			return
		}
		out[free] = onnx.Known(have / need)
		return
	}
	top, bottom := cancel(from, rest)
	s := c.env.state
	v := s.quotient(s.product(top), s.product(bottom))
	if !(v.known && v.n < 0) {
		out[free] = v.dim()
	}
}

// cancel removes symbols that occur in both lists, so that quotients of sums such as (seq+1)*4 /
// (seq+1) resolve too.
func cancel(a, b []onnx.Dim) (top, bottom []onnx.Dim) {
	used := make([]bool, len(b))
next:
	for _, x := range a {
		if !x.IsKnown() && x.Param != "" {
			for j, y := range b {
				if !used[j] && x == y {
					used[j] = true
					continue next
				}
			}
		}
		top = append(top, x)
	}
	for j, y := range b {
		if !used[j] {
			bottom = append(bottom, y)
		}
	}
	return top, bottom
}

// texts prints a content for an error message.
func texts(vs []val) []string {
	out := make([]string, 0, len(vs))
	for _, v := range vs {
		switch {
		case v.known:
			out = append(out, fmt.Sprint(v.n))
		case v.sym != "":
			out = append(out, v.sym)
		default:
			out = append(out, "?")
		}
		if len(out) == 16 {
			return append(out, "…")
		}
	}
	return out
}

func flatten(c *call) error {
	t := c.typ(0)
	a := c.int("axis", 1)
	if !t.Ranked {
		c.setDims(0, t.DType, unknownDims(2)...)
		return nil
	}
	n := len(t.Dims)
	// Unlike other axes this one may equal the rank; negative ones exist since opset 11.
	if a < -n || a > n {
		return fmt.Errorf("axis %d is out of range for %v", a, t)
	}
	if a < 0 {
		a += n
	}
	s := c.env.state
	c.setDims(0, t.DType, s.product(t.Dims[:a]).dim(), s.product(t.Dims[a:]).dim())
	return nil
}

// axesInput returns the axes of Squeeze, Unsqueeze and the reductions: an attribute in old opsets,
// an input in new ones. given is false when there are none at all, known is false when they are
// given but not constant.
func (c *call) axesInput(input int) (axes []int, given, known bool) {
	if c.hasAttr("axes") {
		return c.ints("axes"), true, true
	}
	if !c.has(input) {
		return nil, false, true
	}
	axes, known = c.numbers(input)
	return axes, true, known
}

func squeeze(c *call) error {
	t := c.typ(0)
	axes, given, known := c.axesInput(1)
	if !known {
		if n, ok := c.lengthOf(1); ok && t.Ranked && n <= len(t.Dims) {
			c.setDims(0, t.DType, unknownDims(len(t.Dims)-n)...)
		} else {
			c.setUnranked(0, t.DType)
		}
		return nil
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	out := make([]onnx.Dim, 0, len(t.Dims))
	if !given {
		for _, d := range t.Dims {
			if !d.IsKnown() {
				c.setUnranked(0, t.DType)
				return nil
			}
			if d.Value != 1 {
				out = append(out, d)
			}
		}
		c.setDims(0, t.DType, out...)
		return nil
	}
	drop, err := axesOf(axes, len(t.Dims))
	if err != nil {
		return fmt.Errorf("squeeze %v: %w", t, err)
	}
	for i, d := range t.Dims {
		if !drop[i] {
			out = append(out, d)
		} else if d.IsKnown() && d.Value != 1 {
			return fmt.Errorf("squeeze %v: axis %d has the extent %d, not 1", t, i, d.Value)
		}
	}
	c.setDims(0, t.DType, out...)
	return nil
}

func unsqueeze(c *call) error {
	t := c.typ(0)
	axes, given, known := c.axesInput(1)
	if !given {
		return fmt.Errorf("axes are missing")
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	if !known {
		if n, ok := c.lengthOf(1); ok && n <= maxRank {
			c.setDims(0, t.DType, unknownDims(len(t.Dims)+n)...)
		} else {
			c.setUnranked(0, t.DType)
		}
		return nil
	}
	if len(axes) > maxRank {
		return fmt.Errorf("%d axes are above the limit of %d", len(axes), maxRank)
	}
	n := len(t.Dims) + len(axes)
	one, err := axesOf(axes, n)
	if err != nil {
		return fmt.Errorf("unsqueeze %v: %w", t, err)
	}
	out := make([]onnx.Dim, n)
	rest := t.Dims
	for i := range out {
		if one[i] {
			out[i] = onnx.Known(1)
		} else {
			out[i], rest = rest[0], rest[1:]
		}
	}
	c.setDims(0, t.DType, out...)
	return nil
}

func transpose(c *call) error {
	t := c.typ(0)
	perm := c.ints("perm")
	given := c.hasAttr("perm")
	if !t.Ranked {
		if given {
			c.setDims(0, t.DType, unknownDims(len(perm))...)
		} else {
			c.setUnranked(0, t.DType)
		}
		return nil
	}
	n := len(t.Dims)
	out := make([]onnx.Dim, n)
	if !given {
		for i, d := range t.Dims {
			out[n-1-i] = d
		}
		c.setDims(0, t.DType, out...)
		return nil
	}
	if len(perm) != n {
		return fmt.Errorf("perm %v does not permute the %d axes of %v", perm, n, t)
	}
	seen := make([]bool, n)
	for i, p := range perm {
		if p < 0 || p >= n || seen[p] {
			return fmt.Errorf("perm %v is not a permutation of the %d axes of %v", perm, n, t)
		}
		seen[p] = true
		out[i] = t.Dims[p]
	}
	c.setDims(0, t.DType, out...)
	return nil
}

func expand(c *call) error {
	t := c.typ(0)
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	want, ok := c.values(1)
	if !ok {
		n, ok := c.lengthOf(1)
		if !ok || !t.Ranked || n > maxRank {
			c.setUnranked(0, t.DType)
			return nil
		}
		want = make([]val, n)
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	dims := make([]onnx.Dim, len(want))
	for i, w := range want {
		if w.known && w.n < 0 {
			return fmt.Errorf("shape %v has the extent %d", texts(want), w.n)
		}
		dims[i] = w.dim()
	}
	out, err := broadcast(t, onnx.TensorType{DType: t.DType, Ranked: true, Dims: dims})
	if err != nil {
		return fmt.Errorf("%v cannot be expanded to %v", t, texts(want))
	}
	c.set(0, out)
	return nil
}

func tile(c *call) error {
	t := c.typ(0)
	if c.opset() < 6 {
		// Opset 1 repeated one axis: inputs tiles and axis.
		c.set(0, onnx.TensorType{DType: t.DType, Ranked: t.Ranked, Dims: unknownDims(len(t.Dims))})
		return nil
	}
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	reps, ok := c.values(1)
	if !ok {
		n, ok := c.lengthOf(1)
		if ok && t.Ranked && n != len(t.Dims) {
			return fmt.Errorf("%d repeats for the %d axes of %v", n, len(t.Dims), t)
		}
		if ok && n <= maxRank {
			c.setDims(0, t.DType, unknownDims(n)...)
		} else if t.Ranked {
			c.setDims(0, t.DType, unknownDims(len(t.Dims))...)
		} else {
			c.setUnranked(0, t.DType)
		}
		return nil
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	if len(reps) != len(t.Dims) {
		return fmt.Errorf("%d repeats for the %d axes of %v", len(reps), len(t.Dims), t)
	}
	out := make([]onnx.Dim, len(reps))
	for i, r := range reps {
		if r.known && r.n < 0 {
			return fmt.Errorf("repeats %v: %d is negative", texts(reps), r.n)
		}
		v := c.env.mul(ofDim(t.Dims[i]), r)
		if v.unknown() && r.known && t.Dims[i].IsKnown() {
			return fmt.Errorf("repeats %v of %v: axis %d is too long", texts(reps), t, i)
		}
		out[i] = v.dim()
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// depthToSpace moves blocks of channels into the two spatial axes; spaceToDepth is its inverse.
func depthToSpace(c *call) error { return c.blocks(true) }

func spaceToDepth(c *call) error { return c.blocks(false) }

func (c *call) blocks(toSpace bool) error {
	t := c.typ(0)
	if err := c.rankIs(0, 4); err != nil {
		return err
	}
	b := c.int("blocksize", 0)
	if b <= 0 || b > 1<<20 {
		return fmt.Errorf("blocksize is %d", b)
	}
	if !t.Ranked {
		c.setDims(0, t.DType, unknownDims(4)...)
		return nil
	}
	s, n := c.env.state, num(int64(b))
	out := []onnx.Dim{t.Dims[0], {}, {}, {}}
	shrink, grow := []int{2, 3}, []int{1}
	if toSpace {
		shrink, grow = grow, shrink
	}
	for _, i := range shrink {
		k := int64(b)
		if toSpace {
			k *= k
		}
		if d := t.Dims[i]; d.IsKnown() && d.Value%int(k) != 0 {
			return fmt.Errorf("axis %d of %v does not divide by %d", i, t, k)
		}
		out[i] = s.divFloor(ofDim(t.Dims[i]), k).dim()
	}
	for _, i := range grow {
		v := s.mul(ofDim(t.Dims[i]), n)
		if !toSpace {
			v = s.mul(v, n)
		}
		out[i] = v.dim()
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// trilu works on the last two axes.
func trilu(c *call) error {
	if _, _, err := c.ranked(0, 2); err != nil {
		return err
	}
	return same(c)
}
