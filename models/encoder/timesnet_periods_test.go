package encoder

import (
	"math"
	"math/cmplx"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestAmplitudes compares with the sums of the definition in complex128, for even and odd windows,
// and with a constant added, which the frequencies do not see.
func TestAmplitudes(t *testing.T) {
	const rows, channels = 2, 3
	n := 0
	for _, steps := range []int{2, 13, 20, 96} {
		frequencies := make([]float64, steps/2)
		for i := range frequencies {
			frequencies[i] = float64(i+1) / float64(steps)
		}
		g := layer.New("x", rng.New(1), layer.Options{})
		g.Output("a", amplitudes(g, g.Observation("x", channels, steps), frequencies))
		m, err := g.Model()
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.New(tensor.Float32, rows, channels, steps)
		rng.New(2).Stream().FillNormal32(x.Float32s(), 0, 1)
		moved := x.Clone()
		for i := range moved.Float32s() {
			moved.Float32s()[i] += 5
		}
		for _, c := range testengines.All(t) {
			for _, in := range []*tensor.Tensor{x, moved} {
				out, err := gradcheck.Run(t.Context(), c, m, map[string]*tensor.Tensor{"x": in})
				if err != nil {
					t.Fatal(err)
				}
				for b := range rows {
					for i := range frequencies {
						want := 0.0
						for ch := range channels {
							sum := complex(0, 0)
							for s := range steps {
								sum += cmplx.Rect(float64(x.Float32s()[(b*channels+ch)*steps+s]), -2*math.Pi*float64((i+1)*s)/float64(steps))
							}
							want += cmplx.Abs(sum) / channels
						}
						if got := float64(out["a"].Float32s()[b*len(frequencies)+i]); math.Abs(got-want) > 2e-5*float64(steps) {
							t.Errorf("%s: row %d, frequency %d of %d steps: %v, want %v", c.Name(), b, i+1, steps, got, want)
						}
						n++
					}
				}
			}
		}
	}
	if n != len(testengines.All(t))*2*rows*(1+6+10+48) {
		t.Errorf("%d amplitudes", n)
	}
}

// TestTimesNetSine: sin(2πt/24) over 96 steps has frequency 4 and period 24, and a constant series, which
// has no frequency, weighs the longest periods alike.
func TestTimesNetSine(t *testing.T) {
	const steps = 96
	for _, k := range []int{1, 3} {
		e, err := NewTimesNet(TimesNetConfig{DModel: 1, DFF: 1, NLayers: 1, NKernels: 1, PeriodChoice: PeriodsSample, TopK: k, Pool: "last"})
		if err != nil {
			t.Fatal(err)
		}
		g := layer.New("x", rng.New(1), layer.Options{})
		periods, weights := e.weigh(g, g.Observation("x", 1, steps))
		g.Output("w", weights)
		m, err := g.Model()
		if err != nil {
			t.Fatal(err)
		}
		x := tensor.New(tensor.Float32, 2, 1, steps)
		for i := range steps {
			x.Float32s()[i], x.Float32s()[steps+i] = float32(math.Sin(2*math.Pi*float64(i)/24)), 0
		}
		for _, c := range testengines.All(t) {
			out, err := gradcheck.Run(t.Context(), c, m, map[string]*tensor.Tensor{"x": x})
			if err != nil {
				t.Fatal(err)
			}
			w := out["w"].Float32s()
			if i := slices.Index(periods, 24); w[i] < 0.999999 || len(w) != 2*len(periods) {
				t.Errorf("%s: top_k %d: the weight of period 24 is %v", c.Name(), k, w[i])
			}
			for i := range k {
				if v := w[len(periods)+i]; math.Abs(float64(v)-1/float64(k)) > 1e-6 {
					t.Errorf("%s: top_k %d: a constant series weighs period %d by %v", c.Name(), k, periods[i], v)
				}
			}
		}
	}
}
