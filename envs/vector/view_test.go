package vector_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestView shows a vector with one field and the rewards replaced; all else is what it was.
func TestView(t *testing.T) {
	v := open(t, corridors(t, 3), vector.Options{Workers: 1})
	spec := v.Spec()
	spec.Observation = envs.Dict{{Name: "position", Space: envs.NewBox(-10, 10, 1)}}
	view, err := vector.NewView(spec, 3, []int{0}, true)
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Reset(key); err != nil {
		t.Fatal(err)
	}
	from, to := v.Batch(), view.Batch()
	ended := 0
	for range 40 {
		sample(v, key.Split("view").Stream())
		if err := v.Step(v.Batch().Actions); err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1, func() { view.Follow(from) }); n != 0 {
			t.Fatalf("%v allocations", n)
		}
		for i, x := range from.Obs[0].Float32s() {
			to.Obs[0].Float32s()[i], to.Reward[i] = 2*x, 100+from.Reward[i]
		}
		if to.Actions != from.Actions || to.Mask != from.Mask || to.FinalMask != from.FinalMask || len(to.Ended) != len(from.Ended) || &to.Info[0] != &from.Info[0] || to.Type[1] != from.Type[1] || to.Discount[2] != from.Discount[2] {
			t.Fatal("something shared is not")
		}
		for i := range 3 {
			if to.Earned()[i] != from.Reward[i] || from.Earned()[i] != from.Reward[i] || to.Reward[i] != 100+from.Reward[i] {
				t.Fatalf("rewards %v and %v of %v", to.Reward, to.Earned(), from.Reward)
			}
		}
		out := tensor.New(tensor.Float32, 3, 1)
		if err := to.Gather(0, out); err != nil {
			t.Fatal(err)
		}
		for i, x := range out.Float32s() {
			if x != 2*from.Obs[0].Float32s()[i] {
				t.Fatalf("gathered %v", out.Float32s())
			}
		}
		ended += len(to.Ended)
	}
	if ended < 5 {
		t.Errorf("%d episodes ended", ended)
	}
	if err := view.Close(); err != nil {
		t.Error(err)
	}
	if _, err := vector.NewView(spec, 3, nil, false); err == nil {
		t.Error("a view of nothing is accepted")
	}
	windows := open(t, portfolios(t, 1), vector.Options{Workers: 1})
	if _, err := vector.NewView(windows.Spec(), 1, []int{0}, false); err == nil {
		t.Error("a window is replaced")
	}
}
