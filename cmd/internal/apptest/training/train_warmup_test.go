package training

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestNothingLearnt: a run that is over before its learner begins says so, and one that learns does
// not.
func TestNothingLearnt(t *testing.T) {
	t.Parallel()
	for starts, want := range sorted.All(map[string]bool{"500": true, "50": false}) {
		out := apptest.Succeed(t, "train", "cartpole_dqn", "-q", "--out", filepath.Join(t.TempDir(), "run"), "--set", "agent={kind: dqn, hidden: [8], learning_starts: "+starts+"}",
			"--set", "train={num_envs: 1, total_env_steps: 200, threads: 1, validation: {every_steps: 0}}", "--set", "publish={observations: 64, allow_ties: true}")
		if strings.Contains(out, "seed 1 has learnt nothing: its 200 env steps were over before the learner began, see agent.learning_starts") != want {
			t.Errorf("learning_starts %s:\n%s", starts, out)
		}
	}
}
