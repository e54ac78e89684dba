package evolve

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/replay/flight"
	"github.com/onnxrl/onnxrl/agents/replay/flight/flighttest"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestReplayOfServer: members whose base names a table of a server learn from what all record
// there, and each is a policy of its own.
func TestReplayOfServer(t *testing.T) {
	var c flight.TableConfig
	c.SetDefaults()
	c.Capacity = 4000
	server := flighttest.Open(t, "", map[string]flight.TableConfig{"transitions": c})
	url, _ := flighttest.Serve(t, server, "127.0.0.1:0")
	path := written(t, "population: 4", "population: 4", "interval_steps: 100", "interval_steps: 40", "agent.ent_coef", "agent.tau", "high: 1.0e-1", "high: 1.0", "generations: 4", "generations: 2")
	base := fmt.Sprintf(`
seed: 4
env: {kind: corridor, cells: 5}
agent: {kind: sac, batch_size: 16, buffer_size: 400, learning_starts: 20, hidden: [4], sharing: {}}
replay: {kind: flight, url: "%s"}
train: {num_envs: 2, total_env_steps: 1000, threads: 1, log_interval_steps: 20}
eval: {episodes: 2}
`, url)
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "base.yaml"), []byte(base), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "search")
	s, err := evolved(t.Context(), t, path, Options{Dir: dir, Parallel: 2})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range s.records[1] {
		var res run.Result
		if err := run.ReadJSON(filepath.Join(dir, filepath.FromSlash(r.Dir), run.IntervalFile), &res); err != nil {
			t.Fatal(err)
		}
		drawn := 0
		for tag, part := range sorted.All(res.Train) {
			if strings.HasPrefix(tag, "replay/policy_") && strings.HasSuffix(tag, "/share") && part > 0 {
				drawn++
			}
		}
		// By a few draws, of what is there while the others train.
		if drawn < 2 {
			t.Errorf("member %d draws from %d policies, expected several: %v", r.Member, drawn, res.Train)
		}
	}
	// Four members, two generations of 40 steps.
	if about := server.Tables()[0]; about.Inserts != 320 {
		t.Errorf("%d transitions were recorded, expected 320", about.Inserts)
	}
	path = written(t, "population: 4", "population: 4\nreplay: {capacity: 800}", "interval_steps: 100", "interval_steps: 40", "agent.ent_coef", "agent.tau", "high: 1.0e-1", "high: 1.0")
	if err := os.WriteFile(filepath.Join(filepath.Dir(path), "base.yaml"), []byte(base), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := evolved(t.Context(), t, path, Options{Dir: filepath.Join(t.TempDir(), "both")}); err == nil || !strings.Contains(err.Error(), "a server's table") {
		t.Errorf("both: %v", err)
	}
}
