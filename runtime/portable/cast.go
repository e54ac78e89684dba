package portable

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var castOperators = []operator{
	{name: "Cast", versions: []int{6, 9, 13, 19, 21, 23, 24, 25, 28}, minIn: 1, maxIn: 1, exact: true, build: buildCast},
	{name: "CastLike", versions: []int{15, 19, 21, 23, 24, 25}, minIn: 2, maxIn: 2, exact: true, build: buildCastLike},
	{name: "BitCast", versions: []int{26}, minIn: 1, maxIn: 1, exact: true, build: buildBitCast},
}

func buildCast(n *node) (kernel, error) {
	to := tensor.DType(n.Int("to", 0))
	if to != tensor.String && to.Bits() == 0 {
		return nil, fmt.Errorf("attribute to: %d is no element type", to)
	}
	return func(c *call) error {
		x := c.arg(0)
		return convertInto(c.make(0, to, x.Shape()...), x)
	}, nil
}

func buildCastLike(*node) (kernel, error) {
	return func(c *call) error {
		x := c.arg(0)
		return convertInto(c.make(0, c.arg(1).DType(), x.Shape()...), x)
	}, nil
}

func buildBitCast(n *node) (kernel, error) {
	to := tensor.DType(n.Int("to", 0))
	if to.Size() == 0 {
		return nil, unsupported("bits as %v", to)
	}
	return func(c *call) error {
		x := c.arg(0)
		if x.DType().Size() != to.Size() {
			return fmt.Errorf("the bits of %v are not those of one %v", x.DType(), to)
		}
		copy(c.make(0, to, x.Shape()...).Bytes(), x.Bytes())
		return nil
	}, nil
}

// convert returns t in another element type; t itself when it has that type.
func convert(t *tensor.Tensor, to tensor.DType) (*tensor.Tensor, error) {
	if t.DType() == to {
		return t, nil
	}
	r := tensor.New(to, t.Shape()...)
	return r, convertInto(r, t)
}

// convertInto converts src's elements to dst's type: floats to integers towards zero, anything to
// bool by comparing with zero, bool to 0 and 1.
func convertInto(dst, src *tensor.Tensor) error {
	if dst.DType() == src.DType() {
		copyTensor(dst, src)
		return nil
	}
	switch src.DType() {
	case tensor.Bool:
		if dst.DType() == tensor.String {
			for i, v := range src.Bools() {
				dst.Strings()[i] = strconv.FormatBool(v)
			}
			return nil
		}
		return convertFrom(dst, src.Bytes()) // a bool is stored as 0 or 1
	case tensor.Float16, tensor.BFloat16:
		return convertFrom(dst, widen(src).Float32s())
	case tensor.String:
		return convertStrings(dst, src.Strings())
	}
	ops, err := numbersOf(src)
	if err != nil {
		return unsupported("converting %v to %v", src.DType(), dst.DType())
	}
	return ops.convert(dst, src)
}

func convertFrom[S number](dst *tensor.Tensor, src []S) error {
	switch dst.DType() {
	case tensor.Float32:
		convertSlice(dst.Float32s(), src)
	case tensor.Float64:
		convertSlice(dst.Float64s(), src)
	case tensor.Int8:
		convertSlice(data[int8](dst), src)
	case tensor.Int16:
		convertSlice(data[int16](dst), src)
	case tensor.Int32:
		convertSlice(dst.Int32s(), src)
	case tensor.Int64:
		convertSlice(dst.Int64s(), src)
	case tensor.Uint8:
		convertSlice(data[uint8](dst), src)
	case tensor.Uint16:
		convertSlice(data[uint16](dst), src)
	case tensor.Uint32:
		convertSlice(data[uint32](dst), src)
	case tensor.Uint64:
		convertSlice(data[uint64](dst), src)
	case tensor.Bool:
		d := dst.Bools()
		for i, v := range src {
			d[i] = v != 0
		}
	case tensor.Float16:
		d := data[uint16](dst)
		for i, v := range src {
			d[i] = tensor.Float32ToFloat16(float32(v))
		}
	case tensor.BFloat16:
		d := data[uint16](dst)
		for i, v := range src {
			d[i] = tensor.Float32ToBFloat16(float32(v))
		}
	case tensor.String:
		d := dst.Strings()
		for i, v := range src {
			d[i] = formatNumber(v)
		}
	default:
		return unsupported("converting to %v", dst.DType())
	}
	return nil
}

func convertSlice[D, S number](dst []D, src []S) {
	dst = dst[:len(src)]
	for i, v := range src {
		dst[i] = D(v)
	}
}

func formatNumber[S number](v S) string {
	switch x := any(v).(type) {
	case float32:
		return formatFloat(float64(x), 32)
	case float64:
		return formatFloat(x, 64)
	}
	return fmt.Sprint(v)
}

func formatFloat(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 1):
		return "INF"
	case math.IsInf(v, -1):
		return "-INF"
	}
	return strconv.FormatFloat(v, 'g', -1, bits)
}

func convertStrings(dst *tensor.Tensor, src []string) error {
	if d := dst.DType(); !d.IsFloat() && !d.IsInteger() && d != tensor.Bool {
		return unsupported("converting strings to %v", d)
	}
	isFloat := dst.DType().IsFloat()
	floats, ints := make([]float64, len(src)), make([]int64, len(src))
	for i, s := range src {
		var err error
		s = strings.TrimSpace(s)
		if isFloat {
			floats[i], err = strconv.ParseFloat(s, 64)
		} else if ints[i], err = strconv.ParseInt(s, 10, 64); err != nil {
			var f float64
			f, err = strconv.ParseFloat(s, 64)
			ints[i] = int64(f)
		}
		if err != nil {
			return fmt.Errorf("element %d: %q is no number", i, s)
		}
	}
	if isFloat {
		return convertFrom(dst, floats)
	}
	return convertFrom(dst, ints)
}
