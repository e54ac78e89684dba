package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// ErrRowsDepend is returned where the result of a row depends on the rows beside it.
var ErrRowsDepend = errors.New("rows of a batch depend on each other")

// ErrRowsUnknown is returned where it cannot be told, because no run on random rows gave numbers.
var ErrRowsUnknown = errors.New("it cannot be told whether rows of a batch depend on each other")

// Draw is a way of drawing the elements of tensors: floats by Float, integers below Ints, booleans
// and short strings by chance. Elements of other types are left as they are.
type Draw struct {
	Float func(*rng.Stream) float64
	Ints  int
}

// Draws are the values to try: the first is the usual one, the second suits graphs that take
// logarithms, the third reaches what small numbers do not, and the last suits tables of one row.
var Draws = []Draw{
	{(*rng.Stream).Normal, 2},
	{(*rng.Stream).Float64, 2},
	{func(s *rng.Stream) float64 { return 8 * s.Normal() }, 2},
	{(*rng.Stream).Float64, 1},
}

// Fill draws all elements of a tensor.
func (d Draw) Fill(s *rng.Stream, t *tensor.Tensor) {
	float := func() float32 { return float32(d.Float(s)) }
	switch t.DType() {
	case tensor.Float32:
		each(t.Float32s(), float)
	case tensor.Float64:
		each(t.Float64s(), func() float64 { return d.Float(s) })
	case tensor.Float16:
		each(tensor.Data[uint16](t), func() uint16 { return tensor.Float32ToFloat16(float()) })
	case tensor.BFloat16:
		each(tensor.Data[uint16](t), func() uint16 { return tensor.Float32ToBFloat16(float()) })
	case tensor.Int8, tensor.Uint8:
		each(t.Bytes(), func() byte { return byte(s.IntN(d.Ints)) })
	case tensor.Int16:
		each(tensor.Data[int16](t), func() int16 { return int16(s.IntN(d.Ints)) })
	case tensor.Uint16:
		each(tensor.Data[uint16](t), func() uint16 { return uint16(s.IntN(d.Ints)) })
	case tensor.Int32:
		each(t.Int32s(), func() int32 { return int32(s.IntN(d.Ints)) })
	case tensor.Uint32:
		each(tensor.Data[uint32](t), func() uint32 { return uint32(s.IntN(d.Ints)) })
	case tensor.Int64:
		each(t.Int64s(), func() int64 { return int64(s.IntN(d.Ints)) })
	case tensor.Uint64:
		each(tensor.Data[uint64](t), func() uint64 { return uint64(s.IntN(d.Ints)) })
	case tensor.Bool:
		each(t.Bools(), func() bool { return s.IntN(2) == 1 })
	case tensor.String:
		each(t.Strings(), func() string { return "abcdef"[s.IntN(6):][:1] })
	}
}

func each[T any](to []T, draw func() T) {
	for i := range to {
		to[i] = draw()
	}
}

// count is how many rows run together.
const count = 4

// extents are what is tried for free extents behind the first, until one runs.
var extents = []int{4, 16, 1}

// maxBytes bounds the inputs of a run; extents that take more are not tried.
const maxBytes = 64 << 20

// CheckRows runs a session of a model whose inputs and outputs all have the rows as their first axis.
// It is nil where the rows are independent, as far as random rows and those of given tell, which has
// tensors by the names of inputs or is nil. Otherwise the error is [ErrRowsDepend] and names an output,
// or [ErrRowsUnknown] and says why, or that of ctx. Where no output is a floating-point number, the
// scores behind them are compared, in a session of their own that c compiles with o.
func CheckRows(ctx context.Context, s Session, given map[string]*tensor.Tensor, c Compiler, m *onnx.Model, o Options) error {
	for _, p := range slices.Concat(s.Inputs(), s.Outputs()) {
		if len(p.Shape) == 0 || p.Shape[0] >= 0 {
			return fmt.Errorf("%w: %v has no free first extent", ErrRowsUnknown, p)
		}
	}
	if wide := reveal(m); wide != nil {
		if w, err := c.Compile(wide, o); err == nil {
			defer w.Close()
			s = w
		}
	}
	return checkRows(ctx, s, given)
}

func checkRows(ctx context.Context, s Session, given map[string]*tensor.Tensor) error {
	why := errors.New("there are no rows to run")
	told := false
	try := func(in []*tensor.Tensor) error {
		err := compare(ctx, s, in)
		switch {
		case err == nil:
			told = true
		case errors.Is(err, ErrRowsDepend) || ctx.Err() != nil:
			return err
		default:
			why = err
		}
		return nil
	}
	if in := cut(s.Inputs(), given); in != nil {
		if err := try(in); err != nil {
			return err
		}
	}
	known := 0 // the free extent that ran
	for k, d := range Draws {
		if told && d.Ints < 2 {
			break // integers of one value tell nothing that others have not told
		}
		for _, n := range extents {
			in := d.inputs(rng.New(0x5eed).Split("rows", k, n).Stream(), s.Inputs(), n)
			if in == nil || known > 0 && n != known {
				continue
			}
			before := told
			told = false
			if err := try(in); err != nil {
				return err
			}
			if told {
				known = n
				break
			}
			told = before
			if !slices.ContainsFunc(s.Inputs(), freeBehind) {
				break
			}
		}
	}
	if !told {
		return fmt.Errorf("%w: %w", ErrRowsUnknown, why)
	}
	return nil
}

// freeBehind reports whether an extent behind the first is free.
func freeBehind(p Port) bool {
	return len(p.Shape) > 0 && slices.ContainsFunc(p.Shape[1:], func(d int) bool { return d < 0 })
}

// inputs draws a batch; free extents behind the first are n. It is nil where that is too large.
func (d Draw) inputs(s *rng.Stream, ports []Port, n int) []*tensor.Tensor {
	list := make([]*tensor.Tensor, len(ports))
	left := maxBytes
	for i, p := range ports {
		shape := slices.Clone(p.Shape)
		for a, e := range shape {
			if e < 0 {
				shape[a] = n
			}
		}
		shape[0] = count
		size, err := tensor.Len(shape)
		if err != nil || size > left/max(p.DType.Size(), 16) {
			return nil
		}
		left -= size * max(p.DType.Size(), 16)
		list[i] = tensor.New(p.DType, shape...)
		d.Fill(s, list[i])
	}
	return list
}

// cut takes the first rows of given inputs; nil where one is missing or they are fewer than two.
func cut(ports []Port, given map[string]*tensor.Tensor) []*tensor.Tensor {
	list := make([]*tensor.Tensor, len(ports))
	n := 0
	for i, p := range ports {
		t := given[p.Name]
		if t == nil || t.Rank() == 0 || t.Shape()[0] < 2 || n > 0 && t.Shape()[0] != n {
			return nil
		}
		n = t.Shape()[0]
		list[i] = t.Rows(0, min(n, count))
	}
	return list
}

// compare runs the rows together and one by one. The error is ErrRowsDepend where they differ, and
// says otherwise why they could not be compared.
func compare(ctx context.Context, s Session, in []*tensor.Tensor) error {
	ports := s.Outputs()
	n := in[0].Shape()[0]
	all := make([]*tensor.Tensor, len(ports))
	if err := s.Run(ctx, all, in); err != nil {
		return fmt.Errorf("a run on %d rows failed: %w", n, err)
	}
	for k, t := range all {
		if t.Rank() == 0 || t.Shape()[0] != n {
			return fmt.Errorf("%w: output %q is %v for %d rows", ErrRowsDepend, ports[k].Name, t, n)
		}
	}
	floats := make([][]float64, len(all))
	for k, t := range all {
		floats[k] = widen(t)
		if len(floats[k]) > 0 && !slices.ContainsFunc(floats[k], func(x float64) bool { return !math.IsNaN(x) }) {
			return fmt.Errorf("output %q holds nothing but NaN", ports[k].Name)
		}
	}
	one := make([]*tensor.Tensor, len(in))
	for r := range n {
		for i, t := range in {
			one[i] = t.Rows(r, r+1)
		}
		alone := make([]*tensor.Tensor, len(ports))
		if err := s.Run(ctx, alone, one); err != nil {
			return fmt.Errorf("a run on one row failed: %w", err)
		}
		for k, t := range alone {
			beside := all[k].Rows(r, r+1)
			if !slices.Equal(t.Shape(), beside.Shape()) {
				return fmt.Errorf("%w: output %q of a row is %v alone and %v beside others", ErrRowsDepend, ports[k].Name, t, beside)
			}
			if !same(t, beside, magnitude(floats[k])) {
				return fmt.Errorf("%w: output %q of a row is another one beside other rows", ErrRowsDepend, ports[k].Name)
			}
		}
	}
	return nil
}

// widen returns the elements of a tensor of floating-point numbers, otherwise nil.
func widen(t *tensor.Tensor) []float64 {
	var list []float64
	switch t.DType() {
	case tensor.Float32:
		for _, x := range t.Float32s() {
			list = append(list, float64(x))
		}
	case tensor.Float64:
		list = t.Float64s()
	case tensor.Float16:
		for _, h := range tensor.Data[uint16](t) {
			list = append(list, float64(tensor.Float16ToFloat32(h)))
		}
	case tensor.BFloat16:
		for _, h := range tensor.Data[uint16](t) {
			list = append(list, float64(tensor.BFloat16ToFloat32(h)))
		}
	}
	return list
}

// magnitude is the median of what is neither zero nor infinite, so that a masked element says
// nothing about the others; 0 where there is none.
func magnitude(x []float64) float64 {
	var list []float64
	for _, v := range x {
		if v = math.Abs(v); v > 0 && !math.IsInf(v, 0) {
			list = append(list, v)
		}
	}
	if len(list) == 0 {
		return 0
	}
	slices.Sort(list)
	return list[len(list)/2]
}

// same compares floating-point numbers with a tolerance that is far above the rounding of kernels
// that add in another order for other numbers of rows, and everything else exactly.
func same(a, b *tensor.Tensor, scale float64) bool {
	tolerance := 1e-4
	switch a.DType() {
	case tensor.Float16:
		tolerance = 1e-2
	case tensor.BFloat16:
		tolerance = 5e-2
	case tensor.String:
		return slices.Equal(a.Strings(), b.Strings())
	}
	x, y := widen(a), widen(b)
	if x == nil {
		return bytes.Equal(a.Bytes(), b.Bytes())
	}
	for i := range x {
		if x[i] == y[i] || math.IsNaN(x[i]) && math.IsNaN(y[i]) {
			continue
		}
		if d := math.Abs(x[i] - y[i]); !(d <= tolerance*(math.Abs(x[i])+scale)) {
			return false
		}
	}
	return true
}
