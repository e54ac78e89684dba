package portable

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// loops computes runs of an element-wise function of two values: vector with vector, vector with
// scalar, scalar with vector.
type loops[T, R any] struct {
	vv func(dst []R, a, b []T)
	vs func(dst []R, a []T, b T)
	sv func(dst []R, a T, b []T)
}

// loopsOf makes the three loops of an element function.
func loopsOf[T, R any](f func(a, b T) R) loops[T, R] {
	return loops[T, R]{
		vv: func(dst []R, a, b []T) {
			for i, v := range a {
				dst[i] = f(v, b[i])
			}
		},
		vs: func(dst []R, a []T, b T) {
			for i, v := range a {
				dst[i] = f(v, b)
			}
		},
		sv: func(dst []R, a T, b []T) {
			for i, v := range b {
				dst[i] = f(a, v)
			}
		},
	}
}

// binaryLoop is the loops of one element type behind untyped tensors.
type binaryLoop struct {
	from, to tensor.DType
	run      func(p *broadcastPlan, dst, a, b *tensor.Tensor)
}

func pair[T, R tensor.Element](l loops[T, R]) binaryLoop {
	return binaryLoop{tensor.Scalar(*new(T)).DType(), tensor.Scalar(*new(R)).DType(), func(p *broadcastPlan, dst, a, b *tensor.Tensor) {
		runBroadcast(p, l, data[R](dst), data[T](a), data[T](b))
	}}
}

// binaryKernel runs the loop of the inputs' element type with ONNX's multidirectional broadcasting.
func binaryKernel(list ...binaryLoop) kernel {
	return func(c *call) error {
		a, b := c.arg(0), c.arg(1)
		if a.DType() != b.DType() {
			return fmt.Errorf("element types %v and %v differ", a.DType(), b.DType())
		}
		for i := range list {
			if list[i].from == a.DType() {
				p := keep[broadcastPlan](c)
				shape, err := p.shapes(a.Shape(), b.Shape())
				if err != nil {
					return err
				}
				list[i].run(p, c.make(0, list[i].to, shape...), a, b)
				return nil
			}
		}
		return unsupported("element type %v", a.DType())
	}
}

func binary(list ...binaryLoop) builder { return plain(binaryKernel(list...)) }

// broadcastPlan is the loop nest of one broadcast: axes of extent above 1, neighbours merged where
// both operands allow it, with each operand's stride.
type broadcastPlan struct {
	out    []int
	n      []int
	sa, sb []int
	idx    []int
}

// shapes computes the result's shape and the loop nest. The result is the plan's own.
func (p *broadcastPlan) shapes(a, b []int) ([]int, error) {
	out, err := broadcastShape(p.out[:0], a, b)
	if err != nil {
		return nil, err
	}
	p.out, p.n, p.sa, p.sb = out, p.n[:0], p.sa[:0], p.sb[:0]
	// From the innermost axis outwards; the lists are reversed in meaning: index 0 is innermost.
	strideA, strideB := 1, 1
	for i := len(out) - 1; i >= 0; i-- {
		n := out[i]
		da, db := extent(a, i-len(out)), extent(b, i-len(out))
		sa, sb := strideA, strideB
		if da == 1 {
			sa = 0
		}
		if db == 1 {
			sb = 0
		}
		strideA, strideB = strideA*da, strideB*db
		if n == 1 {
			continue
		}
		if k := len(p.n) - 1; k >= 0 && sa == p.sa[k]*p.n[k] && sb == p.sb[k]*p.n[k] {
			p.n[k] *= n
			continue
		}
		p.n, p.sa, p.sb = append(p.n, n), append(p.sa, sa), append(p.sb, sb)
	}
	if len(p.n) == 0 {
		p.n, p.sa, p.sb = append(p.n, 1), append(p.sa, 1), append(p.sb, 1)
	}
	return out, nil
}

// extent returns shape[len+i] for negative i, 1 where the shape is too short.
func extent(shape []int, i int) int {
	if i += len(shape); i >= 0 {
		return shape[i]
	}
	return 1
}

// broadcastShape appends the common shape of a and b to dst.
func broadcastShape(dst, a, b []int) ([]int, error) {
	n := max(len(a), len(b))
	for i := -n; i < 0; i++ {
		x, y := extent(a, i), extent(b, i)
		switch {
		case x == y || y == 1:
			dst = append(dst, x)
		case x == 1:
			dst = append(dst, y)
		default:
			return dst, fmt.Errorf("shapes %v and %v do not broadcast", append([]int{}, a...), append([]int{}, b...))
		}
	}
	return dst, nil
}

func runBroadcast[T, R any](p *broadcastPlan, l loops[T, R], dst []R, a, b []T) {
	if len(dst) == 0 {
		return
	}
	n, sa, sb := p.n[0], p.sa[0], p.sb[0]
	p.idx = resize(p.idx, len(p.n))
	clear(p.idx)
	oa, ob := 0, 0
	for o := 0; o < len(dst); o += n {
		switch {
		case sb == 0:
			l.vs(dst[o:o+n], a[oa:oa+n], b[ob])
		case sa == 0:
			l.sv(dst[o:o+n], a[oa], b[ob:ob+n])
		default:
			l.vv(dst[o:o+n], a[oa:oa+n], b[ob:ob+n])
		}
		for k := 1; k < len(p.n); k++ {
			p.idx[k]++
			oa, ob = oa+p.sa[k], ob+p.sb[k]
			if p.idx[k] < p.n[k] {
				break
			}
			oa, ob, p.idx[k] = oa-p.n[k]*p.sa[k], ob-p.n[k]*p.sb[k], 0
		}
	}
}
