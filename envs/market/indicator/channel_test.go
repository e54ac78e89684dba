package indicator

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/state"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The state of a channel follows from all its numbers, to the bit, whatever they are and whether
// it was saved meanwhile.
func TestChannelKnows(t *testing.T) {
	r := rng.New(4).Stream()
	asked, nans := 0, 0
	for _, n := range []int{1, 2, 3, 9, 52} {
		w := newChannel(n)
		for range 20_000 {
			x := math.Round(5 * r.Normal())
			switch u := r.Float64(); {
			case u < 0.01:
				x = math.NaN()
			case u < 0.05:
				x = math.Copysign(0, -1)
			case u < 0.06:
				x = math.Inf(r.IntN(2)*2 - 1)
			case u < 0.5:
				x = r.Normal()
			}
			w.high.push(x)
			w.low.push(x)
			if r.Float64() < 0.01 {
				c := state.Writer(nil)
				w.State(c)
				w = newChannel(n)
				back := state.Reader(c.Bytes())
				if w.State(back); back.Err() != nil {
					t.Fatal(back.Err())
				}
			}
			asked++
			all := w.high.all()
			greatest, least := all[0], all[0]
			for _, x := range all[1:] {
				greatest, least = max(greatest, x), min(least, x)
			}
			for _, k := range []struct{ got, want float64 }{{w.high.value(), greatest}, {w.low.value(), least}} {
				if k.want != k.want {
					nans++
					if k.got != k.got {
						continue
					}
				}
				if math.Float64bits(k.got) != math.Float64bits(k.want) {
					t.Fatalf("%v: %v, expected %v", all, k.got, k.want)
				}
			}
		}
	}
	if asked != 100_000 || nans < 10_000 {
		t.Errorf("asked %d times, %d times of no number", asked, nans)
	}
}
