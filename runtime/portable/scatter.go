package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators that write into a copy of their data at positions given by an index tensor. Updates are
// applied in order.
var scatterOperators = []operator{
	{name: "ScatterElements", versions: []int{11, 13, 16, 18}, minIn: 3, maxIn: 3, exact: true, build: buildScatterElements},
	{name: "Scatter", versions: []int{9, 11}, minIn: 3, maxIn: 3, exact: true, build: buildScatterElements},
	{name: "ScatterND", versions: []int{11, 13, 16, 18}, minIn: 3, maxIn: 3, exact: true, build: buildScatterND},
	{name: "TensorScatter", versions: []int{24}, minIn: 2, maxIn: 3, exact: true, build: buildTensorScatter},
}

// combiner merges n updates into the data: dst[at:] op= src[from:].
type combiner func(at, from, n int)

// combine returns the merge of a reduction attribute for a pair of tensors.
func combine(reduction string, dst, src *tensor.Tensor) (combiner, error) {
	if dst.DType() != src.DType() {
		return nil, fmt.Errorf("data is %v, updates are %v", dst, src)
	}
	if reduction == "none" {
		d, err := elementsOf(dst)
		if err != nil {
			return nil, err
		}
		s, err := elementsOf(src)
		if err != nil {
			return nil, err
		}
		return func(at, from, n int) { d.copy(at, s, from, n) }, nil
	}
	ops, err := numbersOf(dst)
	if err != nil {
		return nil, unsupported("reduction %s of %v", reduction, dst.DType())
	}
	return ops.combine(reduction, dst, src)
}

func combineNumbers[T number](reduction string, dst, src []T) (combiner, error) {
	switch reduction {
	case "add":
		return func(at, from, n int) {
			d := dst[at : at+n]
			for i, v := range src[from : from+n] {
				d[i] += v
			}
		}, nil
	case "mul":
		return func(at, from, n int) {
			for i, v := range src[from : from+n] {
				dst[at+i] *= v
			}
		}, nil
	case "max":
		return func(at, from, n int) {
			for i, v := range src[from : from+n] {
				dst[at+i] = max(dst[at+i], v)
			}
		}, nil
	case "min":
		return func(at, from, n int) {
			for i, v := range src[from : from+n] {
				dst[at+i] = min(dst[at+i], v)
			}
		}, nil
	}
	return nil, fmt.Errorf("reduction %q is not known", reduction)
}

// halved runs a scatter on float32 copies where the reduction computes and the data is half
// precision.
func halved(c *call, reduction string, k kernel) error {
	if d := c.arg(0).DType(); reduction != "none" && (d == tensor.Float16 || d == tensor.BFloat16) {
		return c.viaFloat32(k)
	}
	return k(c)
}

func buildScatterElements(n *node) (kernel, error) {
	axis, reduction := n.Int("axis", 0), n.Str("reduction", "none")
	k := func(c *call) error {
		x := c.arg(0)
		a, err := normAxis(axis, x.Rank())
		if err != nil {
			return err
		}
		idx, err := c.indices(1, 0)
		if err != nil {
			return err
		}
		if !slices.Equal(c.arg(1).Shape(), c.arg(2).Shape()) {
			return fmt.Errorf("indices %v and updates %v differ in shape", c.arg(1), c.arg(2))
		}
		out := c.make(0, x.DType(), x.Shape()...)
		copyTensor(out, x)
		put, err := combine(reduction, out, c.arg(2))
		if err != nil {
			return err
		}
		return elementwiseIndex(x.Shape(), c.arg(1).Shape(), a, idx, func(i, at int) { put(at, i, 1) })
	}
	return func(c *call) error { return halved(c, reduction, k) }, nil
}

func buildScatterND(n *node) (kernel, error) {
	reduction := n.Str("reduction", "none")
	k := func(c *call) error {
		x, t, u := c.arg(0), c.arg(1), c.arg(2)
		idx, err := c.indices(1, 0)
		if err != nil {
			return err
		}
		r := t.Rank()
		if r < 1 || t.Shape()[r-1] > x.Rank() {
			return fmt.Errorf("indices %v for data %v", t, x)
		}
		width := t.Shape()[r-1]
		want := append(append(c.shapeBuf(0), t.Shape()[:r-1]...), x.Shape()[width:]...)
		if c.keepBuf(0, want); !slices.Equal(u.Shape(), want) {
			return fmt.Errorf("updates are %v, indices %v of data %v ask for shape %v", u, t, x, slices.Clone(want))
		}
		out := c.make(0, x.DType(), x.Shape()...)
		copyTensor(out, x)
		put, err := combine(reduction, out, u)
		if err != nil {
			return err
		}
		inner := product(x.Shape()[width:])
		for i := range product(t.Shape()[:r-1]) {
			at, err := tupleIndex(idx, i, width, x.Shape())
			if err != nil {
				return err
			}
			put(at*inner, i*inner, inner)
		}
		return nil
	}
	return func(c *call) error { return halved(c, reduction, k) }, nil
}

// buildTensorScatter writes a block of new rows into each batch element of a cache, at a position
// of its own.
func buildTensorScatter(n *node) (kernel, error) {
	axis, mode := n.Int("axis", -2), n.Str("mode", "linear")
	if mode != "linear" && mode != "circular" {
		return nil, fmt.Errorf("mode %q is not known", mode)
	}
	return func(c *call) error {
		x, u := c.arg(0), c.arg(1)
		a, err := normAxis(axis, x.Rank())
		if err != nil {
			return err
		}
		if u.DType() != x.DType() || u.Rank() != x.Rank() || a == 0 {
			return fmt.Errorf("cache %v with update %v along axis %d", x, u, a)
		}
		for i, d := range u.Shape() {
			if i != a && d != x.Shape()[i] || d > x.Shape()[i] {
				return fmt.Errorf("cache %v with update %v along axis %d", x, u, a)
			}
		}
		at := make([]int64, x.Shape()[0])
		if w := c.arg(2); w != nil {
			if w.DType() != tensor.Int64 || w.Len() != len(at) {
				return fmt.Errorf("write indices are %v, expected one int64 for each of %d batch elements", w, len(at))
			}
			at = w.Int64s()
		}
		out := c.make(0, x.DType(), x.Shape()...)
		copyTensor(out, x)
		dst, err := elementsOf(out)
		if err != nil {
			return err
		}
		src, _ := elementsOf(u)
		inner := product(x.Shape()[a+1:])
		middle, d, rows := product(x.Shape()[1:a]), x.Shape()[a], u.Shape()[a]
		for b, start := range at {
			if start < 0 || mode == "linear" && int(start)+rows > d {
				return badData("rows [%d, %d) of batch element %d are outside the cache's %d", start, int(start)+rows, b, d)
			}
			for m := range middle {
				o := b*middle + m
				for r := range rows {
					dst.copy((o*d+(int(start)+r)%d)*inner, src, (o*rows+r)*inner, inner)
				}
			}
		}
		return nil
	}, nil
}
