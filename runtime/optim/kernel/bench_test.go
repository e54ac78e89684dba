package kernel

import (
	"fmt"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// BenchmarkKernels runs every kernel at every level over 72,000 elements.
func BenchmarkKernels(b *testing.B) {
	const n = 72_000
	for _, k := range kernelCases() {
		for _, lv := range Levels() {
			b.Run(fmt.Sprintf("%s/%v", k.name, lv), func(b *testing.B) {
				s := make([][]float32, k.slices)
				for j := range s {
					s[j] = make([]float32, n)
					for i := range s[j] {
						s[j][i] = float32(i%13)/13 + 0.01
					}
				}
				b.SetBytes(int64(4 * n * k.slices))
				b.ReportAllocs()
				atLevel(b, lv, func() {
					for b.Loop() {
						k.run(s)
					}
				})
			})
		}
	}
}

// BenchmarkReductions measures the norm and the search over 72,000 elements.
func BenchmarkReductions(b *testing.B) {
	x := make([]float32, 72_000)
	for i := range x {
		x[i] = float32(i%13) / 13
	}
	for _, lv := range Levels() {
		for name, f := range sorted.All(map[string]func(){
			"SumSquares":     func() { SumSquares(x) },
			"FirstNonFinite": func() { FirstNonFinite(x) },
		}) {
			b.Run(fmt.Sprintf("%s/%v", name, lv), func(b *testing.B) {
				b.SetBytes(int64(4 * len(x)))
				b.ReportAllocs()
				atLevel(b, lv, func() {
					for b.Loop() {
						f()
					}
				})
			})
		}
	}
}

// BenchmarkDeadMoments is Adam where gradients are zero and moments would have
// decayed into denormals; it must not be slower than BenchmarkKernels/Adam.
func BenchmarkDeadMoments(b *testing.B) {
	const n = 72_000
	p, g, m, v := make([]float32, n), make([]float32, n), make([]float32, n), make([]float32, n)
	for i := range m {
		g[i], m[i], v[i] = 1e-30, 1e-40, 1e-42
	}
	c := AdamCoef{1, 0, 0.9, 0.1, 0.999, 0.001, 1e-8, 1e-4, 1}
	b.ReportAllocs()
	for b.Loop() {
		Adam(p, g, m, v, &c)
	}
}
