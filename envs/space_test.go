package envs_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var spaces = map[string]envs.Space{
	"discrete":       envs.Discrete{N: 5},
	"many choices":   envs.Discrete{N: 1000},
	"multi-discrete": envs.MultiDiscrete{N: []int{2, 3, 4}},
	"multi-binary":   envs.MultiBinary{N: 3},
	"box":            envs.NewBox(-1, 0.1, 2, 3),
	"half bounded":   envs.NewBox(0, math.Inf(1), 4),
	"unbounded":      envs.Unbounded(2),
	"float64 box":    envs.Box{Of: tensor.Float64, Dims: []int{2}, Low: []float64{0, -3}, High: []float64{1, -2}},
	"pixels":         envs.Box{Of: tensor.Uint8, Dims: []int{2, 2}, Low: []float64{0}, High: []float64{255}},
	"scalar box":     envs.NewBox(0, 1),
}

// TestSamplesLieInTheirSpace draws from every space, with masks where it has them, and holds that
// checking allocates nothing.
func TestSamplesLieInTheirSpace(t *testing.T) {
	drawn, excluded := 0, 0
	for name, s := range sorted.All(spaces) {
		if err := s.Validate(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r, x := rng.New(1).Split(name).Stream(), tensor.New(s.DType(), s.Shape()...)
		mask := make([]bool, envs.MaskLen(s))
		for range 500 {
			s.Sample(r, nil, x)
			if err := s.Check(x); err != nil {
				t.Fatalf("%s: sample %v: %v", name, x.Bytes(), err)
			}
			drawn++
			if len(mask) == 0 {
				continue
			}
			for i := range mask {
				mask[i] = r.Bernoulli(0.4)
			}
			if envs.CheckMask(s, mask) != nil {
				continue
			}
			s.Sample(r, mask, x)
			if !allowed(s, mask, x) {
				t.Fatalf("%s: sample %v of mask %v", name, x.Bytes(), mask)
			}
			excluded++
		}
		if n := testing.AllocsPerRun(20, func() {
			if s.Check(x) != nil {
				t.Error("a sample is not accepted")
			}
		}); n != 0 {
			t.Errorf("%s: Check allocates %g times", name, n)
		}
	}
	if drawn != 500*len(spaces) || excluded < 100 {
		t.Errorf("%d samples, %d with masks", drawn, excluded)
	}
}

func allowed(s envs.Space, mask []bool, x *tensor.Tensor) bool {
	switch s := s.(type) {
	case envs.Discrete:
		return mask[x.Int64s()[0]]
	case envs.MultiDiscrete:
		for i, v := range x.Int64s() {
			if !mask[v] {
				return false
			}
			mask = mask[s.N[i]:]
		}
	case envs.MultiBinary:
		for i, b := range x.Bools() {
			if k := 2 * i; b && !mask[k+1] || !b && !mask[k] {
				return false
			}
		}
	}
	return true
}

func TestCheckRefuses(t *testing.T) {
	f32 := func(x ...float32) *tensor.Tensor { return tensor.Of(x, len(x)) }
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	box := envs.NewBox(-1, 0.1, 2)
	cases := []struct {
		name string
		s    envs.Space
		x    *tensor.Tensor
		ok   bool
	}{
		{"nothing", box, nil, false},
		{"inside", box, f32(-1, 0), true},
		// 0.1 as a float32 is above 0.1 as a float64, and still inside.
		{"rounded bound", box, f32(0, 0.1), true},
		{"above", box, f32(0, 0.11), false},
		{"below", box, f32(-1.0001, 0), false},
		{"NaN", envs.Unbounded(2), f32(0, nan), false},
		{"infinite", envs.Unbounded(2), f32(inf, 0), false},
		{"shape", box, f32(0), false},
		{"type", box, tensor.New(tensor.Float64, 2), false},
		{"own bounds", spaces["float64 box"], tensor.Of([]float64{0.5, -2.5}, 2), true},
		{"other's bounds", spaces["float64 box"], tensor.Of([]float64{-2.5, 0.5}, 2), false},
		{"choice", envs.Discrete{N: 2}, tensor.Scalar(int64(1)), true},
		{"no choice", envs.Discrete{N: 2}, tensor.Scalar(int64(2)), false},
		{"negative choice", envs.Discrete{N: 2}, tensor.Scalar(int64(-1)), false},
		{"choice of rank 1", envs.Discrete{N: 2}, tensor.Of([]int64{1}, 1), false},
		{"heads", envs.MultiDiscrete{N: []int{2, 3}}, tensor.Of([]int64{1, 2}, 2), true},
		{"heads swapped", envs.MultiDiscrete{N: []int{2, 3}}, tensor.Of([]int64{2, 1}, 2), false},
		{"too few heads", envs.MultiDiscrete{N: []int{2, 3}}, tensor.Of([]int64{1}, 1), false},
		{"bits", envs.MultiBinary{N: 2}, tensor.Of([]bool{true, false}, 2), true},
		{"too few bits", envs.MultiBinary{N: 2}, tensor.Of([]bool{true}, 1), false},
	}
	for _, c := range cases {
		if err := c.s.Check(c.x); (err == nil) != c.ok {
			t.Errorf("%s: %v in %v gives %v", c.name, c.x, c.s, err)
		}
	}
}

func TestInvalidSpaces(t *testing.T) {
	bad := []envs.Space{
		envs.Discrete{}, envs.MultiDiscrete{}, envs.MultiDiscrete{N: []int{2, 0}}, envs.MultiBinary{},
		envs.NewBox(1, 0, 2), envs.NewBox(math.NaN(), 1, 2), envs.NewBox(0, 1, 0), envs.NewBox(0, 1, -1),
		envs.Box{Of: tensor.Int64, Dims: []int{1}, Low: []float64{0}, High: []float64{1}},
		envs.Box{Of: tensor.Float32, Dims: []int{3}, Low: []float64{0, 0}, High: []float64{1}},
	}
	for _, s := range bad {
		if s.Validate() == nil {
			t.Errorf("%#v is accepted", s)
		}
	}
}

func TestMasks(t *testing.T) {
	const y, n = true, false
	cases := []struct {
		s    envs.Space
		mask []bool
		ok   bool
	}{
		{envs.Discrete{N: 2}, []bool{n, y}, true},
		{envs.Discrete{N: 2}, []bool{n, n}, false},
		{envs.Discrete{N: 2}, []bool{y}, false},
		{envs.MultiDiscrete{N: []int{2, 3}}, []bool{n, y, n, n, y}, true},
		{envs.MultiDiscrete{N: []int{2, 3}}, []bool{y, y, n, n, n}, false},
		{envs.MultiBinary{N: 2}, []bool{n, y, y, n}, true},
		{envs.MultiBinary{N: 2}, []bool{y, y, n, n}, false},
		{envs.Unbounded(2), nil, true},
		{envs.Unbounded(2), []bool{y}, false},
	}
	for _, c := range cases {
		if err := envs.CheckMask(c.s, c.mask); (err == nil) != c.ok {
			t.Errorf("mask %v of %v gives %v", c.mask, c.s, err)
		}
	}
}
