package scml

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// network writes an ONNX file of what build makes.
func network(t testing.TB, path string, build func(g *layer.Graph) onnx.Value) {
	t.Helper()
	g := layer.New("layer", rng.New(4), layer.Options{})
	g.Output(agents.ActionOutput, build(g))
	m, err := g.Model()
	if err == nil {
		err = onnx.Save(path, m, onnx.SaveOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The graphs of the tests, which need no parameters: executors say [heard price, goal's first
// number, first number of the latest offer, 0], coordinators their own thread's first number, the
// count of threads and their own of the history, added up.
func saysResiduals(g *layer.Graph) onnx.Value {
	thread, history, goal := g.Observation(InputThread, ThreadFeatures), g.Observation(InputHistory, Moves, MoveFeatures), g.Observation(InputGoal, FullGoal)
	last := g.Reshape(g.Slice(history, 1, Moves-1, Moves), -1, MoveFeatures)
	return g.Concat(1, g.Slice(thread, 1, 5, 6), g.Slice(goal, 1, 0, 1), g.Slice(last, 1, 2, 3), g.Scale(g.Slice(goal, 1, 0, 1), 0))
}

func saysWeights(g *layer.Graph) onnx.Value {
	threads, present, oneself := g.Observation(InputThreads, Threads*ThreadFeatures), g.Observation(InputPresent, Threads), g.Observation(InputOneself, Threads)
	own := g.Squeeze(g.MatMul(g.Unsqueeze(oneself, 1), g.Reshape(threads, -1, Threads, ThreadFeatures)), 1)
	count := g.Reshape(g.Sum(present, 1), -1, 1)
	return g.Add(g.Slice(own, 1, 1, 2), g.Scale(count, -1.0/Threads))
}

func describe(t testing.TB, dir, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, DescriptionFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// some are threads with different numbers.
func some(n int) []Thread {
	g := &Goal{}
	g.Targets[shield.Buy][0] = Target{Quantity: 5, Price: 0.5}
	list := make([]Thread, n)
	for i := range list {
		o := negotiation.Offer{Quantity: 1 + i, Time: 3, Price: 10 + i}
		list[i] = Thread{Slot: i, Goal: g, Weight: 1, ThreadView: ThreadView{Round: i, Rounds: 20, Today: 3, Lines: 10, Low: 10, High: 26, Heard: true, Offer: o, History: []Move{{Round: i, Offer: o}}}}
	}
	return list
}

// TestNetworks gives each thread's numbers to its row, all threads to the coordinator's, and reads
// what both say.
func TestNetworks(t *testing.T) {
	dir := t.TempDir()
	network(t, filepath.Join(dir, "e.onnx"), saysResiduals)
	network(t, filepath.Join(dir, "c.onnx"), saysWeights)
	describe(t, dir, `{"layout": 1, "goal": 4, "horizon": 40, "executor": "e.onnx", "coordinator": "c.onnx"}`)
	rows := 0
	for _, c := range testengines.All(t) {
		n, err := OpenNetworks(context.Background(), dir, c)
		if err != nil {
			t.Fatal(err)
		}
		l := n.Layers()
		if l.Manager != nil || l.Direct {
			t.Errorf("%+v", l)
		}
		// Fewer threads follow more: what was there before must not be seen.
		for _, k := range []int{Threads, 3, 1} {
			threads := some(k)
			if err := l.Executor(threads); err != nil {
				t.Fatal(err)
			}
			if err := l.Coordinator(threads); err != nil {
				t.Fatal(err)
			}
			for i := range threads {
				x := &threads[i]
				want := [Direct]float32{float32(PriceInRange(float64(10+i), 10, 26)), 0.5, float32(1+i) / 10}
				if x.Residual != want {
					t.Errorf("%d threads, thread %d: residual %v, expected %v", k, i, x.Residual, want)
				}
				weight := Weight(float32(i+1)/21 - float32(k)/Threads)
				if d := x.Weight - weight; d > 1e-6 || d < -1e-6 {
					t.Errorf("%d threads, thread %d: weight %v, expected %v", k, i, x.Weight, weight)
				}
				rows++
			}
			if grown := testing.AllocsPerRun(10, func() {
				if err := l.Executor(threads); err != nil {
					t.Fatal(err)
				}
				if err := l.Coordinator(threads); err != nil {
					t.Fatal(err)
				}
			}); grown > 2*testengines.Allocations(c) {
				t.Errorf("%d threads: %v allocations", k, grown)
			}
		}
		if err := l.Executor(some(Threads + 1)); err == nil || !strings.Contains(err.Error(), "17 negotiations at once") {
			t.Errorf("too many threads: %v", err)
		}
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	}
	if rows != 20*len(testengines.All(t)) {
		t.Errorf("%d rows", rows)
	}
}

// TestRefusesNetworks names the layer, the file, and what does not fit.
func TestRefusesNetworks(t *testing.T) {
	dir := t.TempDir()
	network(t, filepath.Join(dir, "e.onnx"), saysResiduals)
	network(t, filepath.Join(dir, "c.onnx"), saysWeights)
	network(t, filepath.Join(dir, "other.onnx"), func(g *layer.Graph) onnx.Value {
		return g.Slice(g.Observation("obs", ThreadFeatures), 1, 0, Residual)
	})
	network(t, filepath.Join(dir, "short.onnx"), func(g *layer.Graph) onnx.Value {
		return g.Slice(g.Observation(InputThread, ThreadFeatures-1), 1, 0, Residual)
	})
	n := 0
	for text, want := range sorted.All(map[string]string{
		`{"layout": 2, "goal": 4}`:                                                "layout: is 2",
		`{"layout": 1, "goal": 5}`:                                                "goal: is 5",
		`{"layout": 1, "goal": 4, "coordinator": "c.onnx"}`:                       "coordinator: it weighs the residuals of an executor",
		`{"layout": 1, "goal": 4, "direct": true}`:                                "direct: the executor is to answer",
		`{"layout": 1, "goal": 4, "executor": "none.onnx"}`:                       "none.onnx",
		`{"layout": 1, "goal": 4, "executor": "e.onnx", "direct": true}`:          "expected 5 float32 for each row",
		`{"layout": 1, "goal": 4, "executor": "other.onnx"}`:                      `the executor, other.onnx of ` + dir + `: it reads "obs"; a layer of its kind is given goal, history, thread`,
		`{"layout": 1, "goal": 4, "executor": "short.onnx"}`:                      `its input "thread" is`,
		`{"layout": 1, "goal": 4, "executor": "c.onnx"}`:                          "it reads",
		`{"layout": 1, "goal": 4, "executor": "e.onnx", "coordinator": "e.onnx"}`: "the coordinator",
		`{"layout": 1, "goal": 4, "horizon": 40, "manager": "e.onnx"}`:            "the manager",
		`{"layout": 1, "goal": 4, "horizon": -1, "manager": "e.onnx"}`:            "horizon",
		`{"layout": 1, "goal": 4, "horizon": 40, "manager": "e.onnx"`:             DescriptionFile,
	}) {
		describe(t, dir, text)
		if _, err := OpenNetworks(context.Background(), dir, testengines.Fastest(t)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v does not say %q", text, err, want)
		}
		n++
	}
	if n != 13 {
		t.Errorf("%d cases", n)
	}
}

// TestNetworksPlay seats agents of networks, which share them, in a world.
func TestNetworksPlay(t *testing.T) {
	dir := t.TempDir()
	network(t, filepath.Join(dir, "e.onnx"), saysResiduals)
	network(t, filepath.Join(dir, "c.onnx"), saysWeights)
	describe(t, dir, `{"layout": 1, "goal": 4, "horizon": 40, "executor": "e.onnx", "coordinator": "c.onnx"}`)
	n, err := OpenNetworks(context.Background(), dir, testengines.Fastest(t))
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	layers := n.Layers()
	table, places := sit(t, 5, 3, world.DefaultRules(), 10, true, func(rng.Key) world.Agent { return shield.Watch(NewAgent(layers)) })
	for table.PlayDay() {
	}
	for _, p := range places {
		if f := table.Faults(p); f.Count() > 0 {
			t.Errorf("agent %d: %+v", p, f)
		}
	}
	if len(places) < 2 || len(table.Contracts()) < 100 {
		t.Errorf("%d agents, %d contracts", len(places), len(table.Contracts()))
	}
}
