package kernel

import (
	"hash/fnv"
	"math"
	"testing"
)

// golden is the hash of every kernel's results on fixed finite inputs. It holds
// on every CPU and architecture: a change means that resumed runs diverge.
const golden uint64 = 0x3b2a236ad69876da

// TestGolden pins the bits across machines; TestTwin only compares the kernels
// of one machine with each other.
func TestGolden(t *testing.T) {
	for _, lv := range Levels() {
		atLevel(t, lv, func() {
			h := fnv.New64a()
			write := func(bits uint64) {
				var b [8]byte
				for i := range b {
					b[i] = byte(bits >> (8 * i))
				}
				if _, err := h.Write(b[:]); err != nil {
					t.Fatal(err)
				}
			}
			cases := kernelCases()
			if len(cases) != 13 {
				t.Fatalf("%d kernels, want 13", len(cases))
			}
			seed := uint32(1)
			for _, k := range cases {
				s := make([][]float32, k.slices)
				for j := range s {
					s[j] = make([]float32, 203)
					for i := range s[j] {
						// Values in [-1, 1) from a linear congruence, free of
						// floating-point functions that platforms round differently.
						seed = seed*1664525 + 1013904223
						s[j][i] = float32(int32(seed)>>8) / (1 << 23)
						if j >= 2 && s[j][i] < 0 {
							s[j][i] = -s[j][i] // second moments are not negative
						}
					}
				}
				for range 3 {
					k.run(s)
				}
				for j := range s {
					for _, x := range s[j] {
						write(uint64(math.Float32bits(x)))
					}
					write(math.Float64bits(SumSquares(s[j])))
				}
			}
			if got := h.Sum64(); got != golden {
				t.Errorf("results at %v hash to %#x, want %#x", lv, got, golden)
			}
		})
	}
}
