package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators that move elements to or from positions given by an index tensor. Negative indices
// count from the end; one out of range is an error.
var gatherOperators = []operator{
	{name: "Gather", versions: []int{1, 11, 13}, minIn: 2, maxIn: 2, exact: true, build: buildGather},
	{name: "GatherElements", versions: []int{11, 13}, minIn: 2, maxIn: 2, exact: true, build: buildGatherElements},
	{name: "GatherND", versions: []int{11, 12, 13}, minIn: 2, maxIn: 2, exact: true, build: buildGatherND},
	{name: "Where", versions: []int{9, 16}, minIn: 3, maxIn: 3, exact: true, build: plain(where)},
	{name: "Compress", versions: []int{9, 11, 28}, minIn: 2, maxIn: 2, exact: true, build: buildCompress},
	{name: "NonZero", versions: []int{9, 13}, minIn: 1, maxIn: 1, exact: true, build: plain(nonZero)},
	{name: "ReverseSequence", versions: []int{10, 28}, minIn: 2, maxIn: 2, exact: true, build: buildReverseSequence},
}

// index maps v into [0, n).
func index(v int64, n int) (int, error) {
	i := int(v)
	if i < 0 {
		i += n
	}
	if i < 0 || i >= n {
		return 0, badData("index %d is out of range for extent %d", v, n)
	}
	return i, nil
}

// indices returns an index tensor as int64; int32 is widened into scratch buffer k.
func (c *call) indices(i, k int) ([]int64, error) {
	t := c.arg(i)
	switch t.DType() {
	case tensor.Int64:
		return t.Int64s(), nil
	case tensor.Int32:
		out := scratch[int64](c, k, t.Len())
		convertSlice(out, t.Int32s())
		return out, nil
	}
	return nil, fmt.Errorf("input %d is %v, expected int32 or int64 indices", i, t)
}

// alongAxis returns the data, a valid axis of them and the indices along it.
func (c *call) alongAxis(axis int) (x *tensor.Tensor, a int, idx []int64, err error) {
	x = c.arg(0)
	if a, err = normAxis(axis, x.Rank()); err == nil {
		idx, err = c.indices(1, 0)
	}
	return x, a, idx, err
}

func buildGather(n *node) (kernel, error) {
	axis := n.Int("axis", 0)
	return func(c *call) error {
		x, a, idx, err := c.alongAxis(axis)
		if err != nil {
			return err
		}
		in := x.Shape()
		shape := append(append(append(c.shapeBuf(0), in[:a]...), c.arg(1).Shape()...), in[a+1:]...)
		dst, err := elementsOf(c.make(0, x.DType(), c.keepBuf(0, shape)...))
		if err != nil {
			return err
		}
		src, _ := elementsOf(x)
		outer, inner := product(in[:a]), product(in[a+1:])
		for k, v := range idx {
			p, err := index(v, in[a])
			if err != nil {
				return err
			}
			for o := range outer {
				dst.copy((o*len(idx)+k)*inner, src, (o*in[a]+p)*inner, inner)
			}
		}
		return nil
	}, nil
}

// elementwiseIndex walks an index tensor that has the rank of the data and, on every other axis, at
// most its extent. It calls f with the position in the index tensor and the position in the data
// that it names.
func elementwiseIndex(shape, idxShape []int, axis int, idx []int64, f func(i, at int)) error {
	if len(shape) != len(idxShape) {
		return fmt.Errorf("indices of rank %d for data of rank %d", len(idxShape), len(shape))
	}
	for k, d := range idxShape {
		if k != axis && d > shape[k] {
			return fmt.Errorf("indices of shape %v for data of shape %v", slices.Clone(idxShape), slices.Clone(shape))
		}
	}
	strides := rowMajor(nil, shape)
	pos := make([]int, len(shape))
	base := 0 // the offset of pos without the axis
	for i, v := range idx {
		p, err := index(v, shape[axis])
		if err != nil {
			return err
		}
		f(i, base+p*strides[axis])
		for k := len(pos) - 1; k >= 0; k-- {
			pos[k]++
			if k != axis {
				base += strides[k]
			}
			if pos[k] < idxShape[k] {
				break
			}
			if k != axis {
				base -= idxShape[k] * strides[k]
			}
			pos[k] = 0
		}
	}
	return nil
}

func buildGatherElements(n *node) (kernel, error) {
	axis := n.Int("axis", 0)
	return func(c *call) error {
		x, a, idx, err := c.alongAxis(axis)
		if err != nil {
			return err
		}
		dst, err := elementsOf(c.make(0, x.DType(), c.arg(1).Shape()...))
		if err != nil {
			return err
		}
		src, _ := elementsOf(x)
		return elementwiseIndex(x.Shape(), c.arg(1).Shape(), a, idx, func(i, at int) { dst.copy(i, src, at, 1) })
	}, nil
}

// tupleIndex reads the index tuple number i, width long, into the axes shape[from:] and returns the
// offset in slices of what follows them.
func tupleIndex(idx []int64, i, width int, shape []int) (int, error) {
	at := 0
	for k, v := range idx[i*width : (i+1)*width] {
		p, err := index(v, shape[k])
		if err != nil {
			return 0, fmt.Errorf("tuple %d: %w", i, err)
		}
		at = at*shape[k] + p
	}
	return at, nil
}

func buildGatherND(n *node) (kernel, error) {
	batchDims := n.Int("batch_dims", 0)
	return func(c *call) error {
		x, t := c.arg(0), c.arg(1)
		idx, err := c.indices(1, 0)
		if err != nil {
			return err
		}
		r := t.Rank()
		if r < 1 || x.Rank() < 1 || batchDims < 0 || batchDims >= r || batchDims >= x.Rank() {
			return fmt.Errorf("inputs %v and %v with batch_dims %d", x, t, batchDims)
		}
		width := t.Shape()[r-1]
		if width < 1 || batchDims+width > x.Rank() || !slices.Equal(x.Shape()[:batchDims], t.Shape()[:batchDims]) {
			return fmt.Errorf("inputs %v and %v with batch_dims %d", x, t, batchDims)
		}
		named, rest := x.Shape()[batchDims:batchDims+width], x.Shape()[batchDims+width:]
		shape := append(append(c.shapeBuf(0), t.Shape()[:r-1]...), rest...)
		dst, err := elementsOf(c.make(0, x.DType(), c.keepBuf(0, shape)...))
		if err != nil {
			return err
		}
		src, _ := elementsOf(x)
		batch, inner, span := product(x.Shape()[:batchDims]), product(rest), product(named)
		per := product(t.Shape()[batchDims : r-1])
		for i := range batch * per {
			at, err := tupleIndex(idx, i, width, named)
			if err != nil {
				return err
			}
			dst.copy(i*inner, src, (i/per*span+at)*inner, inner)
		}
		return nil
	}, nil
}

func where(c *call) error {
	cond, x, y := c.arg(0), c.arg(1), c.arg(2)
	if cond.DType() != tensor.Bool || x.DType() != y.DType() {
		return fmt.Errorf("inputs %v, %v and %v", cond, x, y)
	}
	shape, err := broadcastShape(c.shapeBuf(0), cond.Shape(), x.Shape())
	if err != nil {
		return err
	}
	c.keepBuf(0, shape)
	full, err := broadcastShape(c.shapeBuf(1), shape, y.Shape())
	if err != nil {
		return err
	}
	c.keepBuf(1, full)
	out := c.make(0, x.DType(), full...)
	if out.Len() == 0 {
		return nil
	}
	if x.DType() == tensor.String {
		pick(c, full, out.Strings(), cond, x.Strings(), y.Strings(), x.Shape(), y.Shape())
		return nil
	}
	ob, xb, yb := out.Bytes(), x.Bytes(), y.Bytes()
	switch x.DType().Size() {
	case 1:
		pick(c, full, ob, cond, xb, yb, x.Shape(), y.Shape())
	case 2:
		pick(c, full, wordsOf[uint16](ob), cond, wordsOf[uint16](xb), wordsOf[uint16](yb), x.Shape(), y.Shape())
	case 4:
		pick(c, full, wordsOf[uint32](ob), cond, wordsOf[uint32](xb), wordsOf[uint32](yb), x.Shape(), y.Shape())
	case 8:
		pick(c, full, wordsOf[uint64](ob), cond, wordsOf[uint64](xb), wordsOf[uint64](yb), x.Shape(), y.Shape())
	case 16:
		pick(c, full, wordsOf[word16](ob), cond, wordsOf[word16](xb), wordsOf[word16](yb), x.Shape(), y.Shape())
	default:
		return unsupported("element type %v", x.DType())
	}
	return nil
}

// threeWay holds the strides of three broadcast operands.
type threeWay struct{ s [3][]int }

// pick selects element by element. The inner axis is walked with a stride of 0 or 1 per operand.
func pick[T any](c *call, shape []int, dst []T, cond *tensor.Tensor, x, y []T, xs, ys []int) {
	w := keep[threeWay](c)
	for i, s := range [3][]int{cond.Shape(), xs, ys} {
		w.s[i] = broadcastStrides(w.s[i], s, shape)
	}
	b := cond.Bools()
	idx := append(c.shapeBuf(2), shape...)
	clear(idx)
	c.keepBuf(2, idx)
	r := len(shape) - 1
	n, sb, sx, sy := 1, 0, 0, 0
	if r >= 0 {
		n, sb, sx, sy = shape[r], w.s[0][r], w.s[1][r], w.s[2][r]
	}
	ob, ox, oy := 0, 0, 0
	for o := 0; o < len(dst); o += n {
		i, j, k := ob, ox, oy
		for e := range dst[o : o+n] {
			if b[i] {
				dst[o+e] = x[j]
			} else {
				dst[o+e] = y[k]
			}
			i, j, k = i+sb, j+sx, k+sy
		}
		for a := r - 1; a >= 0; a-- {
			idx[a]++
			ob, ox, oy = ob+w.s[0][a], ox+w.s[1][a], oy+w.s[2][a]
			if idx[a] < shape[a] {
				break
			}
			ob, ox, oy, idx[a] = ob-shape[a]*w.s[0][a], ox-shape[a]*w.s[1][a], oy-shape[a]*w.s[2][a], 0
		}
	}
}

// broadcastStrides gives each axis of to the stride it has in a row-major array of shape from, 0
// where from lacks it or has extent 1.
func broadcastStrides(dst, from, to []int) []int {
	dst = resize(dst, len(to))
	n := 1
	for i := len(to) - 1; i >= 0; i-- {
		dst[i] = 0
		if k := i - len(to) + len(from); k >= 0 {
			if from[k] != 1 {
				dst[i] = n
			}
			n *= from[k]
		}
	}
	return dst
}

func buildCompress(n *node) (kernel, error) {
	axis, flat := n.Int("axis", 0), !n.Has("axis")
	return func(c *call) error {
		x, cond := c.arg(0), c.arg(1)
		if cond.DType() != tensor.Bool || cond.Rank() != 1 {
			return fmt.Errorf("condition is %v, expected a vector of bool", cond)
		}
		in := x.Shape()
		a := 0
		if flat {
			in = []int{x.Len()}
		} else {
			var err error
			if a, err = normAxis(axis, x.Rank()); err != nil {
				return err
			}
		}
		var take []int
		for i, b := range cond.Bools() {
			if b && i < in[a] {
				take = append(take, i)
			}
		}
		shape := slices.Clone(in)
		shape[a] = len(take)
		dst, err := elementsOf(c.make(0, x.DType(), shape...))
		if err != nil {
			return err
		}
		src, _ := elementsOf(x)
		inner := product(in[a+1:])
		for o := range product(in[:a]) {
			for k, i := range take {
				dst.copy((o*len(take)+k)*inner, src, (o*in[a]+i)*inner, inner)
			}
		}
		return nil
	}, nil
}

func nonZero(c *call) error {
	x := c.arg(0)
	b, err := convert(x, tensor.Bool)
	if err != nil {
		return err
	}
	count := 0
	for _, v := range b.Bools() {
		if v {
			count++
		}
	}
	r := x.Rank()
	out := c.make(0, tensor.Int64, r, count).Int64s()
	strides := rowMajor(nil, x.Shape())
	k := 0
	for i, v := range b.Bools() {
		if !v {
			continue
		}
		for a, s := range strides {
			out[a*count+k] = int64(i / s % x.Shape()[a])
		}
		k++
	}
	return nil
}

func buildReverseSequence(n *node) (kernel, error) {
	batch, time := n.Int("batch_axis", 1), n.Int("time_axis", 0)
	if batch == time || batch|time < 0 || batch > 1 || time > 1 {
		return nil, fmt.Errorf("batch_axis %d and time_axis %d, expected 0 and 1 in either order", batch, time)
	}
	return func(c *call) error {
		x, lens := c.arg(0), c.arg(1)
		if x.Rank() < 2 || lens.DType() != tensor.Int64 || lens.Len() != x.Shape()[batch] {
			return fmt.Errorf("input %v with lengths %v", x, lens)
		}
		dst, err := elementsOf(c.make(0, x.DType(), x.Shape()...))
		if err != nil {
			return err
		}
		src, _ := elementsOf(x)
		inner := product(x.Shape()[2:])
		s := [2]int{x.Shape()[1] * inner, inner}
		for b, l := range lens.Int64s() {
			if l < 0 || int(l) > x.Shape()[time] {
				return fmt.Errorf("length %d of sequence %d, the time axis has %d", l, b, x.Shape()[time])
			}
			for t := range x.Shape()[time] {
				from := t
				if t < int(l) {
					from = int(l) - 1 - t
				}
				dst.copy(b*s[batch]+t*s[time], src, b*s[batch]+from*s[time], inner)
			}
		}
		return nil
	}, nil
}
