package training

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// actingElsewhere is a run of two actors, of so many env steps of which 32 are one learner step.
func actingElsewhere(t *testing.T, steps, lag int, urls ...string) (config, dir string) {
	t.Helper()
	config = apptest.Write(t, "actors.yaml", fmt.Sprintf(`seed: 5
env: {kind: corridor, cells: 4}
agent: {kind: impala, n_steps: 8, hidden: [4]}
train: {num_envs: 4, total_env_steps: %d, log_interval_steps: 64, threads: 1, validation: {every_steps: 0}, actors: {count: 2, max_policy_lag: %d, urls: [%s]}}
publish: {when: never}
`, steps, lag, strings.Join(urls, ", ")))
	return config, filepath.Join(t.TempDir(), "run")
}

// quoted are URLs as a document has them.
func quoted(servers ...*apptest.Flight) (list []string) {
	for _, s := range servers {
		list = append(list, fmt.Sprintf("%q", s.URL))
	}
	return list
}

// lines counts those of a run's metrics.
func lines(t *testing.T, dir string) int {
	t.Helper()
	path := filepath.Join(dir, run.MetricsFile)
	if !apptest.IsFile(path) {
		return 0
	}
	return strings.Count(apptest.ReadText(t, path), "\n")
}

// Actors at servers that are killed are begun again, at the same one or another. With parameters
// that are never behind, the run has the bits of one in one process: nothing was lost or counted
// twice.
func TestActorServersAreKilled(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	const steps = 64 * 1500
	config, here := actingElsewhere(t, steps, 0)
	apptest.Succeed(t, "train", "-q", config, "--out", here)
	a, b := apptest.StartFlight(t, "actor", "serve", "--slots", "2"), apptest.StartFlight(t, "actor", "serve", "--slots", "2")
	config, dir := actingElsewhere(t, steps, 0, quoted(a, b)...)
	learner := apptest.Launch(t, apptest.Program(t, "train", "-q", config, "--out", dir))
	await(func() bool { return lines(t, dir) >= 20 })
	if n, m := len(children(t, a.Cmd.Process.Pid)), len(children(t, b.Cmd.Process.Pid)); n != 1 || m != 1 {
		t.Errorf("%d and %d processes act, expected one at each server", n, m)
	}
	a.Kill()
	await(func() bool { return len(children(t, b.Cmd.Process.Pid)) == 2 })
	at := lines(t, dir)
	await(func() bool { return lines(t, dir) > at+20 })
	b.KillAndStart()
	at = lines(t, dir)
	await(func() bool { return lines(t, dir) > at+20 })
	if at = lines(t, dir); at >= steps/64 {
		t.Errorf("the run was at its end, after %d lines, when the servers were killed", at)
	}
	if err := learner.Cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, learner.Log)
	}
	if log := learner.Log.String(); strings.Count(log, "an actor is lost and is begun again") < 3 || !strings.Contains(log, "it is lost at "+a.URL) || !strings.Contains(log, "it is lost at "+b.URL) {
		t.Errorf("the log does not say what was lost:\n%s", log)
	}
	got, want := apptest.TrainMetrics(t, dir), apptest.TrainMetrics(t, here)
	if len(want) != steps/64 || !slices.EqualFunc(got, want, maps.Equal) {
		t.Errorf("%d lines of metrics differ from the %d of the run in one process", len(got), len(want))
	}
	apptest.SameResult(t, "killed servers", apptest.ArraysOf(t, dir), apptest.ArraysOf(t, here))
}

// A server that is asked to end ends with its actors, and a run that ends leaves none at a server.
func TestActorServerEnds(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	s := apptest.StartFlight(t, "actor", "serve", "--slots", "2")
	config, dir := actingElsewhere(t, 1_000_000_000, 2, quoted(s)...)
	learner := apptest.Launch(t, apptest.Program(t, "train", "-q", config, "--out", dir))
	await(func() bool { return lines(t, dir) > 0 })
	acting := children(t, s.Cmd.Process.Pid)
	if len(acting) != 2 {
		t.Fatalf("%d processes act, expected 2", len(acting))
	}
	if code := s.Stop(); code != 0 {
		t.Errorf("exit status %d\n%s", code, s.Log)
	}
	for _, p := range acting {
		if alive(p) {
			t.Errorf("process %d goes on", p)
		}
	}
	s.Start()
	at := lines(t, dir)
	await(func() bool { return lines(t, dir) > at })
	learner.Signal(syscall.SIGTERM)
	err := learner.Cmd.Wait()
	if learner.Cmd.ProcessState.ExitCode() != apptest.Interrupted {
		t.Fatalf("%v\n%s", err, learner.Log)
	}
	await(func() bool { return len(children(t, s.Cmd.Process.Pid)) == 0 })
	// It goes on where actors are in the learner's process.
	cmd := apptest.Program(t, "train", "-q", "--resume", dir, "--set", "train.actors.urls=[]")
	at = lines(t, dir)
	again := apptest.Launch(t, cmd)
	await(func() bool { return lines(t, dir) > at })
	again.Signal(syscall.SIGTERM)
	if err := again.Cmd.Wait(); again.Cmd.ProcessState.ExitCode() != apptest.Interrupted {
		t.Errorf("%v\n%s", err, again.Log)
	}
}

// TestActorsPage executes the commands of docs/actors.md, with less to learn and at a port that is
// free.
func TestActorsPage(t *testing.T) {
	t.Parallel()
	var got []string
	for line := range strings.Lines(apptest.ReadText(t, "..", "..", "..", "..", "docs", "actors.md")) {
		if strings.HasPrefix(line, "onnxrl ") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	want := []string{
		"onnxrl train cartpole_appo --set train.actors.count=2 --set train.actors.processes=true --out runs/processes",
		"onnxrl actor serve --listen 127.0.0.1:7071 --slots 4",
		`onnxrl train cartpole_appo --set 'train.actors={count: 4, urls: ["grpc://127.0.0.1:7071"]}' --out runs/machines`,
	}
	if !slices.Equal(got, want) {
		t.Fatalf("the page has %q", got)
	}
	small := []string{"train", "-q", "cartpole_appo", "--set", "train.total_env_steps=1024", "--set", "train.validation.every_steps=512", "--set", "eval.episodes=2", "--set", "publish.observations=64", "--set", "publish.allow_ties=true"}
	s := apptest.StartFlight(t, "actor", "serve", "--slots", "4")
	for name, more := range sorted.All(map[string][]string{
		"processes": {"--set", "train.actors.count=2", "--set", "train.actors.processes=true"},
		"machines":  {"--set", fmt.Sprintf("train.actors={count: 4, urls: [%q]}", s.URL)},
	}) {
		sum := apptest.TrainRuns(t, slices.Concat(small[2:], more, []string{"--out", filepath.Join(t.TempDir(), name)})...)
		if r := sum.Runs[0]; r.EnvSteps != 1024 || r.PolicyLag == nil || r.PolicyLag.Max > 1 {
			t.Errorf("%s: %+v, %+v", name, r, r.PolicyLag)
		}
	}
}
