package autodiff_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestSmallConvs: convolutions of small images by parts that are cut out of one kernel become
// products, which share it, and the gradients are those of the convolutions, by their definition.
func TestSmallConvs(t *testing.T) {
	const images, in, out, size = 16, 16, 18, 7
	shapes := [][2]int{{3, 4}, {1, 9}, {5, 2}}
	s := rng.New(1).Stream()
	drawn := func(shape ...int) *tensor.Tensor {
		x := tensor.New(tensor.Float32, shape...)
		s.FillNormal32(x.Float32s(), 0, 1)
		return x
	}
	w := drawn(out, in, size, size)
	values, want := map[string]*tensor.Tensor{"w": w}, map[string][]float32{"w": make([]float32, w.Len())}
	b := onnx.NewBuilder("convs", 17)
	kernel := b.Input("w", onnx.TypeOf(tensor.Float32, out, in, size, size))
	var loss onnx.Value
	for i, hw := range shapes {
		h, wide := hw[0], hw[1]
		name := string(rune('a' + i))
		x, g := drawn(images, in, h, wide), drawn(images, out, h, wide)
		values["x"+name], values["g"+name] = x, g
		// The part of the kernel that meets the image.
		kh, kw := min(size/2, h-1), min(size/2, wide-1)
		part := b.Op("Slice", []onnx.Value{kernel, b.Ints(size/2 - kh), b.Ints(size/2 + kh + 1), b.Ints(2)})
		part = b.Op("Slice", []onnx.Value{part, b.Ints(size/2 - kw), b.Ints(size/2 + kw + 1), b.Ints(3)})
		y := b.Op("Conv", []onnx.Value{b.Input("x"+name, onnx.TypeOf(tensor.Float32, images, in, h, wide)), part}, onnx.AttrInts("pads", kh, kw, kh, kw))
		term := b.Op("ReduceSum", []onnx.Value{b.Op("Mul", []onnx.Value{y, b.Input("g"+name, onnx.TypeOf(tensor.Float32, images, out, h, wide))})}, onnx.AttrInt("keepdims", 0))
		if loss == "" {
			loss = term
		} else {
			loss = b.Op("Add", []onnx.Value{loss, term})
		}
		xs, gs, ws, dw, dx := x.Float32s(), g.Float32s(), w.Float32s(), want["w"], make([]float32, x.Len())
		want["x"+name] = dx
		for n := range images {
			for o := range out {
				for c := range in {
					for p := range h * wide {
						for q := range h * wide {
							k, l := p/wide-q/wide, p%wide-q%wide
							if max(k, -k) > size/2 || max(l, -l) > size/2 {
								continue
							}
							at := ((o*in+c)*size+k+size/2)*size + l + size/2
							xi, gi := (n*in+c)*h*wide+p, (n*out+o)*h*wide+q
							dw[at] += xs[xi] * gs[gi]
							dx[xi] += ws[at] * gs[gi]
						}
					}
				}
			}
		}
	}
	b.Output(b.Rename(loss, "loss"), onnx.TypeOf(tensor.Float32))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	g, err := autodiff.Grad(m, wrt("loss", "w", "xa", "xb", "xc"))
	if err != nil {
		t.Fatal(err)
	}
	transposed := 0
	for _, n := range g.Model.Graph.Node {
		if n.OpType == "Conv" {
			t.Errorf("%s is a convolution still", n.Describe())
		}
		if n.OpType == "Transpose" && n.In(0) == "w" {
			transposed++
		}
	}
	if transposed != 1 {
		t.Errorf("the kernel is transposed %d times, expected once for all", transposed)
	}
	compared := 0
	for _, c := range engines(t) {
		got, err := gradcheck.Run(t.Context(), c, g.Model, values)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range sorted.All(want) {
			near(t, c.Name()+": "+name, got["grad/"+name].Float32s(), x, 1e-5)
			compared++
		}
	}
	if compared < 4 {
		t.Errorf("%d gradients", compared)
	}
}
