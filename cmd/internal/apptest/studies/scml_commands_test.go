package studies

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// TestSCMLWorld plays a world, checks it, looks at it, plays it again, and finds what was changed.
func TestSCMLWorld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, again, picture := filepath.Join(dir, "world.json"), filepath.Join(dir, "again.json"), filepath.Join(dir, "world.svg")
	flags := []string{"--levels", "3", "--days", "12", "--agents", "penguin,as0,greedy,random,syncrandom,ultra,hash,hashsync", "--seed", "4"}
	s := apptest.Decode[ran](t, apptest.Succeed(t, append([]string{"scml", "run", "-o", path, "--picture", picture, "--json"}, flags...)...))
	if s.Levels != 3 || s.Days != 12 || s.Played != 12 || s.Contracts < 50 || len(s.Agents) < 12 || len(s.Products) != 4 || len(s.Flows) < 20 {
		t.Errorf("%+v", s)
	}
	if !strings.Contains(apptest.ReadText(t, picture), "<svg") {
		t.Error("there is no picture")
	}
	if got := apptest.Decode[record.Summary](t, apptest.Succeed(t, "scml", "inspect", path, "--json")); got.Contracts != s.Contracts || got.Agents[0] != s.Agents[0] {
		t.Errorf("inspected: %+v", got)
	}
	apptest.Says(t, apptest.Succeed(t, "scml", "inspect", path), "00Pe@0", "units of product 1", "units of product 2")
	apptest.Succeed(t, "scml", "run", path, "-o", again, "--seed", "4")
	if apptest.ReadText(t, path) != apptest.ReadText(t, again) {
		t.Error("the world that was played again is another one")
	}
	r := apptest.Decode[replayed](t, apptest.Succeed(t, "scml", "replay", path, again, "--json"))
	if r.Failed != 0 || len(r.Worlds) != 2 || r.Worlds[0].Days != 12 || r.Worlds[0].Contracts != s.Contracts || r.Worlds[0].Numbers < 1000 || r.Worlds[0].Difference != nil {
		t.Errorf("%+v", r)
	}

	var file record.World
	apptest.ReadJSON(t, path, &file)
	id := s.Agents[5].ID
	e := file.Played[7].End.Agents[id]
	e.Balance += 1e-6
	file.Played[7].End.Agents[id] = e
	text, err := json.Marshal(&file)
	if err != nil {
		t.Fatal(err)
	}
	changed := apptest.Write(t, "changed.json", string(text))
	got := apptest.Run(t, "scml", "replay", path, changed, "--json")
	if r := apptest.Decode[replayed](t, got.Out); got.Code != 1 || r.Failed != 1 || r.Worlds[1].Difference == nil || r.Worlds[1].Difference.Day != 7 || r.Worlds[1].Difference.Of != id || r.Worlds[1].Difference.Number != "balance" {
		t.Errorf("exit %d: %+v", got.Code, r)
	}
	apptest.Says(t, apptest.Run(t, "scml", "replay", changed).Out, "day 7, "+id+": balance is")
}

// TestSCMLTournament stops a tournament, goes on, and compares with one that was not stopped.
func TestSCMLTournament(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, part := filepath.Join(dir, "whole.json"), filepath.Join(dir, "part.json")
	args := []string{"scml", "tournament", "penguin", "greedy", "random", "--configs", "3", "--processes", "2,3", "--days", "10,15", "--seed", "5"}
	with := func(more ...string) []string { return slices.Concat(args, more) }
	r := apptest.Decode[league.Report](t, apptest.Succeed(t, with("-o", whole, "--workers", "1", "--json")...))
	if r.Played != 9 || r.Worlds != 9 || len(r.Rows) != 27 || len(r.Standings) != 3 || r.Standings[2].Name != "random" || len(r.Differences) == 0 || r.Standings[2].Actions < r.Standings[2].Unsafe || r.Standings[2].Unsafe == 0 {
		t.Errorf("%+v", r)
	}
	half := r
	half.Played, half.Rows = 4, r.Rows[:12]
	text, err := json.Marshal(&half)
	if err != nil {
		t.Fatal(err)
	}
	part = apptest.Write(t, filepath.Base(part), string(text))
	apptest.Succeed(t, with("-o", part, "--json")...)
	if apptest.ReadText(t, whole) != apptest.ReadText(t, part) {
		t.Error("the tournament that went on has come to something else")
	}
	apptest.Says(t, apptest.Succeed(t, with("-o", whole)...), "9 of 9 worlds", "penguin", "1 of 2", "2 of 3", "95 % from", "penguin against")
	apptest.Says(t, apptest.Succeed(t, with("-o", whole, "--compare", "greedy")...), "greedy against")
	apptest.Refuse(t, with("-o", whole, "--seed", "2"), "whole.json is of another tournament")
	half.Rows = r.Rows[3:15]
	if text, err = json.Marshal(&half); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, with("-o", apptest.Write(t, "holes.json", string(text))), "rows[0] is of world 1, expected 0")
}

// TestSCMLBad has command lines and files that are refused.
func TestSCMLBad(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "world.json")
	apptest.Succeed(t, "scml", "run", "--days", "3", "-o", path)
	good := apptest.ReadText(t, path)
	bad := func(from, to string) string {
		t.Helper()
		if !strings.Contains(good, from) {
			t.Fatalf("the world has no %s", from)
		}
		return apptest.Write(t, "bad.json", strings.Replace(good, from, to, 1))
	}
	cases := []struct {
		args []string
		says string
	}{
		{[]string{"run", "--agents", "nobody"}, `no agent is called "nobody"; the nearest of `},
		{[]string{"run", "--levels", "1"}, "--levels 1"},
		{[]string{"run", "--days", "0"}, "--days 0"},
		{[]string{"run", path, "--days", "9"}, "a file was named"},
		{[]string{"run", "--picture", "x.gif"}, `the ending is ".gif"`},
		{[]string{"run", "--rule", "rounds"}, "expected key=value"},
		{[]string{"run", "--rule", "rounds=many"}, "is no number, true or false"},
		{[]string{"run", "--rule", "turns=3"}, "there is no rule turns; there are horizon"},
		{[]string{"run", "--rule", "rounds=0"}, "rules.rounds: must be between 1 and 10000, is 0"},
		{[]string{"run", bad(`"initial_balance":`, `"initial_balance":-`)}, "initial_balance: must be positive"},
		{[]string{"run", bad(`"n_processes":2`, `"n_processes":3`)}, "n_processes is 3, but there are 3 catalog_prices"},
		{[]string{"run", bad(`"exogenous":[{"day":0,"product":0`, `"exogenous":[{"day":0,"product":1`)}, "exogenous[0]: product 1"},
		{[]string{"run", bad(`"seed":1`, `"sead":1`)}, `a world has no key "sead"`},
		{[]string{"inspect", bad(`"n_steps":3,`, `"n_steps":3`)}, "bad.json"},
		{[]string{"tournament", "penguin", "penguin"}, "competes twice"},
		{[]string{"tournament", "penguin", "as0", "--days", "2"}, "expected two numbers"},
		{[]string{"tournament", "penguin", "as0", "--days", "9,3"}, "days[1]"},
		{[]string{"tournament", "penguin", "as0", "--processes", "3,1"}, "processes[1]"},
		{[]string{"tournament", "penguin", "as0", "--compare", "greedy"}, "--compare greedy: it is none of the competitors"},
		{[]string{"tournament", "penguin", "as0", "--per-world", "3"}, "per_world"},
		{[]string{"run", "--rule", "horizon=1.5"}, "is a number 1.5, expected a whole number"},
		{[]string{"run", "--limit", "-1s"}, "--limit -1s: expected 0 or more"},
		{[]string{"tournament", "penguin", "as0", "--limit", "-1s"}, "limit: -1s, expected 0 or more"},
		{[]string{"tournament", "penguin", "as0", "--configs", "1000000000", "--runs", "1000000000"}, "expected 10000000 at most"},
		{[]string{"tournament", "penguin", "as0", "--configs", "1", "-o", filepath.Join(path, "x.json")}, "x.json"},
		{[]string{"inspect", bad(`"seller":"0`, `"seller":"x0`)}, `product 2 of "x0`},
		{[]string{"inspect", bad(`"days":[{"day":0`, `"days":[{"day":1`)}, "days[0].day: is 1, expected 0"},
	}
	for _, c := range cases {
		apptest.Refuse(t, append([]string{"scml"}, c.args...), c.says)
	}
	if len(cases) != 27 {
		t.Errorf("%d cases", len(cases))
	}
	// A file that cannot be read is a line of the table, and the others are checked.
	r := apptest.Run(t, "scml", "replay", "nothing.json", path, t.TempDir())
	apptest.Says(t, r.Out, "nothing.json: no such file", "there is no info.json")
	if r.Code != 1 {
		t.Errorf("exit %d", r.Code)
	}
	none := apptest.Run(t, "scml", "replay", apptest.Write(t, "none.json", strings.Replace(good, `"days":`, `"days":[],"final_scores":{},"generation_info":`, 1)))
	apptest.Says(t, none.Out, "no days were recorded")
	if none.Code != 1 {
		t.Errorf("exit %d", none.Code)
	}
}

// layer exports the policy of a run as a layer of an agent's directory, and describes the agent.
func layer(t *testing.T, run, dir, file, description string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	apptest.Succeed(t, "export", run, "--out", filepath.Join(dir, file))
	if err := os.WriteFile(filepath.Join(dir, "agent.json"), []byte(description), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestSCMLLayers trains an executor, a coordinator above it, a manager above both, and one alone,
// each for a moment, and lets them play.
func TestSCMLLayers(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel()
	dir := t.TempDir()
	agent := filepath.Join(dir, "agent")
	short := []string{"--set", "agent.n_steps=16", "--set", "agent.batch_size=256", "--set", "agent.n_epochs=1", "--set", "env.days=[5,6]", "--set", "train.validation.every_steps=0", "--set", "eval.episodes=1", "--set", "publish.observations=8"}
	train := func(name, out string, more ...string) {
		t.Helper()
		apptest.Succeed(t, slices.Concat([]string{"train", name, "--engine", portable.Name, "--out", filepath.Join(dir, out)}, short, more)...)
	}
	threads := []string{"--set", "train.num_envs=32", "--set", "train.total_env_steps=1024"}
	train("scml_threads", "executor", threads...)
	layer(t, filepath.Join(dir, "executor"), agent, "executor.onnx", `{"layout": 1, "goal": 4, "horizon": 40, "executor": "executor.onnx"}`)
	apptest.Plays(t, agent, agent+":no-executor", "baseline")

	apptest.Refuse(t, []string{"train", "scml_weights", "--out", filepath.Join(dir, "none")}, "needs the directory of an agent with an executor")
	train("scml_weights", "coordinator", append(threads, "--set", "env.layers="+agent, "--set", "env.rivals=[penguin,"+agent+"]")...)
	layer(t, filepath.Join(dir, "coordinator"), agent, "coordinator.onnx", `{"layout": 1, "goal": 4, "horizon": 40, "executor": "executor.onnx", "coordinator": "coordinator.onnx"}`)
	apptest.Plays(t, agent, agent+":no-coordinator")

	// Every observation of the parity check of a publication is a day of negotiations by
	// networks: the manager above all layers is trained and not published, and the one of the
	// agent is alone.
	goals := []string{"--set", "train.num_envs=4", "--set", "train.total_env_steps=64", "--set", "agent.hidden=[16]", "--set", "agent.batch_size=64"}
	train("scml_goals", "above", append(slices.Clone(goals), "--set", "env.layers="+agent, "--set", "env.rivals=["+agent+":no-coordinator]", "--no-publish")...)
	train("scml_goals", "manager", goals...)
	layer(t, filepath.Join(dir, "manager"), agent, "manager.onnx", `{"layout": 1, "goal": 4, "horizon": 40, "manager": "manager.onnx", "executor": "executor.onnx", "coordinator": "coordinator.onnx"}`)
	apptest.Plays(t, agent, agent+":no-manager")
	worth := apptest.Decode[ablation](t, apptest.Succeed(t, "ablate", agent, "--configs", "2", "--out", filepath.Join(dir, "ablation"), "--json"))
	if len(worth.Layers) != 4 || len(worth.Standings) != 5 || worth.Standings[0].Worlds != 2*4 {
		t.Errorf("%+v", worth)
	}
	for _, l := range worth.Layers {
		if l.Configs != 2 || l.Difference.Difference != worth.Standings[0].Score-l.Without {
			t.Errorf("%+v", l)
		}
	}
	apptest.Refuse(t, []string{"ablate", agent, "--full"}, "this is the directory of an agent")
	apptest.Refuse(t, []string{"ablate", agent, "--configs", "0"}, "configs")

	// A layer may lie in an artefact store.
	stored := filepath.Join(dir, "stored")
	describe := func(ref string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(stored, "agent.json"), []byte(`{"layout": 1, "goal": 4, "horizon": 40, "manager": "`+ref+`"}`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(stored, 0o755); err != nil {
		t.Fatal(err)
	}
	describe("../manager/artifacts//scml-goals:best")
	apptest.Plays(t, stored, agent+":no-executor")
	describe("../manager/artifacts//scml-goals:worst")
	apptest.Refuse(t, []string{"scml", "tournament", stored, "penguin"}, "the manager", "worst")
	describe("../nowhere//scml-goals:best")
	apptest.Refuse(t, []string{"scml", "tournament", stored, "penguin"}, "the manager", "nowhere")

	train("scml_threads", "answers", append(threads, "--set", "env.direct=true", "--set", "env.layers="+agent)...)
	direct := filepath.Join(dir, "direct")
	layer(t, filepath.Join(dir, "answers"), direct, "executor.onnx", `{"layout": 1, "goal": 4, "horizon": 40, "executor": "executor.onnx", "direct": true}`)
	apptest.Plays(t, direct, "baseline")
	apptest.Refuse(t, []string{"train", "scml_weights", "--out", filepath.Join(dir, "none"), "--set", "env.layers=" + direct}, "env.layers: action: weights needs")
	apptest.Refuse(t, []string{"train", "scml_threads", "--out", filepath.Join(dir, "none"), "--set", "env.rivals=[" + filepath.Join(dir, "nothing") + "]"}, "env.rivals[0]")
}

// TestSCMLLogs writes the folders of a world and of a tournament, checks them, makes samples of
// them, and learns from these.
func TestSCMLLogs(t *testing.T) {
	longtest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	world, file := filepath.Join(dir, "world"), filepath.Join(dir, "world.json")
	s := apptest.Decode[ran](t, apptest.Succeed(t, "scml", "run", "--levels", "3", "--days", "10", "--logs", world, "-o", file, "--json"))
	r := apptest.Decode[replayed](t, apptest.Succeed(t, "scml", "replay", world, file, "--json"))
	if r.Failed != 0 || r.Worlds[0].Worst != 0 || r.Worlds[0].Contracts != s.Contracts || r.Worlds[1].Contracts != s.Contracts || r.Worlds[0].Numbers < 1000 {
		t.Errorf("%+v", r)
	}
	apptest.Says(t, apptest.Succeed(t, "scml", "inspect", world), "negotiations", "units of product 2")
	apptest.Refuse(t, []string{"scml", "run", "--logs", world}, "exists; choose another folder")

	folder, out := filepath.Join(dir, "tournament_history", "1_std"), filepath.Join(dir, "samples")
	args := []string{"scml", "tournament", "penguin", "greedy", "--configs", "2", "--processes", "2,3", "--days", "6,8", "--logs", folder}
	first := apptest.Decode[league.Report](t, apptest.Succeed(t, append(args, "--json")...))
	again := apptest.Decode[league.Report](t, apptest.Succeed(t, append(args, "--json")...))
	if first.Played != 4 || again.Played != 4 || !slices.Equal(first.Rows, again.Rows) {
		t.Errorf("%+v", again)
	}
	apptest.Refuse(t, append(args, "--seed", "9"), "is of another tournament")
	apptest.Refuse(t, append(args, "-o", "x.json"), "none of the others can be")
	if r := apptest.Decode[record.Tournament](t, apptest.Succeed(t, "scml", "inspect", folder, "--json")); r.Worlds != 4 || len(r.Types) != 2 || r.Types[0].Score != first.Standings[0].Score {
		t.Errorf("%+v", r)
	}
	apptest.Says(t, apptest.Succeed(t, "scml", "inspect", folder), "PenguinAgent", "GreedyStdAgent")
	made := apptest.Decode[sampled](t, apptest.Succeed(t, "scml", "samples", folder, world, "-o", out, "--json"))
	if len(made.Worlds) != 5 || made.Days < 5*6*8 || made.Decisions < 1000 || made.Layout != 1 {
		t.Errorf("%+v", made)
	}
	apptest.Says(t, apptest.Succeed(t, "dataset", "inspect", filepath.Join(out, "macro")), "no problems")
	apptest.Says(t, apptest.Succeed(t, "dataset", "inspect", filepath.Join(out, "micro")), "no problems")
	for _, algo := range []string{"bc", "cql"} {
		config := filepath.Join(dir, algo+".yaml")
		apptest.Succeed(t, "config", "new", "train", "--env", "scml_goals", "--algo", algo, "-o", config)
		apptest.Succeed(t, "train", config, "--out", filepath.Join(dir, algo), "--no-publish", "--set", "dataset.path="+filepath.Join(out, "macro"), "--set", "train.total_env_steps=20", "--set", "agent.batch_size=32", "--set", "agent.hidden=[16]", "--set", "env.days=[5,6]", "--set", "eval.episodes=1")
	}
	residual := filepath.Join(dir, "residual.yaml")
	apptest.Succeed(t, "config", "new", "train", "--env", "scml_threads", "--algo", "bc", "-o", residual)
	apptest.Succeed(t, "train", residual, "--out", filepath.Join(dir, "residual"), "--set", "dataset.path="+filepath.Join(out, "residual"), "--set", "train.total_env_steps=20", "--set", "train.validation.every_steps=0",
		"--set", "agent.batch_size=32", "--set", "agent.hidden=[16]", "--set", "agent.encoder={kind: gru, hidden: 8}", "--set", "agent.bounds=limits", "--set", "agent.ensemble=2", "--set", "agent.uncertainty_penalty=1", "--set", "publish.observations=64", "--set", "env.days=[5,6]", "--set", "eval.episodes=1")
	agent := filepath.Join(dir, "copied")
	layer(t, filepath.Join(dir, "residual"), agent, "executor.onnx", `{"layout": 1, "goal": 4, "horizon": 40, "executor": "executor.onnx"}`)
	apptest.Plays(t, agent, agent+":no-executor")
	apptest.Refuse(t, []string{"scml", "samples", folder, "-o", out}, "exists; choose another folder")
	apptest.Says(t, apptest.Succeed(t, "scml", "inspect", out), "5 worlds", "micro:")
	manifest := filepath.Join(out, "samples.json")
	if err := os.WriteFile(manifest, []byte(strings.Replace(apptest.ReadText(t, manifest), `"observation_layout": 1`, `"observation_layout": 7`, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	apptest.Refuse(t, []string{"scml", "inspect", out}, "observation_layout is 7, and this program reads 1")
	apptest.Refuse(t, []string{"scml", "samples", folder, "-o", filepath.Join(dir, "x"), "--goal", "5"}, "goals have 4 or 16 numbers, not 5")
	apptest.Refuse(t, []string{"scml", "samples", t.TempDir(), "-o", filepath.Join(dir, "x")}, "there is no folder of a world")
}

// TestExportSCML writes the Python package of an agent, and the calls of the native one.
func TestExportSCML(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent, out, calls := filepath.Join(dir, "agent"), filepath.Join(dir, "lita"), filepath.Join(dir, "calls.jsonl")
	describe := func(text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(agent, 0o755), os.WriteFile(filepath.Join(agent, "agent.json"), []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	describe(`{"layout": 1, "goal": 4, "horizon": 40}`)
	r := apptest.Decode[exported](t, apptest.Succeed(t, "export", agent, "--format", "scml", "--out", out, "--json"))
	if r.Name != "lita" || len(r.Files) != 12 || len(r.Layers) != 0 || r.Compared != 0 {
		t.Errorf("%+v", r)
	}
	for _, name := range r.Files {
		if info, err := os.Stat(name); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	apptest.Says(t, apptest.ReadText(t, filepath.Join(out, "README.md")), "from lita import LitaAgentHRL", "python -m lita.replay", "It has no networks", `"pandas<3"`)
	apptest.Says(t, apptest.Succeed(t, "export", agent, "--format", "scml", "--out", filepath.Join(dir, "again")), "the Python package again, 12 files", "a baseline without networks")

	apptest.Succeed(t, "scml", "run", "--levels", "3", "--days", "5", "--agents", agent+",penguin,as0", "--calls", calls)
	counts := map[string]int{}
	for line := range strings.Lines(apptest.ReadText(t, calls)) {
		var c struct{ Call string }
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		counts[c.Call]++
	}
	if counts["starts"] == 0 || counts["day_begins"] != 5*counts["starts"] || counts["first_proposals"] < counts["starts"] || counts["counter_all"] == 0 || counts["agreed"] == 0 || len(counts) > 6 {
		t.Errorf("%v", counts)
	}

	cases := []struct {
		args []string
		says string
	}{
		{[]string{"export", agent, "--format", "scml", "--out", out}, "lita is there and not empty"},
		{[]string{"export", agent, "--format", "scml", "--out", calls}, "calls.jsonl is a file: expected a new folder"},
		{[]string{"export", dir, "--format", "scml", "--out", filepath.Join(dir, "new")}, "an agent is a directory with a file agent.json"},
		{[]string{"export", agent, "--format", "scml", "--out", filepath.Join(dir, "2nd")}, `"2nd" cannot be imported by Python`},
		{[]string{"export", agent, "--format", "scml", "--precision", "int8", "--out", filepath.Join(dir, "new")}, "--precision: it means nothing with --format scml"},
		{[]string{"export", agent, "--format", "league", "--out", filepath.Join(dir, "new")}, `format "league" is not known: expected onnx, triton, oci, python, or scml`},
		{[]string{"scml", "run", "--agents", "penguin,as0", "--calls", calls}, "it is for our own agent, baseline or a directory, and none plays"},
		{[]string{"scml", "run", "--agents", "baseline," + agent, "--calls", calls}, "and the calls of one of them can be written"},
		{[]string{"scml", "run", "--agents", "baseline", "--calls", filepath.Join(dir, "none", "calls.jsonl")}, "no such file or directory"},
		{[]string{"scml", "run", "--out", filepath.Join(calls, "world.json")}, "calls.jsonl is not a folder"},
	}
	for _, c := range cases {
		apptest.Refuse(t, c.args, c.says)
	}
	describe(`{"layout": 1, "goal": 4, "horizon": 40, "manager": "manager.onnx"}`)
	apptest.Refuse(t, []string{"export", agent, "--format", "scml", "--out", filepath.Join(dir, "new")}, "the manager: ")
	describe(`{"layout": 2, "goal": 4, "horizon": 40}`)
	apptest.Refuse(t, []string{"export", agent, "--format", "scml", "--out", filepath.Join(dir, "new")}, "agent.json: ", "layout: is 2")
	if len(cases) != 10 {
		t.Errorf("%d cases", len(cases))
	}
}
