package indicator

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// A state that was saved at any bar and read into a fresh indicator goes on with the same bits.
func TestStateGoesOn(t *testing.T) {
	series := walk(6, 260)
	compared := 0
	forAll(t, func(t *testing.T, k *Kind, p []float64) {
		full := Run(k.New(p), len(k.Outputs), series)
		ind, out := k.New(p), make([]float64, len(k.Outputs))
		for cut := range series {
			if cut%11 == 0 {
				w := state.Writer(nil)
				ind.State(w)
				fresh, r := k.New(p), state.Reader(w.Bytes())
				fresh.State(r)
				if r.Err() != nil || len(r.Bytes()) != 0 {
					t.Fatalf("saved after %d bars: error %v, %d bytes are left", cut, r.Err(), len(r.Bytes()))
				}
				for o, rest := range Run(fresh, len(k.Outputs), series[cut:]) {
					for i, v := range rest {
						compared++
						if math.Float64bits(v) != math.Float64bits(full[o][cut+i]) {
							t.Fatalf("saved after %d bars: output %d at %d is %v, expected %v", cut, o, cut+i, v, full[o][cut+i])
						}
					}
				}
				again := state.Writer(nil)
				k.New(p).State(again)
				if len(again.Bytes()) != len(w.Bytes()) {
					t.Fatalf("%d bytes before the first bar, %d after %d", len(again.Bytes()), len(w.Bytes()), cut)
				}
			}
			ind.Next(&series[cut], out)
		}
	})
	if compared < 200_000 {
		t.Errorf("%d values compared", compared)
	}
}

// A state of arbitrary bytes is refused or leaves an indicator that can go on.
func FuzzState(f *testing.F) {
	series := walk(7, 40)
	for i, k := range kinds {
		p, err := k.Complete(nil)
		if err != nil {
			f.Fatal(err)
		}
		w := state.Writer(nil)
		k.New(p).State(w)
		f.Add(uint8(i), w.Bytes())
	}
	f.Fuzz(func(t *testing.T, kind uint8, block []byte) {
		k := kinds[int(kind)%len(kinds)]
		p, err := k.Complete(nil)
		if err != nil {
			t.Fatal(err)
		}
		ind, r := k.New(p), state.Reader(block)
		ind.State(r)
		if r.Err() == nil {
			Run(ind, len(k.Outputs), series)
		}
	})
}
