package shape

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// sliceBounds returns the bounds of a Slice: attributes before opset 10, inputs since. ok is false
// when axes or steps are not known; starts and ends may hold unknown elements.
func (c *call) sliceBounds() (starts, ends []val, axes, steps []int, ok bool) {
	if c.opset() < 10 {
		list := func(name string) (out []val) {
			if a := c.attr(name, onnx.AttributeProto_INTS); a != nil {
				for _, v := range a.Ints {
					out = append(out, num(v))
				}
			}
			return out
		}
		starts, ends = list("starts"), list("ends")
		axes = c.ints("axes")
	} else {
		if starts, ok = c.values(1); !ok {
			n, ok := c.lengthOf(1)
			if !ok || n > maxRank {
				return nil, nil, nil, nil, false
			}
			starts = make([]val, n)
		}
		if ends, ok = c.values(2); !ok {
			ends = make([]val, len(starts))
		}
		if c.has(3) {
			if axes, ok = c.numbers(3); !ok {
				return nil, nil, nil, nil, false
			}
		}
		if c.has(4) {
			if steps, ok = c.numbers(4); !ok {
				return nil, nil, nil, nil, false
			}
		}
	}
	if axes == nil {
		for i := range starts {
			axes = append(axes, i)
		}
	}
	if steps == nil {
		for range starts {
			steps = append(steps, 1)
		}
	}
	if len(ends) != len(starts) || len(axes) != len(starts) || len(steps) != len(starts) {
		c.failf("%d starts, %d ends, %d axes and %d steps", len(starts), len(ends), len(axes), len(steps))
		return nil, nil, nil, nil, false
	}
	for _, s := range steps {
		if s == 0 {
			c.failf("a step is 0")
			return nil, nil, nil, nil, false
		}
	}
	return starts, ends, axes, steps, true
}

// clampStart is the first index that a slice of an axis of n elements reads.
func clampStart(start int64, step, n int) int {
	if start < 0 {
		start += int64(n)
	}
	if step > 0 {
		return int(min(max(start, 0), int64(n)))
	}
	return int(min(max(start, 0), int64(n)-1))
}

// sliceLen is the number of elements that a slice of an axis of n elements keeps.
func sliceLen(start, end int64, step, n int) int {
	first := clampStart(start, step, n)
	if end < 0 {
		end += int64(n)
	}
	if step > 0 {
		return stepCount(int(min(max(end, 0), int64(n)))-first, step)
	}
	// The most negative step has no opposite; one more makes no difference to any axis.
	return stepCount(first-int(min(max(end, -1), int64(n))), -max(step, -math.MaxInt))
}

// stepCount is the number of steps that fit into a span: its quotient rounded up, 0 for an empty
// span.
func stepCount(span, step int) int {
	if span <= 0 {
		return 0
	}
	return (span-1)/step + 1
}

func slice(c *call) error {
	t := c.typ(0)
	starts, ends, axes, steps, ok := c.sliceBounds()
	if !t.Ranked || c.err != nil {
		c.setUnranked(0, t.DType)
		return nil
	}
	if !ok {
		// Which axes are cut is not known, so any of them may be.
		c.setDims(0, t.DType, unknownDims(len(t.Dims))...)
		return nil
	}
	if _, err := axesOf(axes, len(t.Dims)); err != nil {
		return fmt.Errorf("slice %v: %w", t, err)
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	for i, a := range axes {
		a, _ = axisOf(a, len(t.Dims))
		out[a] = c.env.sliced(t.Dims[a], starts[i], ends[i], steps[i])
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// sliced returns the extent of one sliced axis. Symbolic extents are resolved for step 1 where the
// bounds lie inside any axis that the model can mean.
func (s *state) sliced(d onnx.Dim, start, end val, step int) onnx.Dim {
	if d.IsKnown() && start.known && end.known {
		return onnx.Known(sliceLen(start.n, end.n, step, d.Value))
	}
	n := ofDim(d)
	const far = math.MaxInt32
	if step == -1 && start.known && end.known && (start.n == -1 || start.n >= far) && end.n <= -far {
		return d
	}
	if step != 1 || n.unknown() || start.unknown() || end.unknown() {
		return onnx.Symbol("")
	}
	// Negative bounds count from the end.
	if start.known && start.n < 0 {
		start = s.add(n, start)
	}
	switch {
	case end.known && end.n >= far:
		end = n
	case end.known && end.n < 0:
		end = s.add(n, end)
	default:
		end = s.extreme(end, n, -1)
	}
	if low, _ := s.sign(s.sub(end, start)); start.known && start.n == 0 && low >= 0 {
		return end.dim()
	}
	// Bounds such as 1 and n, or 0 and n-1, assume an axis long enough for them, as the model's
	// author did.
	l := s.sub(end, start)
	if l.unknown() || l.known && l.n < 0 {
		return onnx.Symbol("")
	}
	return l.dim()
}

func concat(c *call) error {
	if c.opset() >= 4 && !c.hasAttr("axis") {
		return fmt.Errorf("attribute %q is missing", "axis")
	}
	axis := c.int("axis", 1)
	ts := make([]onnx.TensorType, len(c.ins))
	for i := range c.ins {
		ts[i] = c.typ(i)
	}
	t, err := c.env.concatenated(ts, axis)
	c.set(0, t)
	if err != nil {
		return err
	}
	// A list of extents is worth following even when some of them are not known.
	for i := range c.ins {
		if c.hasContent(i) {
			return foldConcat(c)
		}
	}
	return nil
}

func (s *state) concatenated(ts []onnx.TensorType, axis int) (onnx.TensorType, error) {
	out := onnx.TensorType{}
	first := -1
	whole := true
	for i, t := range ts {
		if out.DType == 0 {
			out.DType = t.DType
		}
		if t.Ranked && first < 0 {
			first = i
		}
		whole = whole && t.Ranked
	}
	if first < 0 {
		return out, nil
	}
	n := len(ts[first].Dims)
	a, err := axisOf(axis, n)
	if err != nil {
		return out, fmt.Errorf("concatenate %v: %w", ts[first], err)
	}
	out.Ranked = true
	out.Dims = append([]onnx.Dim(nil), ts[first].Dims...)
	sum := ofDim(out.Dims[a])
	for i, t := range ts[first+1:] {
		if !t.Ranked {
			continue
		}
		if len(t.Dims) != n {
			return out, fmt.Errorf("input %d is %v, the ones before it have rank %d", first+1+i, t, n)
		}
		for j, d := range t.Dims {
			if j == a {
				sum = s.add(sum, ofDim(d))
				continue
			}
			m, ok := mergeDim(out.Dims[j], d)
			if !ok {
				return out, fmt.Errorf("input %d is %v, but axis %d must be %v as in %v: only axis %d may differ", first+1+i, t, j, out.Dims[j], ts[first], a)
			}
			out.Dims[j] = m
		}
	}
	out.Dims[a] = onnx.Symbol("")
	if whole {
		out.Dims[a] = sum.dim()
	}
	return out, nil
}

func split(c *call) error {
	t := c.typ(0)
	n := len(c.out)
	var sizes []int
	sizesKnown, given := true, false
	if c.hasAttr("split") {
		sizes, given = c.ints("split"), true
	} else if c.has(1) {
		given = true
		sizes, sizesKnown = c.numbers(1)
	}
	if given && c.hasAttr("num_outputs") {
		return fmt.Errorf("both split sizes and num_outputs are given")
	}
	if k := c.int("num_outputs", n); k != n {
		return fmt.Errorf("num_outputs is %d, but the node has %d outputs", k, n)
	}
	if !t.Ranked {
		for i := range n {
			c.setUnranked(i, t.DType)
		}
		return nil
	}
	axis, err := axisOf(c.int("axis", 0), len(t.Dims))
	if err != nil {
		return fmt.Errorf("split %v: %w", t, err)
	}
	d := t.Dims[axis]
	if given && sizesKnown {
		if len(sizes) != n {
			return fmt.Errorf("%d split sizes for %d outputs", len(sizes), n)
		}
		sum := 0
		for _, s := range sizes {
			if s < 0 || s > maxExtent {
				return fmt.Errorf("split size %d", s)
			}
			sum += s
		}
		if d.IsKnown() && sum != d.Value {
			return fmt.Errorf("split sizes %v add up to %d, axis %d of %v has %d", sizes, sum, axis, t, d.Value)
		}
	}
	for i := range n {
		out := append([]onnx.Dim(nil), t.Dims...)
		switch {
		case given && sizesKnown:
			out[axis] = onnx.Known(sizes[i])
		case given:
			out[axis] = onnx.Symbol("")
		case d.IsKnown():
			// Equal parts; since opset 18 the last one may be smaller.
			part := (d.Value + n - 1) / n
			if d.Value%n != 0 && c.opset() < 18 {
				return fmt.Errorf("axis %d of %v does not divide into %d equal parts", axis, t, n)
			}
			if i == n-1 {
				part = d.Value - part*(n-1)
			}
			if part < 0 {
				return fmt.Errorf("axis %d of %v does not divide into %d parts", axis, t, n)
			}
			out[axis] = onnx.Known(part)
		default:
			out[axis] = onnx.Symbol("")
			if p, ok := dividePoly(c.env.polyOf(ofDim(d)), mono{c: int64(n)}); ok && d.Param != "" {
				out[axis] = c.env.valOf(p).dim()
			} else if c.opset() < 18 {
				out[axis] = c.env.divFloor(ofDim(d), int64(n)).dim()
			}
		}
		c.setDims(i, t.DType, out...)
	}
	return nil
}

func pad(c *call) error {
	t := c.typ(0)
	var pads []val
	known := true
	if c.opset() < 11 {
		name := "pads"
		if c.opset() < 2 {
			name = "paddings"
		}
		for _, p := range c.ints(name) {
			pads = append(pads, num(int64(p)))
		}
	} else {
		if err := c.rankIs(1, 1); err != nil {
			return err
		}
		pads, known = c.values(1)
	}
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	axes := make([]int, 0, len(t.Dims))
	if c.has(3) {
		list, ok := c.numbers(3)
		if _, err := axesOf(list, len(t.Dims)); ok && err != nil {
			return fmt.Errorf("pad %v: %w", t, err)
		}
		known = known && ok
		for _, a := range list {
			a, _ = axisOf(a, len(t.Dims))
			axes = append(axes, a)
		}
	} else {
		for i := range t.Dims {
			axes = append(axes, i)
		}
	}
	if !known {
		c.setDims(0, t.DType, unknownDims(len(t.Dims))...)
		return nil
	}
	if len(pads) != 2*len(axes) {
		return fmt.Errorf("%d pads for %d axes of %v, want two per axis", len(pads), len(axes), t)
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	s := c.env.state
	for i, a := range axes {
		v := s.add(s.add(ofDim(t.Dims[a]), pads[i]), pads[i+len(axes)])
		if v.known && v.n < 0 {
			return fmt.Errorf("pads %v leave axis %d of %v the extent %d", texts(pads), a, t, v.n)
		}
		out[a] = v.dim()
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// centerCropPad brings the listed axes to given extents.
func centerCropPad(c *call) error {
	t := c.typ(0)
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	axes := c.ints("axes")
	if !c.hasAttr("axes") {
		for i := range t.Dims {
			axes = append(axes, i)
		}
	}
	if _, err := axesOf(axes, len(t.Dims)); err != nil {
		return err
	}
	want, ok := c.values(1)
	if !ok {
		want = make([]val, len(axes))
	}
	if len(want) != len(axes) {
		return fmt.Errorf("%d extents for %d axes", len(want), len(axes))
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	for i, a := range axes {
		a, _ = axisOf(a, len(t.Dims))
		if want[i].known && want[i].n < 0 {
			return fmt.Errorf("extent %d for axis %d", want[i].n, a)
		}
		out[a] = want[i].dim()
	}
	c.setDims(0, t.DType, out...)
	return nil
}

// compress keeps the slices that a condition selects: how many depends on its content.
func compress(c *call) error {
	t := c.typ(0)
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	count := onnx.Symbol("")
	if cond := c.content(1); cond != nil {
		n := 0
		for _, v := range cond.ints {
			if !v.known {
				n = -1
				break
			}
			n += int(v.n)
		}
		if n >= 0 {
			count = onnx.Known(n)
		}
	}
	if !c.hasAttr("axis") {
		c.setDims(0, t.DType, count)
		return nil
	}
	_, err := c.setAxis(t, count)
	return err
}

// setAxis gives the first output the dimensions of t with another extent of the attribute axis,
// which it returns; -1 where nothing is known of t.
func (c *call) setAxis(t onnx.TensorType, d onnx.Dim) (int, error) {
	if !t.Ranked {
		c.setUnranked(0, t.DType)
		return -1, nil
	}
	a, err := axisOf(c.int("axis", 0), len(t.Dims))
	if err != nil {
		return -1, err
	}
	out := append([]onnx.Dim(nil), t.Dims...)
	out[a] = d
	c.setDims(0, t.DType, out...)
	return a, nil
}

func reverseSequence(c *call) error {
	d, ok, err := c.ranked(0, 2)
	if err != nil {
		return err
	}
	if err := c.rankIs(1, 1); err != nil {
		return err
	}
	b, t := c.int("batch_axis", 1), c.int("time_axis", 0)
	if b == t || b < 0 || b > 1 || t < 0 || t > 1 {
		return fmt.Errorf("batch_axis is %d and time_axis %d, want 0 and 1 in some order", b, t)
	}
	if l, known := c.lengthOf(1); ok && known {
		if _, err := agree(d[b], onnx.Known(l), "batch and number of lengths"); err != nil {
			return err
		}
	}
	return same(c)
}
