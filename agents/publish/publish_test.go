package publish

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/agenttest"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/corridor"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func document(t *testing.T, env string) experiment.Config {
	t.Helper()
	doc, err := configs.Parse("run.yaml", []byte("seed: 7\nagent: {kind: a2c}\npublish: {when: improvements, observations: 256, allow_ties: true}\n"+env+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := experiment.Defaults()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func open(t *testing.T, c experiment.Config) envs.Factory {
	t.Helper()
	f, err := envs.Open(t.Context(), []envs.Kind{corridor.Kind}, c.Env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// policy builds a policy for a factory's environments from their spec alone.
func policy(t *testing.T, f envs.Factory) train.Policy {
	t.Helper()
	e, err := f.New(envs.Valid, 0)
	if err != nil {
		t.Fatal(err)
	}
	spec := e.Spec()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	net, params := agenttest.Network(t, spec)
	return train.Policy{Network: net, Params: params, EnvSteps: 1000, LearnerSteps: 20, Metric: "sharpe", Score: 0.5, Metrics: map[string]float64{"sharpe": 0.5, "sortino": math.NaN()}}
}

func publisher(t *testing.T, c experiment.Config, f envs.Factory, e engine.Compiler, dir string) *Publisher {
	t.Helper()
	p, err := New(Options{
		Config: c, Factory: f, Engine: e, Dir: dir, Name: "My Run!", Program: "onnxrl test", Parents: []string{"sha256:" + strings.Repeat("a", 64)},
		Sources: map[string]string{"data_sha256": strings.Repeat("0", 64)},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// TestPublishesOtherAgents publishes one whose environment shows raw observations, in short
// episodes.
func TestPublishesOtherAgents(t *testing.T) {
	c := document(t, "env: {kind: corridor, cells: 5}")
	f := open(t, c)
	for _, e := range testengines.All(t) {
		dir := t.TempDir()
		p := publisher(t, c, f, e, dir)
		pol := policy(t, f)
		first, err := p.Publish(t.Context(), pol)
		if err != nil {
			t.Fatal(err)
		}
		pol.Params.View("value.bias").Float32s()[0]++
		pol.EnvSteps = 2000
		second, err := p.Publish(t.Context(), pol)
		if err != nil || second == first {
			t.Errorf("%s: %s after %s, %v", e.Name(), second, first, err)
		}
		list, err := p.store.List()
		if err != nil || len(list) != 2 {
			t.Errorf("%s: %d versions, %v", e.Name(), len(list), err)
		}
		if v, err := p.store.Resolve("my-run"); err != nil || v.String() != second || v.Manifest.Features != nil {
			t.Errorf("%s: latest is %v, %v", e.Name(), v, err)
		}
		m, err := onnx.Load(filepath.Join(dir, BestFile))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := m.Meta(bake.MetaScales); ok {
			t.Errorf("%s: it scales inputs", e.Name())
		}
		a, err := NewActor(t.Context(), m, f, envs.Valid, e, 3)
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestFailuresKeepWhatWasPublished(t *testing.T) {
	c := document(t, "env: {kind: corridor, cells: 5}")
	f := open(t, c)
	e := testengines.All(t)[0]
	dir := t.TempDir()
	p := publisher(t, c, f, e, dir)
	pol := policy(t, f)
	ref, err := p.Publish(t.Context(), pol)
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, BestFile))
	if err != nil {
		t.Fatal(err)
	}
	pol.Params.View("value.weight").Float32s()[0] = float32(math.NaN())
	if _, err := p.Publish(t.Context(), pol); err == nil || !strings.Contains(err.Error(), "publish the policy of env step 1000") || !strings.Contains(err.Error(), "parity") {
		t.Errorf("a policy that gives NaN: error %v", err)
	}
	after, err := os.ReadFile(filepath.Join(dir, BestFile))
	if err != nil || string(after) != string(before) {
		t.Errorf("the file has changed, %v", err)
	}
	if v, err := p.store.Resolve("my-run:" + BestAlias); err != nil || v.String() != ref {
		t.Errorf("best is %v, %v", v, err)
	}
}

func TestArtefactNames(t *testing.T) {
	for in, want := range sorted.All(map[string]string{"qtmrl": "qtmrl", "My Run!": "my-run", "": "agent", "..": "agent", "Ü": "agent", "a__b": "a-b", "SHA256": "agent"}) {
		if got := ArtefactName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
