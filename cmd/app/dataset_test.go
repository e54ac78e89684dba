package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// tinyPendulum trains for a moment, and publishes.
const tinyPendulum = `
env: {kind: pendulum, max_steps: 20}
agent: {kind: sac, hidden: [8], batch_size: 16, learning_starts: 20}
train: {num_envs: 2, total_env_steps: 80, threads: 1, validation: {every_steps: 40}}
eval: {episodes: 2}
publish: {observations: 50}
`

// TestRecordAndLearn records a trained policy in several ways, looks at the data sets, and learns
// from one.
func TestRecordAndLearn(t *testing.T) {
	t.Parallel()
	run, dir := apptest.Trained(t, tinyPendulum), t.TempDir()
	cases, acted := 0, apptest.VersionsIn(t, run)[0].Digest
	for name, flags := range sorted.All(map[string][]string{
		"best": nil, "drawn": {"--stochastic"}, "noisy": {"--noise", "0.3"}, "mixed": {"--random-episodes", "0.5"}, "greedy": {"--random-actions", "0.2"}, "random": {"--random-episodes", "1"},
	}) {
		out := filepath.Join(dir, name)
		r := apptest.Decode[recordReport](t, apptest.Succeed(t, append([]string{"record", run, "-o", out, "--episodes", "10", "--json"}, flags...)...))
		if r.Episodes != 10 || r.Transitions != 200 || r.Files != 1 || r.Environment != "pendulum" || (r.Behaviour.Algorithm == "random") != (name == "random") {
			t.Errorf("%s: %+v", name, r)
		}
		// It names the version that acted.
		if d, err := offline.Open(out); err != nil || slices.Equal(d.Parents, []string{acted}) == (name == "random") || len(d.Parents) > 1 {
			t.Errorf("%s: %v, %v", name, d.Parents, err)
		}
		picture := filepath.Join(dir, name+".svg")
		i := apptest.Decode[offline.Report](t, apptest.Succeed(t, "dataset", "inspect", out, "--picture", picture, "--json"))
		if known := name == "drawn" || name == "random"; i.Found != 0 || i.Gamma != 0.99 && name != "random" || (i.LogProb == 1) != known || i.Behaviours[0].Episodes != 10 {
			t.Errorf("%s: %+v", name, i)
		}
		if !strings.Contains(apptest.ReadText(t, picture), "<svg") {
			t.Errorf("%s: there is no picture", name)
		}
		cases++
	}
	if cases != 6 {
		t.Errorf("%d data sets", cases)
	}
	apptest.Says(t, apptest.Succeed(t, "dataset", "inspect", filepath.Join(dir, "noisy")), "sac, noise 0.3", "no problems", "observation", "box float32[3]")
	config := apptest.Write(t, "offline.yaml", strings.Replace(tinyPendulum, "agent: {kind: sac, hidden: [8], batch_size: 16, learning_starts: 20}", "agent: {kind: iql, hidden: [8], batch_size: 16}\ndataset: {path: "+filepath.Join(dir, "mixed")+", validation: 0.2}", 1))
	learnt := filepath.Join(dir, "learnt")
	apptest.Says(t, apptest.Succeed(t, "train", config, "--out", learnt), "80", "action score", "published")
	if v := apptest.VersionsIn(t, learnt)[0]; !slices.Equal(v.Manifest.Parents, []string{acted}) {
		t.Errorf("what was learnt descends from %v", v.Manifest.Parents)
	}
	// The way on.
	on := apptest.Write(t, "on.yaml", strings.Replace(tinyPendulum, "agent:", "dataset: {path: "+filepath.Join(dir, "mixed")+", share: 0.5}\nagent:", 1))
	apptest.Succeed(t, "train", on, "--init", learnt, "--partial", "--out", filepath.Join(dir, "on"))
	// A new document lacks the data set alone.
	fresh := filepath.Join(dir, "new.yaml")
	apptest.Succeed(t, "config", "new", "train", "--env", "pendulum", "--algo", "bc", "-o", fresh)
	if r := apptest.Run(t, "train", fresh, "--out", filepath.Join(dir, "new")); r.Code == 0 || !strings.Contains(r.Err, "dataset.path: required: the folder of a data set") {
		t.Errorf("%d: %s", r.Code, r.Err)
	}
	apptest.Succeed(t, "train", fresh, "--out", filepath.Join(dir, "new"), "--no-publish", "--set", "dataset.path="+filepath.Join(dir, "mixed"), "--set", "train.total_env_steps=20", "--set", "eval.episodes=1")
	// One checkpoint of a run is recorded, too.
	list, err := filepath.Glob(filepath.Join(learnt, "checkpoints", "ckpt-*"))
	if err != nil || len(list) == 0 {
		t.Fatal(list, err)
	}
	at := list[0]
	if r := apptest.Decode[recordReport](t, apptest.Succeed(t, "record", at, "-o", filepath.Join(dir, "at"), "--episodes", "1", "--json")); r.Behaviour.Policy != at {
		t.Errorf("%+v", r.Behaviour)
	}
}

// TestRecordAgents records all agents of a world, and learns one policy for them.
func TestRecordAgents(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir, config := t.TempDir(), `
env: {kind: cover, steps: 4}
agent: {kind: ippo, n_steps: 4, n_epochs: 1, hidden: [8]}
train: {num_envs: 4, total_env_steps: 64, threads: 1, validation: {every_steps: 32}}
eval: {episodes: 2}
publish: {observations: 50}
`
	data := filepath.Join(dir, "agents")
	r := apptest.Decode[recordReport](t, apptest.Succeed(t, "record", apptest.Trained(t, config), "-o", data, "--episodes", "20", "--stochastic", "--json"))
	if r.Episodes != 40 || r.Transitions != 160 {
		t.Errorf("%+v", r)
	}
	learn := apptest.Write(t, "bc.yaml", strings.NewReplacer("{kind: ippo, n_steps: 4, n_epochs: 1, hidden: [8]}", "{kind: bc, hidden: [8], batch_size: 16}\ndataset: {path: "+data+", validation: 0.2}", "num_envs: 4", "num_envs: 1").Replace(config))
	apptest.Says(t, apptest.Succeed(t, "train", learn, "--out", filepath.Join(dir, "bc")), "action match", "published")
	apptest.Says(t, apptest.Succeed(t, "evaluate", filepath.Join(dir, "bc"), "--offline", data, "--fqe-updates", "100"), "pdis", "fqe")
}

// TestDatasetBad has command lines and data sets that are refused.
func TestDatasetBad(t *testing.T) {
	t.Parallel()
	run, dir := apptest.Trained(t, tinyPendulum), t.TempDir()
	good := filepath.Join(dir, "good")
	apptest.Succeed(t, "record", run, "-o", good, "--transitions", "50")
	minari := filepath.Dir(apptest.Write(t, "metadata.json", "{}"))
	// The folder that Minari itself names by the data set's id.
	named := t.TempDir()
	if err := os.CopyFS(filepath.Join(named, "data"), os.DirFS(minari)); err != nil {
		t.Fatal(err)
	}
	cases := [][]string{
		{"record", run}, {"required flag", "out"},
		{"record", run, "-o", good}, {"exists"},
		{"record", run, "-o", dir + "/x", "--episodes", "0"}, {"--episodes"},
		{"record", run, "-o", dir + "/x", "--noise", "-1"}, {"--noise"},
		{"record", run, "-o", dir + "/x", "--random-actions", "2"}, {"--random-actions"},
		{"record", run, "-o", dir + "/x", "--random-episodes", "2"}, {"--random-episodes"},
		{"record", run, "-o", dir + "/x", "--envs", "0"}, {"--envs"},
		{"record", run, "-o", dir + "/x", "--episodes", "3", "--transitions", "4"}, {"--transitions"},
		{"record", dir, "-o", dir + "/x"}, {"holds no run"},
		{"dataset", "inspect", dir}, {offline.ManifestFile},
		{"dataset", "inspect", good, "--picture", dir + "/x.gif"}, {".gif", ".svg or .png"},
		{"dataset", "import", minari, "-o", dir + "/x", "--python", "/no/such/python", "-q"}, {"/no/such/python"},
		{"dataset", "import", named, "-o", dir + "/x", "--python", "/no/such/python", "-q"}, {"/no/such/python"},
		{"dataset", "export", good, "--id", "x/v0", "-o", dir, "-q"}, {"exists"},
	}
	for c := range slices.Chunk(cases, 2) {
		apptest.Refuse(t, c[0], c[1]...)
	}
	if len(cases) != 2*14 {
		t.Errorf("%d cases", len(cases)/2)
	}
	// A file that was changed is shown, and sets the exit status.
	path := filepath.Join(good, "part-00000.parquet")
	b := apptest.ReadBytes(t, path)
	b[len(b)/3] ^= 0xff
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	r := apptest.Run(t, "dataset", "inspect", good)
	if r.Code != 1 || !strings.Contains(r.Out, "SHA-256") || !strings.Contains(r.Out, "problems:") {
		t.Errorf("%+v", r)
	}
}
