package training

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
)

// TestTiny trains the smallest shipped market on every engine: it learns, chooses a policy by
// validation, publishes it with proof, and its evaluation has what tests of evaluations need: a policy
// that trades, buy-and-hold, and one rule beside.
func TestTiny(t *testing.T) {
	t.Parallel()
	engines := 0
	for _, engine := range apptest.Engines() {
		dir := filepath.Join(t.TempDir(), engine)
		r := apptest.TrainRuns(t, "tiny", "--engine", engine, "--out", dir).Runs[0]
		if r.EnvSteps != 200 || r.Metric != "sharpe" || r.BestEnvSteps == 0 || r.Published == "" {
			t.Errorf("%s: %+v", engine, r)
		}
		e := evaluates(t, dir, "--engine", engine, "--no-report")
		if len(e.Rows) != 3 || e.Rows[0].Metrics["sharpe"] == nil || *e.Rows[0].Metrics["turnover"] == 0 || e.Verdict.InSample || e.LookAhead {
			t.Errorf("%s: %+v", engine, e)
		}
		engines++
	}
	if engines != len(apptest.Engines()) || engines == 0 {
		t.Errorf("%d engines", engines)
	}
}
