package app

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/livetrade/files"
	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// ofFiles are words of what is said of flags and keys that name files.
var ofFiles = regexp.MustCompile(`(?i)\b(files?|folders?|director(y|ies)|paths?|stores?|ONNX file|run|checkpoints?)\b`)

// readFlags are the flags that name what is read, and take references; noFlags those whose help has
// the words and which name nothing that is read here: secrets, certificates, libraries, names in a
// server's or a file's own words.
var (
	readFlags = strings.Fields("bars config data file init instruments loss model needed-by observations positions repository resume")
	noFlags   = strings.Fields("admin-token-file algo among env-id executor frequency live-token-file metrics-token-file name ort-library seeds shadow tie token-file")
)

// TestPathFlags demands of every flag that names files that it is known what becomes of a
// reference.
func TestPathFlags(t *testing.T) {
	t.Parallel()
	a := &app{kinds: kinds.All(), name: "onnxrl"}
	seen := map[string]bool{}
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			kind := f.Value.Type()
			if kind != "string" && kind != "stringSlice" && kind != "stringArray" || !ofFiles.MatchString(f.Usage) {
				return
			}
			seen[f.Name] = true
			n := 0
			for _, list := range [][]string{readFlags, writtenFlags, keptFlags, noFlags} {
				if slices.Contains(list, f.Name) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s --%s (%s) is in %d lists, expected one: does it take a reference?", c.CommandPath(), f.Name, f.Usage, n)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk(a.command())
	for _, list := range [][]string{readFlags, noFlags} {
		for _, name := range list {
			if !seen[name] {
				t.Errorf("no command has --%s, or it names no file", name)
			}
		}
	}
}

// TestPathKeys demands of every key of documents that names files that it is known what becomes of
// a reference.
func TestPathKeys(t *testing.T) {
	t.Parallel()
	var comments map[string]string
	text, err := os.ReadFile("key_comments.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &comments); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for typ, keys := range sorted.Func(describedTypes(), byTypeName) {
		for _, k := range keys {
			of := k.Field.Type
			if of.Kind() == reflect.Slice {
				of = of.Elem()
			}
			name := configs.TypeName(typ) + "." + k.Field.Name
			if of.Kind() != reflect.String || !ofFiles.MatchString(k.Name+" "+comments[name]) {
				continue
			}
			if seen[name] = true; readKeys[name] == "" {
				t.Errorf("%s (%s): does it take a reference? %s", name, k.Name, comments[name])
			}
		}
	}
	for name := range sorted.All(readKeys) {
		if !seen[name] {
			t.Errorf("there is no key %s that names files", name)
		}
	}
}

// readKeys are the keys that name files, and what they say of references: the test that gives them
// one, or why they take none.
var readKeys = map[string]string{
	"agents/ablate.Config.Base":                         "TestReferencesOfDocuments, as of agents/evolve",
	"agents/evolve.Config.Base":                         "TestReferencesOfDocuments",
	"agents/walkforward.Config.Base":                    "TestReferencesOfDocuments, as of agents/evolve",
	"agents/league.Fixed.Ref":                           "none: a version of a store has a digest of its own; models pull brings it",
	"agents/livetrade.Alerts.Webhook":                   "none: an address",
	"agents/livetrade.Alerts.WebhookFile":               "none: a secret",
	"agents/livetrade.Config.Policy":                    "TestReferencesOfLive",
	"agents/livetrade.Config.State":                     "none: it is written",
	"agents/livetrade/files.SinkConfig.Path":            "none: it is written",
	"agents/livetrade/files.SourceConfig.Path":          "TestReferencesOfLive",
	"agents/livetrade/websocket.SourceConfig.URL":       "none: an address",
	"agents/replay.Dataset.Path":                        "agents/offline.Open, as env.data.source.path",
	"agents/actors.Config.CA":                           "none: a certificate of this machine",
	"agents/actors.Config.Cert":                         "none: a certificate of this machine",
	"agents/actors.Config.Key":                          "none: a secret",
	"agents/actors.Config.TokenFile":                    "none: a secret",
	"agents/replay.Served.CA":                           "none: a certificate of this machine",
	"agents/replay.Served.Cert":                         "none: a certificate of this machine",
	"agents/replay.Served.Key":                          "none: a secret",
	"agents/replay.Served.TokenFile":                    "none: a secret",
	"agents/replay.Served.Writer":                       "none: a name",
	"agents/scml/curriculum.Demonstrations.Competitors": "TestReferencesOfSCML, as of seat.Worlds",
	"agents/scml/curriculum.Pool.Rivals":                "TestReferencesOfSCML, as of seat.Worlds",
	"agents/scml/curriculum.Pool.Reserve":               "TestReferencesOfSCML, as of seat.Worlds",
	"agents/scml/seat.GoalsConfig.Layers":               "TestReferencesOfSCML",
	"agents/scml/seat.ThreadsConfig.Layers":             "TestReferencesOfSCML",
	"agents/scml/seat.Worlds.Rivals":                    "TestReferencesOfSCML",
	"cmd/app.serveConfig.Repository":                    "TestReferencesOfServe",
	"cmd/app.serveConfig.Store":                         "none: a version of a store has a digest of its own; models pull brings it",
	"cmd/app.servedModel.Path":                          "TestReferencesOfServe",
	"cmd/app.servedModel.Ref":                           "none: a version of a store has a digest of its own; models pull brings it",
	"cmd/app.shadowSettings.Version":                    "none: a name",
	"envs/gymnasium.Config.Python":                      "none: a program of this machine",
	"envs/market/bars.PublishedSource.Path":             "envs/market/bars, as source.path",
	"envs/market/bars.Source.Path":                      "TestReferencesToAStorage",
	"envs/market/bars.Source.Join":                      "envs/market/bars, as source.path",
	"envs/market/bars.Source.Symbol":                    "none: a choice",
	"envs/market/bars.Source.Instruments":               "none: a name within source.path",
	"envs/market/bars.Source.Frequency":                 "none: a name within source.path",
	"envs/market/bars.Source.Exchange":                  "TestReferencesOfData",
	"envs/market/prepared.Config.Cache":                 "none: it is written",
	"envs/market/prepared.Config.Stored":                "TestReferencesOfData",
	"envs/market/universe.Config.Path":                  "TestReferencesOfData",
	"envs/market/universe.Config.Index":                 "none: a value",
	"envs/meta.ExpertFile.Path":                         "runtime/onnx.Open, as models/fit.Config.Model",
	"envs/versus.Opponent.Name":                         "none: a name",
	"envs/versus.Opponent.Path":                         "TestReferencesOfDocuments",
	"models/encoder.FileConfig.Path":                    "runtime/onnx.Load, as models/fit.Config.Model",
	"models.TieOptions.Tie":                             "none: patterns",
	"models/fit.Config.Model":                           "TestReferencesOfFit",
	"models/fit.Config.Train":                           "none: patterns",
	"models/fit.Config.Freeze":                          "none: patterns",
	"models/fit.Data.Path":                              "TestReferencesOfFit",
	"models/fit.Validation.Path":                        "TestReferencesOfFit",
	"models/lora.Config.Target":                         "none: patterns",
	"models/loss.Term.Path":                             "runtime/onnx.Load, as models/fit.Config.Model",
}

// stored is a storage of a directory; its cache is the test's.
func stored(t *testing.T) (push func(path string) string) {
	t.Helper()
	t.Setenv(objects.CacheVariable, filepath.Join(t.TempDir(), "cache"))
	at := "file://" + filepath.Join(t.TempDir(), "storage")
	return func(path string) string {
		t.Helper()
		r := apptest.Decoded[treeDoc](t, apptest.Succeed(t, "models", "push", path, at, "--json", "-q")).Reference
		if !isDir(path) {
			r += "/" + filepath.Base(path)
		}
		return r
	}
}

// holds demands of a file that it has texts, and nothing of the cache.
func holds(t *testing.T, path string, texts ...string) {
	t.Helper()
	text := apptest.ReadText(t, path)
	apptest.Says(t, text, texts...)
	if strings.Contains(text, os.Getenv(objects.CacheVariable)) {
		t.Errorf("%s names the cache:\n%s", path, text)
	}
}

// TestReferencesOfFit trains a model by reference on data by reference, and gets what paths give.
func TestReferencesOfFit(t *testing.T) {
	push := stored(t)
	model, data, other := apptest.MLPModel(t), apptest.CSVFile(t, apptest.Table(200)), apptest.CSVFile(t, apptest.Table(60))
	dir := t.TempDir()
	fit := func(name, model, data, other string) string {
		t.Helper()
		out := filepath.Join(dir, name+".onnx")
		apptest.Succeed(t, apptest.FitArgs(model, data, "--set", "data.validation.path="+other, "--dir", filepath.Join(dir, name), "--out", out, "--engine", portable.Name)...)
		return out
	}
	m, d, o := push(model), push(data), push(other)
	want, got := apptest.Weights(t, fit("paths", model, data, other)), apptest.Weights(t, fit("references", m, d, o))
	if len(want) == 0 || !reflect.DeepEqual(got, want) {
		t.Error("the weights differ from those of paths")
	}
	holds(t, filepath.Join(dir, "references", "config.yaml"), m, d, o)
	// A pattern of a tree.
	fit("pattern", m, strings.TrimSuffix(d, filepath.Base(data))+"*.csv", o)
	apptest.Refuse(t, apptest.FitArgs(m, d, "--out", m), "--out "+m+": what a reference names is only read; expected a path")
}

// TestReferencesOfRuns begins with a run, a checkpoint and a model by reference, and goes on from a
// checkpoint; the runs themselves stay as they are.
func TestReferencesOfRuns(t *testing.T) {
	push := stored(t)
	dir := t.TempDir()
	train := func(name string, more ...string) string {
		t.Helper()
		out := filepath.Join(dir, name)
		apptest.Succeed(t, append([]string{"train", "cartpole_ppo", "-q", "--engine", portable.Name, "--out", out, "--set", "train.total_env_steps=128", "--set", "train.num_envs=2", "--set", "agent.n_steps=32", "--set", "agent.batch_size=32", "--set", "eval.episodes=1", "--set", "publish.observations=64"}, more...)...)
		return out
	}
	first := train("first")
	run := push(first)
	checkpoints, err := filepath.Glob(filepath.Join(first, "checkpoints", "ckpt-*"))
	if err != nil || len(checkpoints) == 0 {
		t.Fatal(checkpoints, err)
	}
	last := run + "/checkpoints/" + filepath.Base(checkpoints[len(checkpoints)-1])
	for name, ref := range sorted.All(map[string]string{"run": run, "checkpoint": last, "model": run + "/best.onnx"}) {
		holds(t, filepath.Join(train(name, "--init", ref), "lineage.json"), `"ref": "`+ref+`"`, `"source": "`+run)
	}
	onward := filepath.Join(dir, "onward")
	apptest.Succeed(t, "train", "--resume", last, "--out", onward, "-q", "--engine", portable.Name, "--set", "train.total_env_steps=192")
	holds(t, filepath.Join(onward, "lineage.json"), `"continues": "`+last+`"`)
	apptest.Refuse(t, []string{"train", "--resume", run}, "--resume "+run+": what a reference names is only read")
	if r := apptest.Run(t, "train", "--resume", last, "--set", "train.total_env_steps=192"); r.Code != 1 || !strings.Contains(r.Err, "run directory "+run+": what a reference names is only read") {
		t.Errorf("exit status %d, %s", r.Code, r.Err)
	}
	type rows []struct {
		Mean float64 `json:"mean_reward"`
	}
	evaluate := func(args ...string) rows {
		t.Helper()
		return apptest.Decoded[struct{ Rows rows }](t, apptest.Succeed(t, append([]string{"evaluate", "--engine", portable.Name, "-q", "--json"}, args...)...)).Rows
	}
	config := push(filepath.Join(first, "config.yaml"))
	if want, got := evaluate(first, "--no-report"), evaluate(run+"/best.onnx", "--config", config); len(want) != 1 || !reflect.DeepEqual(got, want) {
		t.Errorf("evaluated %v, want %v", got, want)
	}
}

// TestReferencesOfDocuments: the base of a search, and a member of a league.
func TestReferencesOfDocuments(t *testing.T) {
	push := stored(t)
	dir := t.TempDir()
	base := push(apptest.Write(t, "small.yaml", apptest.ReadText(t, filepath.Join("..", "..", "configs", "experiments", "cartpole_ppo.yaml"))))
	search := apptest.Write(t, "search.yaml", fmt.Sprintf(`
base: %q
population: 2
interval_steps: 64
generations: 1
strategy: {kind: pbt}
set: {train.num_envs: 2, agent.n_steps: 32, agent.batch_size: 32, eval.episodes: 1, publish.observations: 64}
space: {agent.learning_rate: {kind: loguniform, low: 1.0e-5, high: 1.0e-2}}
`, base))
	apptest.Succeed(t, "evolve", search, "-q", "--engine", portable.Name, "--out", filepath.Join(dir, "search"))
	league := func(name string, more ...string) string {
		t.Helper()
		out := filepath.Join(dir, name)
		apptest.Succeed(t, append([]string{"league", "rps_league", "-q", "--engine", portable.Name, "--out", out, "--set", "generations=1", "--set", "games=1", "--set", "interval_steps=256", "--set", "experiment.train.num_envs=16", "--set", "experiment.agent.batch_size=64", "--set", "experiment.eval.episodes=2", "--set", "experiment.publish.observations=64"}, more...)...)
		return out
	}
	player := push(filepath.Join(league("one"), "learner", "generation-0000", "member-000", "policy.onnx"))
	two := league("two", "--set", fmt.Sprintf("members=[{player: {kind: random}}, {name: past, path: %q}]", player))
	texts, err := filepath.Glob(filepath.Join(two, "*.yaml"))
	if err != nil || len(texts) != 1 {
		t.Fatal(texts, err)
	}
	holds(t, texts[0], player)
	apptest.Says(t, apptest.Succeed(t, "league", "play", two, "past", player, "--games", "2", "--engine", portable.Name, "-q"), "past")
}

// TestReferencesOfSCML: agents of directories play, and are what others are trained beside.
func TestReferencesOfSCML(t *testing.T) {
	push := stored(t)
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	for _, err := range []error{os.MkdirAll(agent, 0o755), os.WriteFile(filepath.Join(agent, "agent.json"), []byte(`{"layout": 1, "goal": 4, "horizon": 40}`), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	ref := push(agent)
	apptest.Plays(t, ref, ref+":no-manager")
	worlds := []string{filepath.Join(dir, "path.json"), filepath.Join(dir, "reference.json")}
	for i, a := range []string{agent, ref} {
		apptest.Succeed(t, "scml", "run", "--levels", "3", "--days", "5", "--agents", a+",penguin,as0", "-o", worlds[i], "-q")
	}
	if a, b := apptest.ReadText(t, worlds[0]), apptest.ReadText(t, worlds[1]); strings.ReplaceAll(a, agent, ref) != b {
		t.Error("another world than with the path")
	}
	out := filepath.Join(dir, "run")
	apptest.Succeed(t, "train", "scml_threads", "-q", "--engine", portable.Name, "--out", out, "--set", "env.layers="+ref, "--set", "env.rivals=[penguin,"+ref+":no-manager]",
		"--set", "agent.n_steps=16", "--set", "agent.batch_size=256", "--set", "agent.n_epochs=1", "--set", "env.days=[5,6]", "--set", "train.validation.every_steps=0", "--set", "eval.episodes=1", "--set", "publish.observations=64", "--set", "train.num_envs=32", "--set", "train.total_env_steps=512")
	holds(t, filepath.Join(out, "config.yaml"), `layers: "`+ref+`"`, ref+":no-manager")
	none := strings.Replace(ref, "sha256:", "sha256:0", 1)
	apptest.Refuse(t, []string{"scml", "run", "--agents", none + ",penguin"}, "expected sha256: and 64")
}

// TestReferencesOfData: members of a market, an exchange's calendar and a file of columns.
func TestReferencesOfData(t *testing.T) {
	push := stored(t)
	dir := t.TempDir()
	members := apptest.Write(t, "members.csv", "symbol,start_date,end_date\nA,2020-01-01,2020-04-20\nA,2020-05-10,\nB,2020-01-01,\n")
	var days strings.Builder
	days.WriteString("date\n")
	for day := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2021; day = day.AddDate(0, 0, 1) {
		fmt.Fprintln(&days, day.Format(time.DateOnly))
	}
	calendar := apptest.Write(t, "calendar.csv", days.String())
	prepare := func(members, calendar, out string) {
		t.Helper()
		config := marketYAML(t, "  window: 8", fmt.Sprintf("  window: 8\n  universe: {path: %q}", members), "source: {", fmt.Sprintf("source: {exchange: %q, ", calendar))
		apptest.Succeed(t, "data", "prepare", config, "--columns", "--out", out, "-q")
	}
	paths, references := filepath.Join(dir, "paths.columns"), filepath.Join(dir, "references.columns")
	prepare(members, calendar, paths)
	prepare(push(members), push(calendar), references)
	inspect := func(path string) string {
		t.Helper()
		// The digest is of where the data came from, too.
		return regexp.MustCompile(`data +[0-9a-f]{12}`).ReplaceAllString(apptest.Succeed(t, "data", "inspect", path, "-q"), "")
	}
	want := inspect(paths)
	apptest.Says(t, want, "A B")
	stored := push(references)
	for _, path := range []string{references, stored} {
		if got := inspect(path); got != want {
			t.Errorf("%s:\n%s\nwant\n%s", path, got, want)
		}
	}
	experiment := func(path string) string {
		return apptest.Write(t, "e.yaml", fmt.Sprintf(`agent: {kind: a2c, encoder: {kind: timecnn, d_model: 4, n_layers: 1}, cross_asset: {n_heads: 2}, n_steps: 10}
train: {num_envs: 2, total_env_steps: 200, log_interval_steps: 40, threads: 1}
publish: {observations: 16, allow_ties: true}
env: {kind: trading, window: 8, slots: 2, data: {stored: %q}}
`, path))
	}
	var metrics [2][]map[string]string
	for i, path := range []string{paths, stored} {
		run := filepath.Join(dir, fmt.Sprint("run", i))
		apptest.TrainRuns(t, experiment(path), "--out", run)
		metrics[i] = apptest.TrainMetrics(t, run)
		holds(t, filepath.Join(run, "config.yaml"), path)
	}
	if len(metrics[0]) < 5 || !reflect.DeepEqual(metrics[0], metrics[1]) {
		t.Errorf("trained\n%v\n%v", metrics[0], metrics[1])
	}
	// Relative paths of all of these mean the same from any folder.
	t.Chdir(filepath.Dir(references))
	run := filepath.Join(dir, "relative")
	apptest.TrainRuns(t, experiment(filepath.Base(references)), "--out", run)
	holds(t, filepath.Join(run, "config.yaml"), references)
}

// TestReferencesOfServe serves a file by flag and by document, and a repository.
func TestReferencesOfServe(t *testing.T) {
	push := stored(t)
	file := push(scaledFile(t, 2))
	repository := filepath.Join(t.TempDir(), "repository")
	version := filepath.Join(repository, "kept", "1")
	if err := os.MkdirAll(version, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(scaledFile(t, 3), filepath.Join(version, "model.onnx")); err != nil {
		t.Fatal(err)
	}
	config := apptest.Write(t, "serve.yaml", fmt.Sprintf("models:\n  - {name: written, path: %q}\n", file))
	inDocument := apptest.Write(t, "repository.yaml", fmt.Sprintf("repository: %q\n", push(repository)))
	for _, c := range []struct {
		args []string
		want map[string]float32
	}{
		{[]string{"--model", "flag=" + file}, map[string]float32{"flag": 2}},
		{[]string{config, "--repository", push(repository)}, map[string]float32{"written": 2, "kept": 3}},
		{[]string{inDocument}, map[string]float32{"kept": 3}},
	} {
		r := apptest.StartServe(t, append(c.args, "--engine", portable.Name)...)
		for name, factor := range sorted.All(c.want) {
			if a := r.Want(200, "/v2/models/"+name+"/infer", scaledRequest); !strings.Contains(a, scaledAnswer(factor)) {
				t.Errorf("%s answers %s", name, a)
			}
		}
	}
}

// TestReferencesOfLive: the policy of a service, and the messages that it is given.
func TestReferencesOfLive(t *testing.T) {
	push := stored(t)
	run := filepath.Join(t.TempDir(), "run")
	if err := os.MkdirAll(run, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run, "config.yaml"), []byte("seed: 1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	messages, policy := push(apptest.Write(t, "bars.jsonl", "{}\n")), push(run)
	// Work of other tests in this process has ended.
	objects.SetLocal(objects.LocalOptions{Context: t.Context()})
	defer objects.SetLocal(objects.LocalOptions{})
	a := &app{kinds: kinds.All()}
	a.kinds.Document = readsDocuments(nil, nil)
	c, err := a.liveDocument(apptest.Write(t, "live.yaml", fmt.Sprintf("name: demo\npolicy: %q\nstate: /nowhere\nsource: {kind: file, path: %q}\nsink: {kind: file, path: /nowhere}\n", policy, messages)), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !isDir(c.Policy) || !isFile(filepath.Join(c.Policy, "config.yaml")) {
		t.Errorf("the policy is %s", c.Policy)
	}
	source := files.NewSource(files.SourceConfig{Path: messages})
	if _, err := source.Start(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPushVerifies damages objects of a directory and of a version at rest. The error of a reader
// says what mends it, and that does.
func TestPushVerifies(t *testing.T) {
	t.Setenv(objects.CacheVariable, filepath.Join(t.TempDir(), "cache"))
	dir := t.TempDir()
	root, store, data := filepath.Join(dir, "storage"), filepath.Join(dir, "store"), filepath.Join(dir, "data")
	at := "file://" + root
	if err := os.MkdirAll(data, 0o755); err != nil {
		t.Fatal(err)
	}
	content := []byte("date,close\n2020-01-01,1\n")
	if err := os.WriteFile(filepath.Join(data, "bars.csv"), content, 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Succeed(t, "models", "publish", digitsModel, "--name", "digits/cnn", "--store", store)
	model, err := os.ReadFile(digitsModel)
	if err != nil {
		t.Fatal(err)
	}
	for what, c := range sorted.All(map[string]struct {
		content    []byte
		push, pull []string
	}{
		"a directory": {content, []string{data, at + "#data"}, []string{at + "#data", "--out"}},
		"a version":   {model, []string{"digits/cnn", at + "#v1", "--store", store}, []string{at + "#v1", "--store"}},
	}) {
		push := func(more ...string) string {
			t.Helper()
			return apptest.Succeed(t, append(append([]string{"models", "push"}, c.push...), more...)...)
		}
		pulls := 0
		pull := func() apptest.Result {
			t.Helper()
			pulls++
			return apptest.Run(t, append(append([]string{"models", "pull"}, c.pull...), filepath.Join(dir, fmt.Sprint(what, pulls)))...)
		}
		push()
		object := filepath.Join(root, "blobs", "sha256", strings.TrimPrefix(string(objects.DigestOf(c.content)), "sha256:"))
		bad := slices.Clone(c.content)
		bad[len(bad)/2] ^= 1
		if err := os.WriteFile(object, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		push()
		if r := pull(); r.Code != 1 || !strings.Contains(r.Err, "the object blobs/sha256/"+filepath.Base(object)+" in "+at+" is damaged") || !strings.Contains(r.Err, "models push --verify") {
			t.Errorf("%s: exit status %d, %s", what, r.Code, r.Err)
		}
		if text := push("--verify"); !strings.Contains(text, "damaged there") {
			t.Errorf("%s: %s", what, text)
		}
		if r := pull(); r.Code != 0 {
			t.Errorf("%s: %s", what, r.Err)
		}
		if doc := apptest.Decoded[struct{ Repaired *int64 }](t, push("--verify", "--json", "-q")); doc.Repaired == nil || *doc.Repaired != 0 {
			t.Errorf("%s: %+v", what, doc)
		}
	}
	apptest.Refuse(t, []string{"models", "push", "digits/cnn", "registry.example.com/x:v1", "--verify", "--store", store}, "--verify is for storages")
}
