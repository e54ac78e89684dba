package app

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/models/safetensors"
)

// goldenFrom records testdata/golden with another build of the program, one whose results this one
// must reproduce:
//
//	go test ./cmd/app -run TestGolden -golden-from /path/to/older/onnxrl
var goldenFrom = flag.String("golden-from", "", "record the golden runs with this program")

// goldenRuns are small trainings of every algorithm and of what changes their course: wrappers,
// masks, schedules, memory, a market. Each is written by an older program, which stopped at the
// checkpoint at.
var goldenRuns = []struct {
	name, document string
	at             string
	set            []string
}{
	{"ppo", "cartpole_ppo", "ckpt-000001024", []string{"agent.hidden=[8]", "train.total_env_steps=3072", "train.checkpoint.every_steps=1024", "train.validation.every_steps=1024", "wrappers={normalize: {obs: true, reward: true}}", "agent.entropy_coef=0.01"}},
	{"ppo_lstm", "cartpole_ppo", "ckpt-000001024", []string{"agent.hidden=[8]", "agent.recurrent={kind: lstm, hidden: 4}", "train.total_env_steps=2048", "train.checkpoint.every_steps=1024", "train.validation.every_steps=1024"}},
	{"ppo_masked", "invalid_maskable_ppo", "ckpt-000002048", []string{"agent.hidden=[8]", "train.total_env_steps=4096", "train.checkpoint.every_steps=2048", "train.validation.every_steps=2048"}},
	{"ppo_sde", "pendulum_ppo", "ckpt-000004096", []string{"agent.hidden=[8]", "train.total_env_steps=8192", "train.checkpoint.every_steps=4096", "train.validation.every_steps=4096"}},
	{"a2c", "cartpole_a2c", "ckpt-000001000", []string{"agent.hidden=[8]", "train.total_env_steps=3000", "train.checkpoint.every_steps=1000", "train.validation.every_steps=1000"}},
	{"a2c_market", "demo", "ckpt-000002000", []string{"agent.encoder.d_model=8", "train.total_env_steps=4000", "train.checkpoint.every_steps=2000", "train.validation.every_steps=2000", "eval.bootstrap.samples=50", "eval.baselines.random=[42]", "eval.baselines.moving_average=[10]", "eval.lag=[]", "eval.cost_sweep_bp=[0]", "publish.observations=1000"}},
	{"dqn", "cartpole_dqn", "ckpt-000001024", []string{"agent.hidden=[8]", "agent.buffer_size=500", "agent.learning_starts=100", "train.total_env_steps=3072", "train.checkpoint.every_steps=1024", "train.validation.every_steps=1024"}},
	{"sac", "pendulum_sac", "ckpt-000000500", []string{"agent.hidden=[8]", "agent.buffer_size=400", "agent.learning_starts=100", "agent.batch_size=16", "train.total_env_steps=1000", "train.checkpoint.every_steps=500", "train.validation.every_steps=500"}},
	{"td3", "pendulum_td3", "ckpt-000000500", []string{"agent.hidden=[8]", "agent.buffer_size=400", "agent.learning_starts=100", "agent.batch_size=16", "train.total_env_steps=1000", "train.checkpoint.every_steps=500", "train.validation.every_steps=500"}},
	{"ddpg", "pendulum_ddpg", "ckpt-000000500", []string{"agent.hidden=[8]", "agent.buffer_size=400", "agent.learning_starts=100", "agent.batch_size=16", "train.total_env_steps=1000", "train.checkpoint.every_steps=500", "train.validation.every_steps=500"}},
}

// goldenStored is the document whose artefact store is kept as well.
const goldenStored = "demo"

// goldenResult is what a run comes to, but for times: the bytes of every array of its last
// checkpoint, and everything that it measured.
type goldenResult struct {
	Arrays  map[string]string `json:"arrays"`
	Metrics []map[string]any  `json:"metrics"`
	Summary map[string]any    `json:"summary"`
}

// TestGolden resumes runs that an older program wrote, and trains their documents again from the
// beginning: both reproduce its numbers to the digit, on the pure-Go engine, which rounds alike on
// all processors of one architecture. Its policies are proved again, and evaluated as it evaluated
// them.
func TestGolden(t *testing.T) {
	t.Parallel()
	goldenOnly(t)
	compared := 0
	for _, c := range goldenRuns {
		t.Run(c.name, func(t *testing.T) {
			kept := filepath.Join("testdata", "golden", c.name)
			if *goldenFrom != "" {
				recordGolden(t, c.document, c.at, kept, c.set)
			}
			var want goldenResult
			goldenJSON(t, filepath.Join(kept, "want.json"), &want)
			if len(want.Arrays) == 0 || len(want.Metrics) == 0 {
				t.Fatalf("nothing to compare with: %d arrays, %d lines of metrics", len(want.Arrays), len(want.Metrics))
			}

			resumed := filepath.Join(t.TempDir(), c.name)
			if err := os.CopyFS(resumed, os.DirFS(filepath.Join(kept, "run"))); err != nil {
				t.Fatal(err)
			}
			succeed(t, "train", "--resume", resumed, "--engine", "portable", "-q")
			sameGolden(t, "resumed", goldenOf(t, resumed), want)

			fresh := filepath.Join(t.TempDir(), c.name)
			succeed(t, "train", filepath.Join(kept, "run", "config.yaml"), "--out", fresh, "--engine", "portable", "-q")
			sameGolden(t, "trained again", goldenOf(t, fresh), want)
			compared += len(want.Arrays) + len(want.Metrics) + len(want.Summary)

			got := succeed(t, "evaluate", filepath.Join(kept, "best.onnx"), "--config", filepath.Join(kept, "run", "config.yaml"), "--engine", "portable", "-q", "--json")
			if want := readText(t, filepath.Join(kept, "evaluated.json")); untimed(t, got) != untimed(t, want) {
				t.Errorf("evaluated as\n%s\nexpected\n%s", untimed(t, got), untimed(t, want))
			}
		})
	}
	if !t.Failed() && compared < 400 {
		t.Errorf("%d values compared", compared)
	}
}

// TestGoldenStore proves again what an older program published.
func TestGoldenStore(t *testing.T) {
	t.Parallel()
	store := filepath.Join("testdata", "golden", "a2c_market", "artifacts")
	if out := succeed(t, "models", "verify", "--store", store, "--engine", "portable", "-q"); !strings.Contains(out, goldenStored) {
		t.Errorf("nothing verified:\n%s", out)
	}
}

// recordGolden trains a document with the older program and keeps what is needed to resume it at
// one of its checkpoints, and what became of it.
func recordGolden(t *testing.T, document, at, kept string, set []string) {
	t.Helper()
	run := filepath.Join(t.TempDir(), document)
	args := []string{"train", document, "--engine", "portable", "-q", "--out", run, "--set", "train.threads=1", "--set", "train.checkpoint.keep_last=99", "--set", "eval.episodes=5"}
	for _, s := range set {
		args = append(args, "--set", s)
	}
	older(t, args...)
	if err := os.RemoveAll(kept); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"config.yaml", "lineage.json", "sources.json", "metrics.jsonl", filepath.Join("checkpoints", at)} {
		copyGolden(t, filepath.Join(run, name), filepath.Join(kept, "run", name))
	}
	copyGolden(t, filepath.Join(run, "best.onnx"), filepath.Join(kept, "best.onnx"))
	if document == goldenStored {
		copyGolden(t, filepath.Join(run, "artifacts"), filepath.Join(kept, "artifacts"))
	}
	text, err := json.MarshalIndent(goldenOf(t, run), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(kept, "want.json"), append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	evaluated := older(t, "evaluate", filepath.Join(kept, "best.onnx"), "--config", filepath.Join(kept, "run", "config.yaml"), "--engine", "portable", "-q", "--json")
	if err := os.WriteFile(filepath.Join(kept, "evaluated.json"), evaluated, 0o644); err != nil {
		t.Fatal(err)
	}
}

// olderProgram returns a command that is the older program.
func olderProgram(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), *goldenFrom, args...)
	cmd.Env = append(os.Environ(), "ONNXRL_NICE=0")
	return cmd
}

// older runs the older program to its end and returns what it printed.
func older(t *testing.T, args ...string) []byte {
	t.Helper()
	var errw bytes.Buffer
	cmd := olderProgram(t, args...)
	cmd.Stderr = &errw
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, errw.Bytes())
	}
	return out
}

// copyGolden copies a file or folder.
func copyGolden(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goldenOf reads what a finished run came to.
func goldenOf(t *testing.T, run string) goldenResult {
	t.Helper()
	g := goldenArrays(t, run)
	goldenJSON(t, filepath.Join(run, "finished.json"), &g.Summary)
	g.Summary = withoutTimes(g.Summary)
	return g
}

// goldenArrays reads the arrays of a run's last checkpoint, and all that it measured.
func goldenArrays(t *testing.T, run string) goldenResult {
	t.Helper()
	checkpoints, err := filepath.Glob(filepath.Join(run, "checkpoints", "ckpt-*"))
	if err != nil || len(checkpoints) == 0 {
		t.Fatalf("no checkpoint in %s: %v", run, err)
	}
	slices.Sort(checkpoints)
	f, err := safetensors.Open(filepath.Join(checkpoints[len(checkpoints)-1], "arrays.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := goldenResult{Arrays: map[string]string{}}
	for _, info := range f.Tensors() {
		data := make([]byte, info.Size())
		if err := f.ReadBytes(data, info.Name); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		g.Arrays[info.Name] = hex.EncodeToString(sum[:8])
	}
	text := readText(t, filepath.Join(run, "metrics.jsonl"))
	for lines := bufio.NewScanner(strings.NewReader(text)); lines.Scan(); {
		var m map[string]any
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			t.Fatal(err)
		}
		g.Metrics = append(g.Metrics, withoutTimes(m))
	}
	return g
}

// withoutTimes removes what differs between runs that are equal: durations, and where a run lies. A
// published policy's digest covers the name and version of the program that published it.
func withoutTimes(m map[string]any) map[string]any {
	maps.DeleteFunc(m, func(key string, _ any) bool {
		return strings.HasPrefix(key, "time") || slices.Contains([]string{"seconds", "env_steps_per_second", "dir", "published"}, key)
	})
	return m
}

func untimed(t *testing.T, text string) string {
	t.Helper()
	m := decode[map[string]any](t, text)
	out, err := json.MarshalIndent(withoutTimes(m), "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// sameGolden compares everything but arrays and metrics that the older program did not have.
func sameGolden(t *testing.T, what string, got, want goldenResult) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(want.Arrays)) {
		if got.Arrays[name] != want.Arrays[name] {
			t.Errorf("%s: array %s differs", what, name)
		}
	}
	if len(got.Metrics) != len(want.Metrics) {
		t.Fatalf("%s: %d lines of metrics, expected %d", what, len(got.Metrics), len(want.Metrics))
	}
	for i, line := range want.Metrics {
		sameValues(t, what+": metrics", got.Metrics[i], line)
	}
	sameValues(t, what+": summary", got.Summary, want.Summary)
}

func sameValues(t *testing.T, what string, got, want map[string]any) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		g, err := json.Marshal(got[key])
		if err != nil {
			t.Fatal(err)
		}
		w, err := json.Marshal(want[key])
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(g, w) {
			t.Errorf("%s: %s is %s, expected %s", what, key, g, w)
		}
	}
}

func readText(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func goldenJSON(t *testing.T, path string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(readText(t, path)), v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}
