package official

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/envs/scml/league/leaguetest"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/export/format"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// pythonVar names a Python with numpy and onnxruntime.
const pythonVar = "ONNXRL_EXPORT_PYTHON"

// layer makes a network of one hidden layer whose numbers are large enough to matter. The inputs
// have the shapes given, without the batch. What odd layers say of some threads is no number.
func layer(t testing.TB, seed uint64, out int, odd bool, shapes map[string][]int, names ...string) *onnx.Model {
	t.Helper()
	const hidden = 12
	s := rng.New(seed).Split("layer").Stream()
	b := onnx.NewBuilder("layer", onnx.DefaultOpset)
	weights := func(name string, in, out int) onnx.Value {
		w := tensor.New(tensor.Float32, in, out)
		s.FillNormal32(w.Float32s(), 0, 2/math.Sqrt(float64(in)))
		return b.Initializer(name, w)
	}
	batch := func(shape ...int) onnx.TensorType {
		tt := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch")}}
		for _, n := range shape {
			tt.Dims = append(tt.Dims, onnx.Known(n))
		}
		return tt
	}
	var sum onnx.Value
	for _, name := range names {
		n := 1
		for _, d := range shapes[name] {
			n *= d
		}
		x := b.Op("Reshape", []onnx.Value{b.Input(name, batch(shapes[name]...)), b.Ints(-1, n)})
		if y := b.Op("MatMul", []onnx.Value{x, weights("w_"+name, n, hidden)}); sum == "" {
			sum = y
		} else {
			sum = b.Op("Add", []onnx.Value{sum, y})
		}
	}
	y := b.Op("Mul", []onnx.Value{b.Op("Tanh", []onnx.Value{b.Op("MatMul", []onnx.Value{b.Op("Tanh", []onnx.Value{sum}), weights("w_out", hidden, out)})}), b.Float(1.25)})
	if odd {
		y = b.Op("Sqrt", []onnx.Value{b.Op("Add", []onnx.Value{y, b.Float(1)})})
	}
	b.Output(b.Rename(y, agents.ActionOutput), batch(out))
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// directory writes an agent's directory with the layers that are named.
func directory(t testing.TB, d scml.Description, odd bool, layers ...string) string {
	t.Helper()
	dir := t.TempDir()
	d.Layout = scml.Layout
	size := scml.Residual
	if d.Direct {
		size = scml.Direct
	}
	shapes := map[string][]int{
		scml.InputStatic: {scml.StaticFeatures}, scml.InputTemporal: {d.Horizon + 1, scml.TemporalFeatures}, scml.InputRole: {scml.RoleFeatures},
		scml.InputThread: {scml.ThreadFeatures}, scml.InputHistory: {scml.Moves, scml.MoveFeatures}, scml.InputGoal: {scml.FullGoal},
	}
	save := func(name string, m *onnx.Model) string {
		if err := onnx.Save(filepath.Join(dir, name), m, onnx.SaveOptions{}); err != nil {
			t.Fatal(err)
		}
		return name
	}
	for _, l := range layers {
		switch l {
		case "manager":
			d.Manager = save("manager.onnx", layer(t, 1, d.Goal, false, shapes, scml.InputStatic, scml.InputTemporal, scml.InputRole))
		case "executor":
			d.Executor = save("executor.onnx", layer(t, 2, size, odd, shapes, scml.InputThread, scml.InputHistory, scml.InputGoal))
		case "coordinator":
			// It has the history in another form, and is of another opset's age.
			shapes[scml.InputHistory] = []int{scml.Moves * scml.MoveFeatures}
			shapes[scml.InputThreads], shapes[scml.InputPresent], shapes[scml.InputOneself] = []int{scml.Threads, scml.ThreadFeatures}, []int{scml.Threads}, []int{scml.Threads}
			d.Coordinator = save("coordinator.onnx", layer(t, 3, 1, odd, shapes, scml.InputThread, scml.InputHistory, scml.InputThreads, scml.InputPresent, scml.InputOneself))
		}
	}
	text, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, scml.DescriptionFile), text, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// play plays a world in which agents of these layers have the places of competitors, and writes
// their calls.
func play(t testing.TB, calls *Calls, layers scml.Layers, seed, levels, days int, angry bool) {
	t.Helper()
	key := rng.New(21).Split("world", levels, seed)
	s := key.Split("hostile").Stream()
	table, places := leaguetest.Sit(t, key, levels, world.DefaultRules(), world.Range{Low: float64(days), High: float64(days)}, func(name string, own rng.Key) world.Agent {
		switch {
		case name == "":
			return calls.Of(scml.NewAgent(layers))
		case angry && s.Bernoulli(0.5):
			return leaguetest.Hostile(own)
		case s.Bernoulli(0.5):
			name = []string{"penguin", "as0"}[s.IntN(2)]
		}
		return leaguetest.Agent(t, name, own)
	})
	for table.PlayDay() {
	}
	for _, i := range places {
		if n := table.Faults(i); n.Count() > 0 {
			t.Errorf("agent %d: %+v", i, n)
		}
	}
}

// python returns the interpreter to test with, or none.
func python(t testing.TB, what string) string {
	path := os.Getenv(pythonVar)
	if path == "" {
		fmt.Printf("%s: not run in Python (set %s)\n", what, pythonVar)
		return ""
	}
	if out, err := exec.Command(path, "-c", "import numpy, onnxruntime").CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", path, err, out)
	}
	return path
}

// replay runs the module replay of a package.
func replay(path, dir string, recordings ...string) (string, error) {
	cmd := exec.Command(path, append([]string{"-m", filepath.Base(dir) + ".replay"}, recordings...)...)
	cmd.Dir = filepath.Dir(dir)
	cmd.Env = append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestDecisionsAreEqual plays worlds with the native agent, and lets the exported one answer the
// same calls.
func TestDecisionsAreEqual(t *testing.T) {
	longtest.Slow(t)
	path := python(t, "decisions of the exported agent")
	cases := []struct {
		name   string
		d      scml.Description
		odd    bool
		layers []string
	}{
		{"baseline", scml.Description{Goal: scml.WholeGoal, Horizon: 40}, false, nil},
		{"manager of whole goals", scml.Description{Goal: scml.WholeGoal, Horizon: 40}, false, []string{"manager"}},
		{"manager of full goals", scml.Description{Goal: scml.FullGoal, Horizon: 12}, false, []string{"manager"}},
		{"executor", scml.Description{Goal: scml.WholeGoal}, true, []string{"executor"}},
		{"all layers", scml.Description{Goal: scml.FullGoal, Horizon: 5}, false, []string{"manager", "executor", "coordinator"}},
		{"no numbers", scml.Description{Goal: scml.FullGoal, Horizon: 5}, true, []string{"manager", "executor", "coordinator"}},
		{"direct", scml.Description{Goal: scml.FullGoal, Horizon: 40, Direct: true}, false, []string{"manager", "executor"}},
	}
	worlds, answers := 0, 0
	for i, c := range cases {
		dir := directory(t, c.d, c.odd, c.layers...)
		compiler := portable.New()
		n, err := scml.OpenNetworks(t.Context(), dir, compiler)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var recordings []string
		for levels := 2; levels <= 4; levels++ {
			for _, angry := range []bool{false, true} {
				var b bytes.Buffer
				calls := NewCalls(&b)
				play(t, calls, n.Layers(), i, levels, 12, angry)
				if calls.Err() != nil || calls.Answers < 50 {
					t.Errorf("%s, %d levels: %d answers, %v", c.name, levels, calls.Answers, calls.Err())
				}
				file := filepath.Join(t.TempDir(), "calls.jsonl")
				if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
				recordings = append(recordings, file)
				worlds++
				answers += calls.Answers
			}
		}
		out := export(t, dir, "lita", compiler)
		if err := n.Close(); err != nil {
			t.Error(err)
		}
		if path == "" {
			continue
		}
		if text, err := replay(path, out, recordings...); err != nil || strings.Count(text, "answers equal") != len(recordings) {
			t.Errorf("%s: %v\n%s", c.name, err, text)
		}
	}
	if worlds != 6*len(cases) || answers < 10_000 {
		t.Errorf("%d worlds, %d answers", worlds, answers)
	}
}

// export writes the package of a directory.
func export(t testing.TB, dir, name string, c engine.Compiler) string {
	t.Helper()
	e, err := Files(context.Background(), dir, name, c)
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), name)
	if _, err := format.WriteFolder(out, e.Files); err != nil {
		t.Fatal(err)
	}
	return out
}

// edit changes the file of a package, or deletes it.
func edit(t testing.TB, path string, change func(string) string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if change == nil {
		err = os.Remove(path)
	} else {
		err = os.WriteFile(path, []byte(change(string(data))), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func swap(from, to string) func(string) string {
	return func(s string) string { return strings.Replace(s, from, to, 1) }
}

// TestReplayFindsDifferences gives the exported agent other networks, files that it cannot use and
// recordings with another answer: each is named.
func TestReplayFindsDifferences(t *testing.T) {
	longtest.Nightly(t)
	compiler := portable.New()
	d := scml.Description{Goal: scml.FullGoal, Horizon: 5}
	dir := directory(t, d, false, "manager", "executor")
	n, err := scml.OpenNetworks(t.Context(), dir, compiler)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	calls := NewCalls(&b)
	play(t, calls, n.Layers(), 1, 2, 4, false)
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	recording := filepath.Join(t.TempDir(), "calls.jsonl")
	if err := os.WriteFile(recording, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	// A graph that is none of this agent's.
	other := filepath.Join(t.TempDir(), "other.onnx")
	if err := onnx.Save(other, layer(t, 9, 3, false, map[string][]int{"state": {7}}, "state"), onnx.SaveOptions{}); err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(other)
	if err != nil {
		t.Fatal(err)
	}
	narrow := export(t, directory(t, scml.Description{Goal: scml.WholeGoal, Horizon: 5}, false, "manager"), "narrow", compiler)
	whole, err := os.ReadFile(filepath.Join(narrow, DayFile))
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name, file string
		change     func(string) string
		says       string
	}{
		{"nothing", scml.DescriptionFile, swap("", ""), ""},
		{"no manager", scml.DescriptionFile, swap(`"day": "day.onnx",`, ""), "the exported agent answers"},
		{"another layout", scml.DescriptionFile, swap(`"layout": 1`, `"layout": 2`), "agent.json: layout is 2; these modules write observations of layout 1"},
		{"another goal", scml.DescriptionFile, swap(`"goal": 16`, `"goal": 5`), "agent.json: goal is 5, expected 4 or 16"},
		{"a goal of another size", scml.DescriptionFile, swap(`"goal": 16`, `"goal": 4`), "day.onnx: its output 'action' has shape (1, 16), expected (1, 4)"},
		{"another horizon", scml.DescriptionFile, swap(`"horizon": 5`, `"horizon": 6`), "day.onnx: its input 'temporal' is tensor(float)"},
		{"no horizon", scml.DescriptionFile, swap(`"horizon": 5`, `"horizon": -1`), "agent.json: horizon is -1"},
		{"text for a number", scml.DescriptionFile, swap(`"horizon": 5`, `"horizon": "5"`), "agent.json: horizon is '5', expected int"},
		{"an unknown key", scml.DescriptionFile, swap(`"goal"`, `"manager": "m.onnx", "goal"`), "agent.json: manager is not known"},
		{"no object", scml.DescriptionFile, func(string) string { return "[]" }, "agent.json: expected an object"},
		{"half a description", scml.DescriptionFile, func(s string) string { return s[:len(s)/2] }, "agent.json: "},
		{"direct without a round", scml.DescriptionFile, func(string) string { return `{"layout": 1, "goal": 4, "horizon": 1, "direct": true}` }, "agent.json: direct is true"},
		{"no description", scml.DescriptionFile, nil, "No such file"},
		{"no graph", DayFile, nil, "day.onnx: there is no such file"},
		{"half a graph", RoundFile, func(s string) string { return s[:len(s)/2] }, "round.onnx: "},
		{"another graph", RoundFile, func(string) string { return string(foreign) }, "round.onnx: it reads 'state'; a graph of its kind is given goal, history, oneself, present, thread, threads"},
		{"another manager", DayFile, func(string) string { return string(whole) }, "day.onnx: its output 'action' has shape (1, 4), expected (1, 16)"},
		{"another answer", "calls.jsonl", swap(`"replies":[[`, `"replies":[[1`), "day 0, first_proposals, slot 0: the exported agent answers"},
		{"half a recording", "calls.jsonl", func(s string) string { return s[:len(s)/2] }, "calls.jsonl, line "},
		{"an unknown call", "calls.jsonl", swap("day_begins", "day_ends"), "calls.jsonl, line 4: the call is 'day_ends'"},
		{"no beginning", "calls.jsonl", func(s string) string { return s[strings.Index(s, "\n")+1:] }, "is asked day_begins before it starts"},
		{"nothing recorded", "calls.jsonl", func(string) string { return "" }, "there is no answer in it"},
	}
	path := python(t, "faults of packages and recordings")
	for _, c := range cases {
		out := export(t, dir, "lita", compiler)
		own := recording
		if c.file == "calls.jsonl" {
			own = filepath.Join(t.TempDir(), "calls.jsonl")
			if err := os.WriteFile(own, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			edit(t, own, c.change)
		} else {
			edit(t, filepath.Join(out, c.file), c.change)
		}
		if path == "" {
			continue
		}
		text, err := replay(path, out, own)
		if c.says == "" {
			if err != nil {
				t.Errorf("%s: %v\n%s", c.name, err, text)
			}
			continue
		}
		if err == nil || !strings.Contains(text, c.says) || strings.Contains(text, "Traceback") {
			t.Errorf("%s: %v\n%s\nexpected %q", c.name, err, text, c.says)
		}
	}
	if len(cases) != 22 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestRefused exports what cannot be.
func TestRefused(t *testing.T) {
	compiler := portable.New()
	good := func() string {
		return directory(t, scml.Description{Goal: scml.WholeGoal, Horizon: 3}, false, "manager", "executor", "coordinator")
	}
	changed := func(file string, change func(string) string) string {
		dir := good()
		edit(t, filepath.Join(dir, file), change)
		return dir
	}
	cases := []struct{ name, dir, called, says string }{
		{"no directory", filepath.Join(t.TempDir(), "none"), "lita", "an agent is a directory with a file agent.json"},
		{"no description", t.TempDir(), "lita", "an agent is a directory with a file agent.json"},
		{"another layout", changed(scml.DescriptionFile, swap(`"layout":1`, `"layout":7`)), "lita", "layout: is 7; this program's observations have layout 1"},
		{"no executor", changed(scml.DescriptionFile, swap(`"executor":"executor.onnx",`, "")), "lita", "coordinator: it weighs the residuals of an executor, and there is none"},
		{"no manager's file", changed("manager.onnx", nil), "lita", "the manager: "},
		{"no coordinator's file", changed("coordinator.onnx", nil), "lita", "the coordinator: "},
		{"half an executor", changed("executor.onnx", func(s string) string { return s[:len(s)/2] }), "lita", "the executor: "},
		{"a goal of another size", changed(scml.DescriptionFile, swap(`"goal":4`, `"goal":16`)), "lita", "expected 16 float32 for each row"},
		{"no identifier", good(), "lita-hrl", `"lita-hrl" cannot be imported by Python`},
		{"a keyword", good(), "lambda", `"lambda" cannot be imported by Python`},
	}
	for _, c := range cases {
		if e, err := Files(t.Context(), c.dir, c.called, compiler); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, %v, expected %q", c.name, e, err, c.says)
		}
	}
	if len(cases) != 10 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestRound compares the graph of a round with its layers, whose opsets and forms of inputs differ.
func TestRound(t *testing.T) {
	compiler := portable.New()
	shapes := map[string][]int{"thread": {scml.ThreadFeatures}, "history": {scml.Moves, scml.MoveFeatures}, "goal": {scml.FullGoal}}
	flat := map[string][]int{"thread": {scml.ThreadFeatures}, "history": {scml.Moves * scml.MoveFeatures}, "present": {scml.Threads}}
	n := 0
	for _, odd := range []bool{false, true} {
		for _, size := range []int{scml.Residual, scml.Direct} {
			first := layer(t, 4, size, odd, shapes, "thread", "history", "goal")
			for _, second := range []*onnx.Model{nil, layer(t, 5, 1, odd, flat, "thread", "history", "present")} {
				m, err := Round(first, second, size)
				if err != nil {
					t.Fatal(err)
				}
				worst, err := compare(t.Context(), compiler, m, first, second, size)
				if err != nil {
					t.Errorf("odd %v, size %d, with a coordinator %v: %v", odd, size, second != nil, err)
				}
				if n++; worst > 1e-6 {
					t.Errorf("odd %v, size %d: %g apart", odd, size, worst)
				}
			}
		}
	}
	// Another executor is noticed.
	first, other := layer(t, 4, scml.Residual, false, shapes, "thread", "goal"), layer(t, 6, scml.Residual, false, shapes, "thread", "goal")
	m, err := Round(first, nil, scml.Residual)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := compare(t.Context(), compiler, m, other, nil, scml.Residual); err == nil || !strings.Contains(err.Error(), "differs from its layers") {
		t.Error(err)
	}
	if n != 8 {
		t.Errorf("%d graphs", n)
	}
}
