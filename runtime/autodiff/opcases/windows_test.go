package opcases_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff/opcases"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// windowCase draws an operator with a sliding window and its geometry.
func windowCase(r *rand.Rand, name string) opcases.Case {
	axes := 1 + r.IntN(3)
	draw := func(lo, hi int) []int {
		v := make([]int, axes)
		for i := range v {
			v[i] = lo + r.IntN(hi-lo+1)
		}
		return v
	}
	extent, kernel, stride, dilation := draw(3, 7), draw(1, 3), draw(1, 3), draw(1, 2)
	attrs := []*onnx.Attribute{onnx.AttrInts("strides", stride...), onnx.AttrInts("dilations", dilation...)}
	auto := []string{"NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"}[r.IntN(6)]
	pads := make([]int, 2*axes)
	for i := range pads {
		pads[i] = r.IntN(kernel[i%axes])
	}
	if auto == "NOTSET" {
		attrs = append(attrs, onnx.AttrInts("pads", pads...))
	} else {
		attrs = append(attrs, onnx.AttrStr("auto_pad", auto))
	}
	shape := func(a, b int, rest []int) []int { return append([]int{a, b}, rest...) }
	group, in, out := 1+r.IntN(2), 1+r.IntN(2), 1+r.IntN(2)
	c := opcases.Case{Name: name, Opset: 19}
	switch r.IntN(4) {
	case 0:
		c.Op, c.Attrs = "Conv", append(attrs, onnx.AttrInt("group", group))
		c.Args = []opcases.Arg{opcases.Any(shape(2, group*in, extent)...), opcases.Any(shape(group*out, in, kernel)...), opcases.Any(group * out)}
	case 1:
		c.Op, c.Attrs = "ConvTranspose", append(attrs, onnx.AttrInt("group", group))
		c.Args = []opcases.Arg{opcases.Any(shape(2, group*in, extent)...), opcases.Any(shape(group*in, out, kernel)...), opcases.Any(group * out)}
		if auto == "NOTSET" {
			extra := make([]int, axes)
			for i := range extra {
				extra[i] = r.IntN(max(stride[i], dilation[i]))
			}
			c.Attrs = append(c.Attrs, onnx.AttrInts("output_padding", extra...))
		}
	case 2:
		c.Op, c.Attrs = "MaxPool", append(attrs, onnx.AttrInts("kernel_shape", kernel...), onnx.AttrInt("ceil_mode", r.IntN(2)))
		c.Args = []opcases.Arg{opcases.Distinct(shape(1, 2, extent)...)}
	case 3:
		c.Op, c.Attrs = "AveragePool", append(attrs, onnx.AttrInts("kernel_shape", kernel...), onnx.AttrInt("ceil_mode", r.IntN(2)),
			onnx.AttrInt("count_include_pad", r.IntN(2)))
		c.Args = []opcases.Arg{opcases.Any(shape(1, 2, extent)...)}
	}
	return c
}

// TestWindows checks convolutions and pools of random geometry. Windows that do not fit the input
// are drawn again.
func TestWindows(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 11))
	checked := map[string]int{}
	draws := longtest.Cases(t, 240, 48)
	for i := range draws {
		c := windowCase(r, fmt.Sprintf("window %d", i))
		p, err := c.Problem()
		if err != nil {
			continue
		}
		if _, err := gradcheck.Check(t.Context(), portable.New(), p, gradcheck.Options{Seed: uint64(i), Products: 1, Full: -1}); err != nil {
			t.Errorf("%v %v: %v", c, c.Attrs, err)
		}
		checked[c.Op]++
	}
	for _, op := range []string{"Conv", "ConvTranspose", "MaxPool", "AveragePool"} {
		if checked[op] < draws/6 {
			t.Errorf("%s: only %d geometries checked", op, checked[op])
		}
	}
}
