package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// kernelCase runs one kernel over slices of equal length; the first writes.
type kernelCase struct {
	name   string
	slices int
	run    func(s [][]float32)
}

func kernelCases() []kernelCase {
	adam := AdamCoef{0.75, 0.01, 0.9, 0.1, 0.999, 0.001, 1e-8, 3e-4, 0.99}
	lamb := LAMBCoef{0.75, 0.9, 0.1, 0.999, 0.001, 1e-8, 1.5, 0.01}
	sgd := SGDCoef{0.75, 0.01, 0.1}
	mom := MomentumCoef{0.75, 0.01, 0.9, 0.8, 0.1}
	rms := RMSPropCoef{0.75, 0.01, 0.99, 0.01, 1e-6, 1e-5, 0.9, 0.1}
	lion := LionCoef{0.75, 0.9, 0.1, 0.99, 0.01, 1e-3, 0.99}
	return []kernelCase{
		{"Adam", 4, func(s [][]float32) { Adam(s[0], s[1], s[2], s[3], &adam) }},
		{"AMSGrad", 5, func(s [][]float32) { AMSGrad(s[0], s[1], s[2], s[3], s[4], &adam) }},
		{"LAMB", 5, func(s [][]float32) { LAMB(s[0], s[1], s[2], s[3], s[4], &lamb) }},
		{"SGD", 2, func(s [][]float32) { SGD(s[0], s[1], &sgd) }},
		{"Momentum", 3, func(s [][]float32) { Momentum(s[0], s[1], s[2], &mom) }},
		{"Nesterov", 3, func(s [][]float32) { Nesterov(s[0], s[1], s[2], &mom) }},
		{"RMSProp", 3, func(s [][]float32) { RMSProp(s[0], s[1], s[2], &rms) }},
		{"RMSPropMomentum", 4, func(s [][]float32) { RMSPropMomentum(s[0], s[1], s[2], s[3], &rms) }},
		{"RMSPropCentred", 4, func(s [][]float32) { RMSPropCentred(s[0], s[1], s[2], s[3], &rms) }},
		{"RMSPropCentredMomentum", 5, func(s [][]float32) { RMSPropCentredMomentum(s[0], s[1], s[2], s[3], s[4], &rms) }},
		{"Lion", 3, func(s [][]float32) { Lion(s[0], s[1], s[2], &lion) }},
		{"Polyak", 2, func(s [][]float32) { Polyak(s[0], s[1], 0.005) }},
		{"Axpy", 2, func(s [][]float32) { Axpy(s[0], s[1], -0.3) }},
	}
}

// atLevel runs f with the kernels forced to l.
func atLevel(t testing.TB, l Level, f func()) {
	t.Helper()
	old := Active()
	if err := SetLevel(l); err != nil {
		t.Fatal(err)
	}
	defer func() { level = old }()
	f()
}

// vectorLevels returns the levels to compare with the twin.
func vectorLevels() []Level { return Levels()[1:] }

var edgeBits = []uint32{
	0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff, 0x807fffff, // zeros and denormals
	0x00800000, 0x80800000, 0x1fffffff, 0x20000000, 0xa0000000, 0x9fffffff, // smallest normal, 2^-63
	0x7f7fffff, 0xff7fffff, 0x5f7fffff, 0x5f800000, 0xdf800000, // greatest, about the root of the greatest
	0x7f800000, 0xff800000, 0x7fc00000, 0x7f800001, 0xffc12345, // infinities, NaNs
	0x3f800000, 0xbf800000, 0x3f800001, 0x3f7fffff,
}

// draw returns ordinary values with mode 0, any bit pattern with mode 1, and
// the edge cases among ordinary values with mode 2.
func draw(r *rand.Rand, mode int) float32 {
	switch {
	case mode == 1:
		return math.Float32frombits(r.Uint32())
	case mode == 2 && r.IntN(2) == 0:
		return math.Float32frombits(edgeBits[r.IntN(len(edgeBits))])
	}
	return float32(r.NormFloat64())
}

// sameBits compares bit patterns; any NaN equals any other.
func sameBits(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}

// TestTwin compares each vector kernel with the Go twin, element by element
// and bit by bit, over every length to 130, unaligned starts and edge values,
// with guard elements around the slices.
func TestTwin(t *testing.T) {
	const maxLen, modes = 130, 3
	offsets := []int{0, 1, 3, 7}
	compared := 0
	for _, lv := range vectorLevels() {
		for _, k := range kernelCases() {
			r := rand.New(rand.NewPCG(1, 2))
			for n := range maxLen + 1 {
				for mode := range modes {
					off := offsets[(n+mode)%len(offsets)]
					want, got := make([][]float32, k.slices), make([][]float32, k.slices)
					ws, gs := make([][]float32, k.slices), make([][]float32, k.slices)
					for s := range want {
						want[s], got[s] = make([]float32, off+n+5), make([]float32, off+n+5)
						for i := range want[s] {
							want[s][i] = draw(r, mode)
						}
						copy(got[s], want[s])
						ws[s], gs[s] = want[s][off:off+n], got[s][off:off+n]
					}
					atLevel(t, Portable, func() { k.run(ws) })
					atLevel(t, lv, func() { k.run(gs) })
					for s := range want {
						for i := range want[s] {
							if !sameBits(want[s][i], got[s][i]) {
								t.Fatalf("%s at %v, length %d, offset %d, mode %d, slice %d, element %d: %x, twin %x",
									k.name, lv, n, off, mode, s, i-off, math.Float32bits(got[s][i]), math.Float32bits(want[s][i]))
							}
						}
					}
					compared++
				}
			}
		}
	}
	if want := len(vectorLevels()) * 13 * (maxLen + 1) * modes; compared != want {
		t.Fatalf("compared %d calls, want %d", compared, want)
	}
	t.Logf("%d calls compared at %v", compared, vectorLevels())
}

// TestFused checks that the twins round each product: on an architecture with
// fused multiply-add a fused twin fails.
func TestFused(t *testing.T) {
	x := float32(1 + 0x1p-12)
	for _, lv := range Levels() {
		atLevel(t, lv, func() {
			dst, src := make([]float32, 19), make([]float32, 19)
			for i := range dst {
				dst[i], src[i] = -float32(x*x), x
			}
			Axpy(dst, src, x)
			for i, d := range dst {
				if d != 0 {
					t.Fatalf("%v: element %d is %g, so the product was fused into the sum", lv, i, d)
				}
			}
		})
	}
}

// TestReductions compares sums and searches with the twin and with a naive
// sum in the documented order.
func TestReductions(t *testing.T) {
	compared := 0
	r := rand.New(rand.NewPCG(3, 4))
	lengths := []int{1000, SumBlock - 1, SumBlock, SumBlock + 1, 2*SumBlock + 77}
	for n := range 131 {
		lengths = append(lengths, n)
	}
	for _, n := range lengths {
		for off := range 4 {
			x := make([]float32, n+off)
			for i := range x {
				x[i] = draw(r, 0) * float32(math.Exp(8*r.NormFloat64()))
			}
			x = x[off:]
			var want float64
			atLevel(t, Portable, func() { want = SumSquares(x) })
			naive := 0.0
			for b := 0; b < n; b += SumBlock {
				var acc [32]float64
				for i, e := range x[b:min(n, b+SumBlock)] {
					acc[i%32] += float64(e) * float64(e)
				}
				for d := 16; d > 0; d /= 2 {
					for i := range d {
						acc[i] += acc[i+d]
					}
				}
				naive += acc[0]
			}
			if want != naive {
				t.Fatalf("length %d: twin %v, documented order %v", n, want, naive)
			}
			bad := -1
			if n > 0 && off > 0 {
				bad = r.IntN(n)
			}
			for _, lv := range Levels() {
				atLevel(t, lv, func() {
					if got := SumSquares(x); got != want {
						t.Fatalf("SumSquares at %v, length %d: %v, want %v", lv, n, got, want)
					}
					if got := FirstNonFinite(x); got != -1 {
						t.Fatalf("FirstNonFinite at %v, length %d: %d, want none", lv, n, got)
					}
					if bad >= 0 {
						old, last := x[bad], x[n-1]
						x[n-1] = float32(math.Inf(-1))
						x[bad] = float32(math.NaN())
						if got := FirstNonFinite(x); got != bad {
							t.Fatalf("FirstNonFinite at %v, length %d: %d, want %d", lv, n, got, bad)
						}
						if s := SumSquares(x); !math.IsNaN(s) {
							t.Fatalf("SumSquares of a NaN at %v: %v", lv, s)
						}
						x[n-1], x[bad] = last, old
					}
				})
				compared++
			}
		}
	}
	if want := len(lengths) * 4 * len(Levels()); compared != want {
		t.Fatalf("compared %d, want %d", compared, want)
	}
}

// TestDenormalsVanish checks that moments of a dead parameter reach zero.
func TestDenormalsVanish(t *testing.T) {
	for _, lv := range Levels() {
		atLevel(t, lv, func() {
			p, g := make([]float32, 21), make([]float32, 21)
			m, v := make([]float32, 21), make([]float32, 21)
			for i := range m {
				m[i], v[i] = 1e-35, 1e-37
			}
			c := AdamCoef{1, 0, 0.9, 0.1, 0.99, 0.01, 1e-8, 1e-3, 1}
			for range 1000 {
				Adam(p, g, m, v, &c)
			}
			for i := range m {
				if m[i] != 0 || v[i] != 0 {
					t.Fatalf("%v: element %d keeps moments %g, %g", lv, i, m[i], v[i])
				}
			}
		})
	}
}

func TestLengthMismatchPanics(t *testing.T) {
	defer func() {
		if got, want := fmt.Sprint(recover()), "kernel.Axpy: slice of 2 elements, want 3"; got != want {
			t.Errorf("panic %q, want %q", got, want)
		}
	}()
	Axpy(make([]float32, 3), make([]float32, 2), 1)
}

func TestSetLevel(t *testing.T) {
	if err := SetLevel(Level(99)); err == nil {
		t.Error("SetLevel accepted an unknown level")
	}
	if Active() != Levels()[len(Levels())-1] {
		t.Errorf("active level %v, want the best of %v", Active(), Levels())
	}
}
