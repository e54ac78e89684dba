package portable

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators along one axis whose results depend on order: running totals, selection, uniqueness.
var cumulativeOperators = []operator{
	{name: "CumSum", versions: []int{11, 14}, minIn: 2, maxIn: 2, build: buildCumulative(false)},
	{name: "CumProd", versions: []int{26}, minIn: 2, maxIn: 2, build: buildCumulative(true)},
	{name: "TopK", versions: []int{1}, minIn: 1, maxIn: 1, build: buildTopK},
	{name: "TopK", versions: []int{10, 11, 24}, minIn: 2, maxIn: 2, build: buildTopK},
	{name: "Unique", versions: []int{11, 28}, minIn: 1, maxIn: 1, exact: true, build: buildUnique},
}

// scalarInt reads an integer tensor of one element.
func scalarInt(t *tensor.Tensor) (int, error) {
	v, err := intsOf(nil, t)
	if err != nil {
		return 0, err
	}
	if len(v) != 1 {
		return 0, fmt.Errorf("expected one integer, got %v", t)
	}
	return v[0], nil
}

func buildCumulative(prod bool) builder {
	return func(n *node) (kernel, error) {
		exclusive, reverse := n.Int("exclusive", 0) != 0, n.Int("reverse", 0) != 0
		return func(c *call) error {
			x := c.arg(0)
			axis, err := scalarInt(c.arg(1))
			if err != nil {
				return fmt.Errorf("axis: %w", err)
			}
			a, err := normAxis(axis, x.Rank())
			if err != nil {
				return err
			}
			r := running{x.Shape()[a], product(x.Shape()[a+1:]), exclusive, reverse, prod}
			out := c.make(0, x.DType(), x.Shape()...)
			switch x.DType() {
			case tensor.Float32:
				runningOf[float32, float64](r, out.Float32s(), x.Float32s())
			case tensor.Float64:
				runningOf[float64, float64](r, out.Float64s(), x.Float64s())
			case tensor.Int32:
				runningOf[int32, int32](r, out.Int32s(), x.Int32s())
			case tensor.Int64:
				runningOf[int64, int64](r, out.Int64s(), x.Int64s())
			case tensor.Uint32:
				runningOf[uint32, uint32](r, data[uint32](out), data[uint32](x))
			case tensor.Uint64:
				runningOf[uint64, uint64](r, data[uint64](out), data[uint64](x))
			default:
				return unsupported("element type %v", x.DType())
			}
			return nil
		}, nil
	}
}

type running struct {
	d, inner                 int
	exclusive, reverse, prod bool
}

func runningOf[T, A number](r running, dst, src []T) {
	for o := 0; o < len(src); o += r.d * r.inner {
		for j := range r.inner {
			acc := A(0)
			if r.prod {
				acc = 1
			}
			for k := range r.d {
				i := k
				if r.reverse {
					i = r.d - 1 - k
				}
				at := o + i*r.inner + j
				v, before := A(src[at]), acc
				if r.prod {
					acc *= v
				} else {
					acc += v
				}
				if r.exclusive {
					dst[at] = T(before)
				} else {
					dst[at] = T(acc)
				}
			}
		}
	}
}

func buildTopK(n *node) (kernel, error) {
	axis, largest, attrK := n.Int("axis", -1), n.Int("largest", 1) != 0, n.Int("k", -1)
	return func(c *call) error {
		x := c.arg(0)
		a, err := normAxis(axis, x.Rank())
		if err != nil {
			return err
		}
		k := attrK
		if t := c.arg(1); t != nil {
			if k, err = scalarInt(t); err != nil {
				return fmt.Errorf("k: %w", err)
			}
		}
		if k < 0 || k > x.Shape()[a] {
			return fmt.Errorf("k is %d, axis %d has %d elements", k, a, x.Shape()[a])
		}
		shape := append(c.shapeBuf(0), x.Shape()...)
		shape[a] = k
		c.keepBuf(0, shape)
		values := c.make(0, x.DType(), shape...)
		idx := c.make(1, tensor.Int64, shape...).Int64s()
		d, inner := x.Shape()[a], product(x.Shape()[a+1:])
		ops, err := numbersOf(x)
		if err != nil {
			return err
		}
		ops.topK(c, values, idx, x, d, inner, k, largest)
		return nil
	}, nil
}

// topK always returns sorted elements, which is allowed where sorted is 0. Of equal elements the
// one of lower index comes first.
func topK[T number](c *call, values []T, idx []int64, src []T, d, inner, k int, largest bool) {
	if k == 0 || len(src) == 0 {
		return
	}
	order := scratch[int](c, 0, d)
	for o := range len(src) / (d * inner) {
		for j := range inner {
			base := o*d*inner + j
			for i := range order {
				order[i] = i
			}
			slices.SortFunc(order, func(p, q int) int {
				by := cmp.Compare(src[base+p*inner], src[base+q*inner])
				if largest {
					by = -by
				}
				if by == 0 {
					by = p - q
				}
				return by
			})
			for i, p := range order[:k] {
				at := (o*k+i)*inner + j
				values[at], idx[at] = src[base+p*inner], int64(p)
			}
		}
	}
}

func buildUnique(n *node) (kernel, error) {
	axis, flat, sorted := n.Int("axis", 0), !n.Has("axis"), n.Int("sorted", 1) != 0
	return func(c *call) error {
		x := c.arg(0)
		shape := x.Shape()
		a := 0
		if flat {
			shape = []int{x.Len()}
		} else {
			var err error
			if a, err = normAxis(axis, x.Rank()); err != nil {
				return err
			}
		}
		src, err := elementsOf(x)
		if err != nil {
			return err
		}
		less, err := elementOrder(x)
		if err != nil {
			return err
		}
		d, outer, inner := shape[a], product(shape[:a]), product(shape[a+1:])
		compare := func(p, q int) int {
			for o := range outer {
				for i := range inner {
					if r := less((o*d+p)*inner+i, (o*d+q)*inner+i); r != 0 {
						return r
					}
				}
			}
			return 0
		}
		order := make([]int, d)
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, compare)
		inverse, firsts, counts := make([]int64, d), []int(nil), []int64(nil)
		for i, p := range order {
			if i == 0 || compare(order[i-1], p) != 0 {
				firsts, counts = append(firsts, p), append(counts, 0)
			}
			inverse[p] = int64(len(firsts) - 1)
			counts[len(counts)-1]++
		}
		if !sorted {
			// In order of first appearance.
			rank := make([]int, len(firsts))
			for i := range rank {
				rank[i] = i
			}
			slices.SortFunc(rank, func(p, q int) int { return firsts[p] - firsts[q] })
			to := make([]int64, len(rank))
			f2, c2 := make([]int, len(rank)), make([]int64, len(rank))
			for i, r := range rank {
				to[r], f2[i], c2[i] = int64(i), firsts[r], counts[r]
			}
			for i, v := range inverse {
				inverse[i] = to[v]
			}
			firsts, counts = f2, c2
		}
		outShape := slices.Clone(shape)
		outShape[a] = len(firsts)
		dst, err := elementsOf(c.make(0, x.DType(), outShape...))
		if err != nil {
			return err
		}
		for o := range outer {
			for k, p := range firsts {
				dst.copy((o*len(firsts)+k)*inner, src, (o*d+p)*inner, inner)
			}
		}
		first := c.make(1, tensor.Int64, len(firsts)).Int64s()
		for i, p := range firsts {
			first[i] = int64(p)
		}
		copy(c.make(2, tensor.Int64, d).Int64s(), inverse)
		copy(c.make(3, tensor.Int64, len(counts)).Int64s(), counts)
		return nil
	}, nil
}

// elementOrder returns a comparison of two elements by position.
func elementOrder(t *tensor.Tensor) (func(p, q int) int, error) {
	switch t.DType() {
	case tensor.String:
		return orderOf(t.Strings()), nil
	case tensor.Bool:
		return orderOf(t.Bytes()), nil
	case tensor.Float16, tensor.BFloat16:
		return orderOf(widen(t).Float32s()), nil
	}
	ops, err := numbersOf(t)
	if err != nil {
		return nil, err
	}
	return ops.order(t), nil
}

func orderOf[T cmp.Ordered](v []T) func(p, q int) int {
	return func(p, q int) int { return cmp.Compare(v[p], v[q]) }
}
