package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/evolve"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/classic"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestImportReplay makes data sets of what a run, and a search, have in their replays, puts them
// together and learns from them.
func TestImportReplay(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	from := func(source, name string, more ...string) string {
		out := filepath.Join(dir, name)
		r := apptest.Decode[datasetReport](t, apptest.Succeed(t, append([]string{"dataset", "import", source, "-o", out, "--json"}, more...)...))
		i := apptest.Decode[offline.Report](t, apptest.Succeed(t, "dataset", "inspect", out, "--json"))
		if r.Environment != "pendulum" || r.Transitions == 0 || i.Found != 0 || i.Transitions != r.Transitions {
			t.Errorf("%s: %+v, %+v", name, r, i)
		}
		return out
	}
	own := from(apptest.Trained(t, tinyPendulum), "own")
	if d, err := offline.Open(own); err != nil || d.Transitions != 80 || d.Episodes != 4 || d.Gamma != 0.99 {
		t.Errorf("%+v %v", d, err)
	}
	base := apptest.Write(t, "base.yaml", tinyPendulum)
	search := filepath.Join(filepath.Dir(base), "search.yaml")
	text := "base: base.yaml\npopulation: 4\nreplay: {capacity: 400}\ninterval_steps: 40\ngenerations: 1\nspace:\n  agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}\n"
	if err := os.WriteFile(search, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	evolved := filepath.Join(dir, "evolved")
	apptest.Succeed(t, "evolve", "-q", search, "--out", evolved)
	members := from(evolved, "members")
	if d, err := offline.Open(members); err != nil || len(d.Behaviours) != 4 || d.Behaviours[0].Policy == d.Behaviours[1].Policy {
		t.Errorf("%+v %v", d, err)
	}
	v, ref := publishedReplay(t, filepath.Join(evolved, evolve.ReplayDir), "search-replay")
	published := from(ref, "published", "--config", base)
	if !sameFiles(t, published, members) {
		t.Error("the artefact has other transitions")
	}
	if d, err := offline.Open(published); err != nil || !slices.Equal(d.Parents, []string{v.Digest}) || len(v.Manifest.Parents) != 4 || v.Manifest.EnvStep != 160 {
		t.Errorf("%+v, %v of %+v", d, err, v)
	}
	// In the store of the search it needs no document.
	if !sameFiles(t, from(filepath.Join(evolved, publish.StoreDir)+"//"+v.Name, "by itself"), members) {
		t.Error("the artefact of the search has other transitions")
	}
	apptest.Refuse(t, []string{"dataset", "import", ref, "-o", dir + "/x"}, "--config: required", "no run and no search")
	if again := apptest.Decode[versionDoc](t, apptest.Succeed(t, "models", "publish", evolved, "--replay", "--json")); again.Digest != v.Digest {
		t.Errorf("the same replay is %s and %s", again.Digest, v.Digest)
	}
	trained := filepath.Join(dir, "trained")
	if err := os.CopyFS(trained, os.DirFS(apptest.Trained(t, tinyPendulum))); err != nil {
		t.Fatal(err)
	}
	w, ref := publishedReplay(t, trained, "tiny-replay", "--replay", "--alias", "collected")
	if policies := apptest.VersionsIn(t, trained); len(policies) != 2 || !slices.Equal(w.Manifest.Parents, []string{policies[0].Digest}) || w.Manifest.EnvStep != 80 || w.Manifest.Info["transitions"] != "80" {
		t.Errorf("%+v of %v", w, policies)
	}
	if !sameFiles(t, from(ref, "of the run", "--config", base), own) {
		t.Error("the artefact of the run has other transitions")
	}
	both := filepath.Join(dir, "both")
	apptest.Succeed(t, "dataset", "merge", own, published, "-o", both)
	config := apptest.Write(t, "offline.yaml", strings.Replace(tinyPendulum, "agent: {kind: sac, hidden: [8], batch_size: 16, learning_starts: 20}", "agent: {kind: iql, hidden: [8], batch_size: 16}\ndataset: {path: "+both+"}", 1))
	apptest.Succeed(t, "train", config, "--out", filepath.Join(dir, "learnt"))
	// A policy that learnt from it descends from it, and from the members that acted.
	line := apptest.Decode[struct{ Lineage []ancestorDoc }](t, apptest.Succeed(t, "models", "lineage", "offline", "--store", filepath.Join(dir, "learnt", publish.StoreDir), "--store", filepath.Join(evolved, publish.StoreDir), "--json")).Lineage
	if len(line) != 6 || line[1].Digest != v.Digest || line[5].Version == nil || line[5].Version.Manifest.Kind != evolve.MemberKind {
		t.Errorf("%+v", line)
	}

	empty := t.TempDir()
	for args, says := range sorted.All(map[string]string{
		empty + " --replay": "no run, no search", evolved: "it is a search", apptest.Trained(t, tinyCartpole) + " --replay": "has no replay",
		evolved + "/" + evolve.ReplayDir + " --kind agent": "it is a replay", base + " --replay": "a file is published as it is",
	}) {
		apptest.Refuse(t, append([]string{"models", "publish"}, strings.Fields(args)...), says)
	}
	cases := [][]string{
		{"dataset", "import", own, "-o", dir + "/x"}, {"none of Minari's"},
		{"dataset", "import", evolved, "-o", dir + "/x", "-c", base}, {"--config", "of its own"},
		{"dataset", "import", evolved, "-o", own}, {"exists"},
		{"dataset", "import", apptest.Trained(t, tinyCartpole), "-o", dir + "/x"}, {"has no replay"},
		{"dataset", "import", filepath.Join(empty, "log.txt"), "-o", dir + "/x", "-c", base}, {"as an artefact"},
		{"dataset", "import", base, "-o", dir + "/x", "-c", base}, {".jsonl"},
		{"dataset", "import", base, "-o", dir + "/x"}, {"--config"},
		{"dataset", "merge", own, "-o", dir + "/x"}, {"at least 2"},
		{"dataset", "merge", own, empty, "-o", dir + "/x"}, {offline.ManifestFile},
	}
	for c := range slices.Chunk(cases, 2) {
		apptest.Refuse(t, c[0], c[1]...)
	}
	if len(cases) != 2*9 {
		t.Errorf("%d cases", len(cases)/2)
	}
}

// publishedReplay publishes the replay of a directory, and sends the version to another store through a
// storage; it returns the version and a reference to it there.
func publishedReplay(t *testing.T, dir, name string, flags ...string) (versionDoc, string) {
	t.Helper()
	v := apptest.Decode[versionDoc](t, apptest.Succeed(t, append([]string{"models", "publish", dir, "--json"}, flags...)...))
	if v.Name != name || v.Manifest.Kind != replay.ArtifactKind || len(v.Files) != 3 || v.Bytes < 1000 || v.Manifest.Info["transitions"] == "" {
		t.Errorf("%+v", v)
	}
	storage, to := "file://"+t.TempDir(), filepath.Join(t.TempDir(), "artifacts")
	store := filepath.Join(strings.TrimSuffix(dir, string(filepath.Separator)+evolve.ReplayDir), publish.StoreDir)
	apptest.Succeed(t, "models", "push", v.Name, storage, "--store", store, "--lineage", "-q")
	apptest.Succeed(t, "models", "pull", storage+"#latest", "--store", to, "--lineage", "-q")
	apptest.Succeed(t, "models", "verify", v.Name, "--store", to)
	return v, to + "//" + v.Name
}

// sameFiles compares the Parquet files of data sets.
func sameFiles(t *testing.T, a, b string) bool {
	t.Helper()
	x, err := offline.Open(a)
	if err != nil {
		t.Fatal(err)
	}
	y, err := offline.Open(b)
	if err != nil {
		t.Fatal(err)
	}
	return len(x.Files) > 0 && slices.Equal(x.Files, y.Files)
}

// tinyCartpole trains for a moment, and publishes.
const tinyCartpole = `
env: {kind: cartpole, max_steps: 20}
agent: {kind: ppo, n_steps: 20, batch_size: 20, n_epochs: 1, hidden: [8]}
train: {num_envs: 2, total_env_steps: 80, threads: 1, validation: {every_steps: 40}}
eval: {episodes: 2}
publish: {observations: 50}
`

// TestServeDecisions: what a server's clients did and earned becomes a data set, number by number,
// that a policy is learnt from.
func TestServeDecisions(t *testing.T) {
	run, dir := apptest.Trained(t, tinyCartpole), t.TempDir()
	log := filepath.Join(dir, "decisions")
	r := apptest.StartServe(t, "--engine", portable.Name, "--model", "policy="+filepath.Join(run, "best.onnx"), "--decisions", log)
	env, err := classic.NewCartPole(classic.CartPoleConfig{MaxSteps: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer env.Close()
	ts, action := envs.NewTimeStep(env.Spec()), tensor.New(tensor.Int64)
	var want []string
	for episode := range 12 {
		if err := env.Reset(rng.New(uint64(episode)), ts); err != nil {
			t.Fatal(err)
		}
		for first := true; ; first = false {
			var p strings.Builder
			fmt.Fprintf(&p, `"sequence_id":"car %d","sequence_start":%t`, episode%3, first)
			if !first {
				fmt.Fprintf(&p, `,"reward":%v`, ts.Reward)
			}
			last := ts.Type == envs.Last
			if last {
				fmt.Fprintf(&p, `,"sequence_end":true,"terminated":%t,"truncated":%t`, ts.Discount == 0, ts.Discount != 0)
			}
			obs, err := json.Marshal(ts.Obs[0].Float32s())
			if err != nil {
				t.Fatal(err)
			}
			answer := r.Want(200, "/v2/models/policy/infer", fmt.Sprintf(`{"inputs":[{"name":"observation","shape":[1,4],"datatype":"FP32","data":%s}],"parameters":{%s}}`, obs, p.String()))
			if last {
				break
			}
			var a struct {
				Outputs []struct {
					Name string    `json:"name"`
					Data []float64 `json:"data"`
				} `json:"outputs"`
			}
			if err := json.Unmarshal([]byte(answer), &a); err != nil || a.Outputs[0].Name != "action" {
				t.Fatal(answer, err)
			}
			action.Int64s()[0] = int64(a.Outputs[0].Data[0])
			if err := env.Step(action, ts); err != nil {
				t.Fatal(err)
			}
			want = append(want, fmt.Sprintf("%s %d %v", obs, action.Int64s()[0], ts.Reward))
		}
	}
	if code := r.Stop(); code != 0 {
		t.Fatalf("exit status %d\n%s", code, r.Log)
	}
	config := apptest.Write(t, "cartpole.yaml", tinyCartpole)
	served := filepath.Join(dir, "served")
	apptest.Says(t, apptest.Succeed(t, "dataset", "import", log, "--config", config, "-o", served), "12 episodes", fmt.Sprint(len(want), " transitions of cartpole"))
	if i := apptest.Decode[offline.Report](t, apptest.Succeed(t, "dataset", "inspect", served, "--json")); i.Found != 0 {
		t.Error(i.Problems)
	}
	d, err := offline.Open(served)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := d.Each(t.Context(), func(e *offline.Episode) error {
		for k := range e.Len() {
			x := tensor.New(tensor.Float32, 4)
			copy(x.Bytes(), e.Obs[0][16*k:])
			obs, err := json.Marshal(x.Float32s())
			if got := fmt.Sprintf("%s %d %v", obs, e.Action[8*k], e.Reward[k]); err != nil || got != want[n] {
				t.Fatalf("transition %d is %s, and was %s", n, got, want[n])
			}
			n++
		}
		return nil
	}); err != nil || n != len(want) {
		t.Fatalf("%d transitions of %d: %v", n, len(want), err)
	}
	learn := apptest.Write(t, "bc.yaml", strings.Replace(tinyCartpole, "agent: {kind: ppo, n_steps: 20, batch_size: 20, n_epochs: 1, hidden: [8]}", "agent: {kind: bc, hidden: [8], batch_size: 16}\ndataset: {path: "+served+", validation: 0.2}", 1))
	apptest.Says(t, apptest.Succeed(t, "train", learn, "--out", filepath.Join(dir, "bc")), "action match", "published")
	apptest.Refuse(t, []string{"serve", "--decisions", filepath.Join(run, "best.onnx"), "--http", "127.0.0.1:0", "--model", "policy=" + filepath.Join(run, "best.onnx")}, "decisions", "not a directory")
}
