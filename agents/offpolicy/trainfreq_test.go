package offpolicy_test

import (
	"errors"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/offpolicy"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestEachEpisode: a learner step follows the end of an episode, with as many updates as there were
// env steps since the last.
func TestEachEpisode(t *testing.T) {
	v := agenttest.Toys(t, 2, agenttest.Choice())
	b, err := replay.NewUniform(replay.LayoutOf(v.Spec(), replay.Column{Name: "action", DType: tensor.Int64}), replay.Config{Capacity: 200, Envs: 2, NSteps: 1, Gamma: 1})
	if err != nil {
		t.Fatal(err)
	}
	agenttest.Closing(t, b)
	s := offpolicy.Defaults()
	s.LearningStarts, s.TrainFreq, s.GradientSteps = 0, offpolicy.EachEpisode, -1
	k := offpolicy.NewClock(&s, &agents.Setup{Envs: 2}, b)
	rec, actions := k.Recorder(b), &vector.Decision{Actions: tensor.Of([]int64{0, 1}, 2)}
	steps, waited, since := 0, 0, 0
	for range 60 {
		if err := errors.Join(rec.Begin(v.Batch(), actions), v.Step(actions.Actions), rec.End(v.Batch())); err != nil {
			t.Fatal(err)
		}
		since += 2
		if ended := len(v.Batch().Ended) > 0; k.Ready() != ended {
			t.Fatalf("ready is %t, and an episode has ended: %t", k.Ready(), ended)
		} else if !ended {
			waited++
			if _, err := k.Begin(); err == nil {
				t.Fatal("a learner step within the episodes")
			}
			continue
		}
		if _, err := k.Begin(); err != nil || k.Of != since {
			t.Fatalf("%d updates after %d env steps: %v", k.Of, since, err)
		}
		steps, since, k.Owed = steps+1, 0, 0
	}
	if steps < 10 || waited < 10 {
		t.Errorf("%d learner steps, %d rounds without", steps, waited)
	}
	n := 0
	for text, want := range sorted.All(map[string]offpolicy.TrainFreq{"episode": offpolicy.EachEpisode, "7": 7, "0": 0, "-1": 0, "episodes": 0}) {
		d, err := configs.Parse("x.yaml", []byte("f: "+text))
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			F offpolicy.TrainFreq `yaml:"f"`
		}
		if err := d.Decode(&c); c.F != want || (err == nil) != (want != 0) {
			t.Errorf("%s is %d: %v", text, c.F, err)
		}
		if out, err := configs.Marshal(c); want != 0 && (err != nil || string(out) != "f: "+text+"\n") {
			t.Errorf("%s is written %q: %v", text, out, err)
		}
		n++
	}
	if n != 5 {
		t.Errorf("%d words", n)
	}
}
