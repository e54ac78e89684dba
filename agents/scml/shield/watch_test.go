package shield

import (
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestWatch: whoever is watched does what it does otherwise; those in a shield do nothing unsafe,
// and others do.
func TestWatch(t *testing.T) {
	n := 0
	for _, name := range []string{"penguin", "syncrandom", "greedy", "random"} {
		kind, err := opponents.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for levels := 2; levels <= 4; levels++ {
			fresh := func(key rng.Key) world.Agent { return kind.New(opponents.FairDice(key)) }
			actions := func(inside func(key rng.Key) world.Agent) (scores []float64, all, unsafe int) {
				var list []league.Watched
				scores = play(t, 4, levels, world.DefaultRules(), func(key rng.Key) world.Agent {
					list = append(list, Watch(inside(key)))
					return list[len(list)-1]
				})
				for _, w := range list {
					a, u := w.Actions()
					all, unsafe = all+a, unsafe+u
				}
				return scores, all, unsafe
			}
			scores, all, unsafe := actions(fresh)
			for i, want := range play(t, 4, levels, world.DefaultRules(), fresh) {
				if scores[i] != want {
					t.Errorf("%s, %d levels: %v is scored when it is watched, and %v", name, levels, scores[i], want)
				}
				n++
			}
			if all < 1000 || unsafe == 0 || unsafe > all {
				t.Errorf("%s, %d levels: %d of %d actions are unsafe", name, levels, unsafe, all)
			}
			if _, ok := fresh(rng.New(1)).(world.Synchronous); !ok {
				continue
			}
			_, all, unsafe = actions(func(key rng.Key) world.Agent { return Around(fresh(key).(world.Synchronous)) })
			if all < 1000 || unsafe > 0 {
				t.Errorf("%s in a shield, %d levels: %d of %d actions are unsafe", name, levels, unsafe, all)
			}
		}
	}
	if n != 4*3*12 {
		t.Errorf("%d scores", n)
	}
}
