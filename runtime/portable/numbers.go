package portable

import "github.com/onnxrl/onnxrl/runtime/tensor"

// numbers are the kernels that take tensors of every type of numbers which Go has.
type numbers interface {
	clip(c *call, x, lo, hi *tensor.Tensor) error
	convert(dst, src *tensor.Tensor) error
	topK(c *call, values *tensor.Tensor, idx []int64, x *tensor.Tensor, d, inner, k int, largest bool)
	order(x *tensor.Tensor) func(p, q int) int
	arg(out []int64, x *tensor.Tensor, d, inner int, largest, last bool)
	combine(reduction string, dst, src *tensor.Tensor) (combiner, error)
}

// numbersOf returns the kernels of a tensor's element type.
func numbersOf(t *tensor.Tensor) (numbers, error) {
	switch t.DType() {
	case tensor.Float32:
		return of[float32]{}, nil
	case tensor.Float64:
		return of[float64]{}, nil
	case tensor.Int8:
		return of[int8]{}, nil
	case tensor.Int16:
		return of[int16]{}, nil
	case tensor.Int32:
		return of[int32]{}, nil
	case tensor.Int64:
		return of[int64]{}, nil
	case tensor.Uint8:
		return of[uint8]{}, nil
	case tensor.Uint16:
		return of[uint16]{}, nil
	case tensor.Uint32:
		return of[uint32]{}, nil
	case tensor.Uint64:
		return of[uint64]{}, nil
	}
	return nil, unsupported("element type %v", t.DType())
}

// of implements numbers. It has no size, so that making one allocates nothing.
type of[T interface {
	number
	tensor.Element
}] struct{}

func (of[T]) clip(c *call, x, lo, hi *tensor.Tensor) error { return clipped[T](c, x, lo, hi) }

func (of[T]) convert(dst, src *tensor.Tensor) error { return convertFrom(dst, data[T](src)) }

func (of[T]) topK(c *call, values *tensor.Tensor, idx []int64, x *tensor.Tensor, d, inner, k int, largest bool) {
	topK(c, data[T](values), idx, data[T](x), d, inner, k, largest)
}

func (of[T]) order(x *tensor.Tensor) func(p, q int) int { return orderOf(data[T](x)) }

func (of[T]) arg(out []int64, x *tensor.Tensor, d, inner int, largest, last bool) {
	argOf(out, data[T](x), d, inner, largest, last)
}

func (of[T]) combine(reduction string, dst, src *tensor.Tensor) (combiner, error) {
	return combineNumbers(reduction, data[T](dst), data[T](src))
}
