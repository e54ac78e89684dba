package studies

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/worker/temporal"
	"github.com/onnxrl/onnxrl/agents/worker/temporal/temporaltest"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// scaleCommands are those of docs/scale.md, in its order.
func scaleCommands(t *testing.T) (list []string) {
	t.Helper()
	for line := range strings.Lines(apptest.ReadText(t, "..", "..", "..", "..", "docs", "scale.md")) {
		if strings.HasPrefix(line, "onnxrl ") {
			list = append(list, strings.TrimSpace(line))
		}
	}
	return list
}

// scaleSearch is a small population; each interval takes so many env steps.
const scaleSearch = `
base: cartpole_ppo
set: {agent.n_epochs: 2, eval.episodes: 2}
population: 4
interval_steps: %d
generations: 3
strategy: {kind: pbt}
probe: 16
space:
  agent.learning_rate: {kind: loguniform, low: 1.0e-5, high: 1.0e-2}
`

// TestScale: workers of this machine train the population of one process, and what does not fit is
// refused.
func TestScale(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	search := apptest.Write(t, "search.yaml", fmt.Sprintf(scaleSearch, 512))
	in := func(name string) string { return filepath.Join(dir, name) }
	apptest.Succeed(t, "evolve", "-q", search, "--out", in("here"))
	apptest.Succeed(t, "evolve", "-q", search, "--workers", "2", "--out", in("population"))
	if apptest.ReadText(t, in("population"), evolve.LogFile) != apptest.ReadText(t, in("here"), evolve.LogFile) {
		t.Error("workers have trained another population")
	}
	apptest.Refuse(t, []string{"evolve", search, "--workers", "2", "--executor", "temporal://127.0.0.1:1", "--out", in("x")}, "--workers are of this machine", "--executor")
	apptest.Refuse(t, []string{"evolve", search, "--workers", "-1", "--out", in("x")}, "--workers -1: expected at least 0")
	apptest.Refuse(t, []string{"train", "cartpole_ppo", "--workers", "2", "--out", in("x")}, "several seeds")
	apptest.Refuse(t, []string{"evolve", "status", in("here")}, "nothing of it is with an executor")
	apptest.Refuse(t, []string{"worker", "--queues", "gpu"}, "--queues", "belong to --executor")
	if apptest.IsFile(in("x")) {
		t.Error("what was refused has left a directory")
	}
}

// TestScalePage executes the commands of docs/scale.md, with a small population: in processes of
// this machine, and by a Temporal server. Both have the log of the same population in one process,
// also where it was paused and cancelled.
func TestScalePage(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	want := []string{
		"onnxrl evolve search.yaml --workers 2 --out runs/population",
		"onnxrl train cartpole_ppo --seeds 1,2,3 --workers 2 --out runs/seeds",
		"onnxrl worker --executor temporal://127.0.0.1:7233 --workers 2",
		"onnxrl evolve search.yaml --executor 'temporal://127.0.0.1:7233?objects=file:///tmp/objects' --out runs/cluster",
		"onnxrl evolve status runs/cluster",
		"onnxrl evolve pause runs/cluster",
		"onnxrl evolve resume runs/cluster",
		"onnxrl evolve cancel runs/cluster",
	}
	if got := scaleCommands(t); !slices.Equal(got, want) {
		t.Fatalf("the page has %q", got)
	}
	dir := t.TempDir()
	search := filepath.Join(dir, "search.yaml")
	if err := os.WriteFile(search, fmt.Appendf(nil, scaleSearch, 16384), 0o644); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(dir, "runs", name) }
	log := func(name string) string { return apptest.ReadText(t, in(name), evolve.LogFile) }
	apptest.Succeed(t, "evolve", "-q", search, "--out", in("here"))
	apptest.Succeed(t, "evolve", "-q", search, "--workers", "2", "--out", in("population"))
	if log("population") != log("here") {
		t.Error("workers have trained another population")
	}
	small := []string{"train", "-q", "cartpole_ppo", "--seeds", "1,2,3", "--set", "train.threads=1", "--set", "train.total_env_steps=800", "--set", "publish.observations=64", "--set", "publish.allow_ties=true"}
	sum := apptest.TrainRuns(t, append(slices.Clone(small[2:]), "--workers", "2", "--out", in("seeds"))...)
	if len(sum.Runs) != 3 || len(sum.Unfinished) > 0 {
		t.Errorf("%+v", sum)
	}
	apptest.Succeed(t, append(slices.Clone(small), "--out", in("seeds here"))...)
	for _, seed := range []string{"seed-1", "seed-2", "seed-3"} {
		apptest.SameResult(t, seed, apptest.ArraysOf(t, filepath.Join(in("seeds"), seed)), apptest.ArraysOf(t, filepath.Join(in("seeds here"), seed)))
	}
	s := temporaltest.Start(t)
	address := "temporal://" + s.HostPort()
	apptest.Launch(t, apptest.Program(t, "worker", "--executor", address, "--workers", "2")).Says("2 intervals at once")
	executor := address + "?objects=file://" + filepath.ToSlash(filepath.Join(dir, "objects"))
	cluster := apptest.Launch(t, apptest.Program(t, "evolve", "-q", search, "--executor", executor, "--out", in("cluster")))
	for began := time.Now(); !apptest.IsFile(filepath.Join(in("cluster"), temporal.GroupFile)); time.Sleep(20 * time.Millisecond) {
		if time.Since(began) > 5*time.Minute {
			t.Fatalf("nothing was handed over:\n%s", cluster.Log)
		}
	}
	// The group begins a moment after its place is known.
	for began := time.Now(); apptest.Run(t, "evolve", "status", in("cluster")).Code != 0; {
		if time.Since(began) > 5*time.Minute {
			t.Fatal("no status")
		}
	}
	apptest.Says(t, apptest.Succeed(t, "evolve", "pause", in("cluster")), "is paused", "tasks onnxrl-cluster-")
	apptest.Says(t, apptest.Succeed(t, "evolve", "resume", in("cluster")), "goes on")
	apptest.Succeed(t, "evolve", "cancel", in("cluster"))
	if err := cluster.Cmd.Wait(); err == nil || !strings.Contains(cluster.Log.String(), "cancelled by somebody else") {
		t.Errorf("cancelled: %v\n%s", err, cluster.Log)
	}
	apptest.Succeed(t, "evolve", "-q", "--resume", in("cluster"), "--executor", executor)
	if log("cluster") != log("here") {
		t.Error("the workers of the server have trained another population")
	}
}
