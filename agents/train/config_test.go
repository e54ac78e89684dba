package train_test

import (
	"testing"

	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// TestTheNumberOfEnvironmentsFollowsFromTheWorld leaves the number of environments open: worlds,
// and what each actor has, are whole.
func TestTheNumberOfEnvironmentsFollowsFromTheWorld(t *testing.T) {
	worlds := func(k int) envs.Factory {
		c := wrap.Defaults()
		c.TimeLimit = 5
		f, err := wrap.Apply(envtest.ShiftsFactory{Shifts: envtest.Shifts{Workers: k}}, c)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	single := struct{ envs.Factory }{}
	for _, c := range []struct {
		f                    envs.Factory
		given, actors, wants int
	}{{single, 0, 0, 8}, {single, 0, 3, 9}, {worlds(3), 0, 0, 9}, {worlds(4), 0, 0, 8}, {worlds(20), 0, 0, 20}, {worlds(3), 0, 2, 12}, {worlds(3), 6, 0, 6}, {worlds(3), 8, 0, 8}} {
		cfg := train.Defaults()
		cfg.NumEnvs, cfg.Actors.Count = c.given, c.actors
		if got := cfg.For(c.f).NumEnvs; got != c.wants {
			t.Errorf("%+v: %d environments", c, got)
		}
	}
}
