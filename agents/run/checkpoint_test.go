package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/offline/offlinetest"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/run/recorded"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
)

// TestEvaluationOfCheckpoint evaluates and records the policy of one checkpoint of a run, which is
// not the best one of the run.
func TestEvaluationOfCheckpoint(t *testing.T) {
	const env = "{kind: pendulum, max_steps: 20}"
	c := withDataset(t, env, "{path: "+offlinetest.Dataset(t, specOf(t, env), 10).Dir+", validation: 0.25}", "{kind: bc, hidden: [8], batch_size: 16}", 60)
	dir := filepath.Join(t.TempDir(), "run")
	if _, err := trainedOn(t.Context(), t, c, run.Job{Dir: dir}, run.Options{}); err != nil {
		t.Fatal(err)
	}
	list, err := checkpoint.List(filepath.Join(dir, run.CheckpointDir))
	if err != nil || len(list) < 3 {
		t.Fatalf("%v, %v", list, err)
	}
	returns := map[string]float64{}
	for _, target := range []string{dir, list[0].Path, list[1].Path} {
		e, err := run.NewEvaluation(kinds.All(), target, run.EvaluationOptions{Split: "train"})
		if err != nil {
			t.Fatal(err)
		}
		agenttest.Closing(t, e)
		if err := e.Open(t.Context(), testengines.Fastest(t)); err != nil {
			t.Fatal(err)
		}
		r, _, err := recorded.Recording(e)
		if err != nil {
			t.Fatal(err)
		}
		res, err := e.Episodes(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if from := r.Behaviour.Policy; (from == target) != (target != dir) || from != e.Policies()[0].From {
			t.Errorf("%s: the policy is that of %s", target, from)
		}
		returns[target] = res[0].Return
	}
	if len(returns) != 3 || returns[dir] == returns[list[0].Path] || returns[list[0].Path] == returns[list[1].Path] {
		t.Errorf("returns %v", returns)
	}
	missing := filepath.Join(dir, run.CheckpointDir)
	if _, err := run.NewEvaluation(kinds.All(), missing, run.EvaluationOptions{}); err == nil || !strings.Contains(err.Error(), "one of its checkpoints: "+filepath.Base(list[0].Path)) {
		t.Errorf("%v", err)
	}
}
