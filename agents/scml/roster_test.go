package scml

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestRoster finds agents by name and directory, leaves layers out, and says what is wrong with
// descriptions; what is wrong with networks is for open_test.go.
func TestRoster(t *testing.T) {
	opened := 0
	r := NewRoster(func(context.Context) (engine.Compiler, error) {
		opened++
		return nil, errors.New("no engine")
	})
	dir := t.TempDir()
	for _, c := range []struct{ name, description, says string }{
		{"penguin", "", ""},
		{"shielded_as0", "", ""},
		{"baseline", "", ""},
		{"nobody", "", `no agent is called "nobody"; the nearest of `},
		{"./nobody", "", `"./nobody" is neither an agent's name nor a directory with a file agent.json`},
		{dir, "", "neither an agent's name nor a directory"},
		{dir, "{", "no engine"},
	} {
		if c.description != "" {
			if err := os.WriteFile(filepath.Join(dir, DescriptionFile), []byte(c.description), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		k, err := r.Find(c.name)
		if c.says == "" && (err != nil || k.Name != c.name) || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.says)
		}
	}
	if opened != 1 {
		t.Errorf("the engine was opened %d times, expected once, for the directory", opened)
	}
	r = NewRoster(func(context.Context) (engine.Compiler, error) { return nil, nil })
	cases := []struct{ description, layers, says string }{
		{"", "", "unexpected end of JSON input"},
		{"{", "", DescriptionFile + ": unexpected end of JSON input"},
		{`{"layout": 2, "goal": 4, "horizon": 40}`, "", "layout: is 2; this program's observations have layout 1"},
		{`{"layout": 1, "goal": 5, "horizon": 40}`, "", "goal: is 5, expected 4 or 16"},
		{`{"layout": 1, "goal": 4, "horizon": -1}`, "", "horizon: must be between 0 and 1000, is -1"},
		{`{"layout": 1, "goal": "four", "horizon": 40}`, "", "goal"},
		{`{"layout": 1, "goal": 4, "horizon": 40, "direct": true}`, "", "direct: the executor is to answer, and there is none"},
		{`{"layout": 1, "goal": 4, "horizon": 40, "coordinator": "c.onnx"}`, "", "coordinator: it weighs the residuals of an executor, and there is none"},
		{`{"layout": 1, "goal": 4, "horizon": 40, "manager": "missing.onnx"}`, "", "missing.onnx"},
		{`{"layout": 1, "goal": 4, "horizon": 40}`, ":no-shield", `an agent has no layer "shield"; there are manager, executor and coordinator`},
		{`{"layout": 1, "goal": 4, "horizon": 40}`, ":no-manager:no-boss", `an agent has no layer "boss"`},
		{`{"layout": 1, "goal": 4, "horizon": 40}`, ":no-manager:no-executor:no-coordinator", ""},
		{`{"layout": 1, "goal": 16, "horizon": 0}`, "", ""},
	}
	for i, c := range cases {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, DescriptionFile), []byte(c.description), 0o644); err != nil {
			t.Fatal(err)
		}
		k, err := r.Find(dir + c.layers)
		switch {
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), dir)):
			t.Errorf("case %d: %v, expected %q and the directory", i, err, c.says)
		case c.says == "" && (err != nil || k.Name != dir+c.layers || k.New(nil) == nil):
			t.Errorf("case %d: %v", i, err)
		}
	}
	if len(cases) != 13 {
		t.Errorf("%d cases", len(cases))
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// TestBaselineTrades: without networks our agent is no worse than Penguin by more than a standard
// error of their paired difference, and takes no unsafe action, beside all kinds of agents.
func TestBaselineTrades(t *testing.T) {
	longtest.Slow(t)
	s := league.Defaults()
	s.Competitors, s.Configs, s.Processes, s.Days, s.Seed, s.Find, s.Watch = []string{"baseline", "penguin", "pricetrend", "xenosota"}, 30, []int{2, 3, 4}, [2]int{50, 60}, 11, Find, nil
	byConfig := map[int][]float64{}
	r, err := s.Report(t.Context(), "", 2, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range r.Rows {
		switch row.Name {
		case "baseline":
			byConfig[row.Config] = append(byConfig[row.Config], row.Score)
			if row.Faults.Count() > 0 {
				t.Errorf("world %d: %+v", row.World, row.Faults)
			}
		case "penguin":
			byConfig[row.Config] = append(byConfig[row.Config], -row.Score)
		}
	}
	mean, squares := 0.0, 0.0
	for _, list := range sorted.All(byConfig) {
		sum := 0.0
		for _, x := range list {
			sum += x
		}
		d := sum / float64(s.Runs*len(s.Competitors))
		mean += d / float64(len(byConfig))
		squares += d * d / float64(len(byConfig))
	}
	standardError := math.Sqrt((squares - mean*mean) / float64(len(byConfig)-1))
	t.Logf("the baseline is ahead of Penguin by %.3f ± %.3f in %d configurations", mean, standardError, len(byConfig))
	if len(byConfig) != 30 || mean < -standardError {
		t.Errorf("the baseline is ahead of Penguin by %.3f ± %.3f in %d configurations", mean, standardError, len(byConfig))
	}
}

// TestNamesOfTournaments: what the league's logs and files call agents is found, too.
func TestNamesOfTournaments(t *testing.T) {
	found := 0
	for _, k := range opponents.Kinds {
		for _, name := range []string{k.Type, "scml.oneshot.sysagents.DefaultOneShotAdapter:some.module." + k.Type} {
			if got, err := Find(name); err != nil || got.Name != k.Name {
				t.Errorf("%s: %v", name, err)
			}
			found++
		}
	}
	if names := Names(); found != 2*len(opponents.Kinds) || !slices.Contains(names, "xenosota") || !slices.Contains(names, "shielded_pricetrend") {
		t.Errorf("%d found, %q", found, names)
	}
}
