package app

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/envs/scml/record"
)

// TestSCMLWorld plays a world, checks it, looks at it, plays it again, and finds what was changed.
func TestSCMLWorld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path, again, picture := filepath.Join(dir, "world.json"), filepath.Join(dir, "again.json"), filepath.Join(dir, "world.svg")
	flags := []string{"--levels", "3", "--days", "12", "--agents", "penguin,as0,greedy,random,syncrandom,ultra,hash,hashsync", "--seed", "4"}
	s := apptest.Decode[record.Summary](t, apptest.Succeed(t, append([]string{"scml", "run", "-o", path, "--picture", picture, "--json"}, flags...)...))
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
	r := apptest.Decode[scmlReplay](t, apptest.Succeed(t, "scml", "replay", path, again, "--json"))
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
	if r := apptest.Decode[scmlReplay](t, got.Out); got.Code != 1 || r.Failed != 1 || r.Worlds[1].Difference == nil || r.Worlds[1].Difference.Day != 7 || r.Worlds[1].Difference.Of != id || r.Worlds[1].Difference.Number != "balance" {
		t.Errorf("exit %d: %+v", got.Code, r)
	}
	apptest.Says(t, apptest.Run(t, "scml", "replay", changed).Out, "day 7, "+id+": balance is")
}

// TestSCMLTournament stops a tournament, goes on, and compares with one that was not stopped.
func TestSCMLTournament(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	whole, part := filepath.Join(dir, "whole.json"), filepath.Join(dir, "part.json")
	args := []string{"scml", "tournament", "penguin", "greedy", "random", "--configs", "3", "--levels", "2,3", "--days", "10,15", "--seed", "5"}
	with := func(more ...string) []string { return slices.Concat(args, more) }
	r := apptest.Decode[scmlTournament](t, apptest.Succeed(t, with("-o", whole, "--workers", "1", "--json")...))
	if r.Played != 9 || r.Worlds != 9 || len(r.Rows) != 27 || len(r.Standings) != 3 || r.Standings[2].Name != "random" {
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
	apptest.Says(t, apptest.Succeed(t, with("-o", whole)...), "9 of 9 worlds", "penguin", "1 of 2", "2 of 3")
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
		{[]string{"run", "--agents", "nobody"}, `no agent is called "nobody"; there are greedy`},
		{[]string{"run", "--levels", "1"}, "--levels 1"},
		{[]string{"run", "--days", "0"}, "--days 0"},
		{[]string{"run", path, "--days", "9"}, "a file was named"},
		{[]string{"run", "--picture", "x.gif"}, `the ending is ".gif"`},
		{[]string{"run", "--rule", "rounds"}, "expected key=value"},
		{[]string{"run", "--rule", "rounds=many"}, "is no number, true or false"},
		{[]string{"run", "--rule", "turns=3"}, `unknown field "turns"`},
		{[]string{"run", "--rule", "rounds=0"}, "rules.rounds: must be at least 1"},
		{[]string{"run", bad(`"initial_balance":`, `"initial_balance":-`)}, "initial_balance: must be positive"},
		{[]string{"run", bad(`"n_processes":2`, `"n_processes":3`)}, "n_processes is 3, but there are 3 catalog_prices"},
		{[]string{"run", bad(`"exogenous":[{"day":0,"product":0`, `"exogenous":[{"day":0,"product":1`)}, "exogenous[0]: product 1"},
		{[]string{"run", bad(`"seed":1`, `"sead":1`)}, `unknown field "sead"`},
		{[]string{"inspect", bad(`"n_steps":3,`, `"n_steps":3`)}, "bad.json"},
		{[]string{"tournament", "penguin", "penguin"}, "competes twice"},
		{[]string{"tournament", "penguin", "as0", "--levels", "2"}, "expected two numbers"},
		{[]string{"tournament", "penguin", "as0", "--levels", "3,2"}, "levels[1]"},
		{[]string{"tournament", "penguin", "as0", "--per-world", "3"}, "per_world"},
	}
	for _, c := range cases {
		apptest.Refuse(t, append([]string{"scml"}, c.args...), c.says)
	}
	if len(cases) != 18 {
		t.Errorf("%d cases", len(cases))
	}
	// What cannot be read is a line of the table, and the others are checked.
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
