package decisions

import (
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestDrawnChoicesBeginWhereTheModelsDo draws actions of heads that do not begin at 0.
func TestDrawnChoicesBeginWhereTheModelsDo(t *testing.T) {
	p := &policy{batch: true, heads: []int{3, 2}, starts: []int64{-1, 7}}
	table := []float32{-2, -0.5, -1.5, -0.1, -3}
	s := rng.New(1).Stream()
	seen := map[int64]bool{}
	for range 100 {
		action := tensor.New(tensor.Int64, 1, 2)
		a := &answer{drawn: true, list: []serve.Tensor{{Name: Action, Value: action}, {Name: scores, Value: tensor.Of(table, 1, 5)}}}
		if !p.draw(a, s) {
			t.Fatal("nothing is drawn")
		}
		x := action.Int64s()
		if x[0] < -1 || x[0] > 1 || x[1] < 7 || x[1] > 8 {
			t.Fatalf("%v is drawn", x)
		}
		if got, want := p.logProb(a, action, 0, 1), float64(table[x[0]+1])+float64(table[3+x[1]-7]); got != want {
			t.Fatalf("the log-probability of %v is %g, expected %g", x, got, want)
		}
		seen[x[0]] = true
	}
	if len(seen) != 3 {
		t.Errorf("%d choices are drawn, expected 3", len(seen))
	}
}
