package indicator

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// A window is read wherever in its numbers the next one goes.
func TestWindowIsRead(t *testing.T) {
	const n = 5
	cases := 0
	for head := range n {
		for _, full := range []bool{false, true} {
			c := state.Writer(nil)
			numbers, next := []float64{1, 2, 3, 4, 5}, head
			c.Floats(numbers)
			c.Int(&next, 0, n-1)
			c.Bool(&full)
			w := newWindow(n)
			r := state.Reader(c.Bytes())
			if w.State(r); r.Err() != nil || len(r.Bytes()) > 0 {
				t.Fatal(r.Err(), len(r.Bytes()))
			}
			// In order, with zeros before the first.
			want := slices.Concat(make([]float64, n-head), numbers[:head])
			if full {
				want = slices.Concat(numbers[head:], numbers[:head])
			}
			for k := range 3 * n {
				cases++
				if !slices.Equal(w.all(), want) || w.full != (full || head+k >= n) {
					t.Fatalf("head %d, full %v, %d pushed: %v, full %v, expected %v", head, full, k, w.all(), w.full, want)
				}
				w.push(float64(10 + k))
				want = append(want[1:], float64(10+k))
			}
		}
	}
	if cases != 2*n*3*n {
		t.Errorf("%d cases", cases)
	}
}
