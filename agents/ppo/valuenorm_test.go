package ppo

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestPopArtKeepsValues: where the averages move on, the value in returns stays what it was, and
// without PopArt it does not. After some minibatches of large returns the averages are theirs.
func TestPopArtKeepsValues(t *testing.T) {
	n := 0
	for _, kind := range []string{Running, PopArt} {
		c := lone()
		c.NormalizeValue, c.BatchSize = kind, -1
		v := agenttest.Toys(t, 3, spec(envs.Discrete{N: 2}, false))
		r := agenttest.NewTraining(t, agentOf(t, c, v, testengines.Fastest(t), 1), v)
		r.Rollout(t)
		l := r.Agent.Learner().(*learner)
		f, err := l.NewForward(3)
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Closing(t, f.Program)
		values := func() (list []float64) {
			if err := f.Current(v.Batch()); err != nil {
				t.Fatal(err)
			}
			mean, std := l.norm.moments()
			for _, x := range f.Value {
				list = append(list, float64(x)*std+mean)
			}
			return list
		}
		if err := l.begin(); err != nil {
			t.Fatal(err)
		}
		for i := range l.Target {
			l.Target[i] = 100 + 10*float64(i%2)
		}
		before := values()
		units := make([]int, l.units())
		for i := range units {
			units[i] = i
		}
		l.fill(units, l.schedules())
		moved := 0.0
		for i, x := range values() {
			moved = max(moved, math.Abs(x-before[i]))
			n++
		}
		if kept := moved < 1e-3; kept != (kind == PopArt) {
			t.Errorf("%s: values moved by %g", kind, moved)
		}
		// The targets are 17 times 100 and 16 times 110.
		mean, want := 0.0, 100+10*16/33.0
		if mean, _ = l.norm.moments(); math.Abs(mean-want) > 1e-6 {
			t.Errorf("%s: the mean is %g, expected %g", kind, mean, want)
		}
		if sum := float64(l.in.returns[0]) * 17 / 33; math.Abs(sum+float64(l.in.returns[1])*16/33) > 1e-5 {
			t.Errorf("%s: targets of %g and %g do not have the mean 0", kind, l.in.returns[0], l.in.returns[1])
		}
	}
	if n != 2*3 {
		t.Errorf("%d values", n)
	}
}
