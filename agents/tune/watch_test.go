package tune_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// Trials of a search that is watched are shown as runs of their own.
func TestWatched(t *testing.T) {
	dir := t.TempDir()
	document := filepath.Join(dir, "corridor.yaml")
	if err := os.WriteFile(document, []byte(`
env: {kind: corridor, cells: 5}
agent: {kind: ppo, n_steps: 50, batch_size: 50, n_epochs: 1, hidden: [4]}
train: {num_envs: 2, total_env_steps: 200, threads: 1, validation: {every_steps: 100}}
eval: {episodes: 2}
tune:
  trials: 2
  pruner: none
  space: {agent.learning_rate: {kind: loguniform, low: 1e-4, high: 1e-2}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	e, engine := exporter.New(time.Now), portable.New()
	defer engine.Close()
	s, err := tune.OpenSearch(t.Context(), kinds.All(), document, tune.SearchOptions{Engine: engine, Dir: filepath.Join(dir, "runs", "search"), Watch: e})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Begin(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	e.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	shown := w.Body.String()
	for _, line := range []string{`onnxrl_env_steps_total{run="search/trial-0"} 200`, `onnxrl_env_steps_total{run="search/trial-1"} 200`, `onnxrl_run_active{run="search/trial-1"} 0`, `onnxrl_run_failures_total{reason="error",run="search/trial-0"} 0`} {
		if !strings.Contains(shown, line+"\n") {
			t.Errorf("missing: %s in\n%s", line, shown)
		}
	}
	if n := strings.Count(shown, "\nonnxrl_run_active{"); n != 2 {
		t.Errorf("%d runs are shown", n)
	}
}
