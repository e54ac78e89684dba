package kinds_test

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/pettingzoo"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// TestShippedExperiments decodes every shipped document of a training run, and makes environments
// and agent of those whose data are shipped, too. Written out, the effective document decodes to
// the same one.
func TestShippedExperiments(t *testing.T) {
	names, err := fs.Glob(configs.Shipped(), "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	decoded, built := 0, 0
	for _, file := range names {
		name := strings.TrimSuffix(file, ".yaml")
		text, err := fs.ReadFile(configs.Shipped(), file)
		if err != nil {
			t.Fatal(err)
		}
		d, err := configs.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := d.Lookup("agent"); !ok {
			continue // a document of another command
		}
		t.Run(name, func(t *testing.T) {
			cfg, doc, err := experiment.Load(name, nil)
			if err != nil {
				t.Fatal(err)
			}
			decoded++
			if search := tune.Defaults(); !cfg.Tune.IsZero() {
				if err := cfg.Tune.Decode(&search); err != nil || len(search.Space) == 0 {
					t.Errorf("tune: %v, %d parameters", err, len(search.Space))
				}
			}
			if section, ok := doc.Lookup("env.data.source.path"); ok {
				var path string
				if err := section.Decode(&path); err != nil {
					t.Fatal(err)
				}
				if !strings.HasPrefix(path, "shipped:") {
					needsData(t, name, path)
					return
				}
			}
			if cfg.Env.Kind == gymnasium.Kind.Name || cfg.Env.Kind == pettingzoo.Kind.Name {
				needsPython(t, cfg)
				return
			}
			if name == "scml_weights" || name == "scml_weights.yaml" {
				needsLayers(t, cfg)
				return
			}
			if build(t, cfg) {
				built++
			}
		})
	}
	if decoded < 4 || built < 3 {
		t.Errorf("%d documents decoded, %d built", decoded, built)
	}
}

// needsData checks that a document without data says which file is missing, and that its agent is
// one.
func needsData(t *testing.T, name, path string) {
	cfg, _, err := experiment.Load(name, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := kinds.All().Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("without data: %v", err)
	}
	if _, err := agents.Parse(kinds.All().Agents, cfg.Agent); err != nil {
		t.Error(err)
	}
}

// needsPython checks that a document whose environment lives in Python says that there is none, and
// that its agent is one.
func needsPython(t *testing.T, cfg experiment.Config) {
	t.Setenv("ONNXRL_PYTHON", "/no/such/python")
	if _, _, _, err := kinds.All().Open(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), "/no/such/python") {
		t.Errorf("without Python: %v", err)
	}
	if _, err := agents.Parse(kinds.All().Agents, cfg.Agent); err != nil {
		t.Error(err)
	}
}

// needsLayers checks that a document that learns above an agent's executor says that there is none,
// and that its agent is one.
func needsLayers(t *testing.T, cfg experiment.Config) {
	_, factory, _, err := kinds.All().Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer factory.Close()
	if _, err := factory.New(envs.Train, 0); err == nil || !strings.Contains(err.Error(), "layers: action: weights needs the directory of an agent with an executor") {
		t.Errorf("without layers: %v", err)
	}
	if _, err := agents.Parse(kinds.All().Agents, cfg.Agent); err != nil {
		t.Error(err)
	}
}

// build makes every environment and the agent of a document.
func build(t *testing.T, cfg experiment.Config) bool {
	effective, factory, maker, err := kinds.All().Open(context.Background(), cfg)
	if err != nil {
		t.Error(err)
		return false
	}
	defer factory.Close()
	var spec envs.Spec
	for _, split := range []envs.Split{envs.Train, envs.Valid, envs.Test} {
		e, err := factory.New(split, 0)
		if err != nil {
			t.Error(err)
			return false
		}
		spec = e.Spec()
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
	a, err := maker.New(t.Context(), agents.Setup{Spec: spec, Envs: cfg.Train.NumEnvs, Engine: portable.New(), Threads: 1, Encoders: kinds.All().Encoders, Key: rng.New(cfg.Seed)})
	if err != nil {
		t.Error(err)
		return false
	}
	defer a.Close()
	text, err := configs.Marshal(effective)
	if err != nil {
		t.Fatal(err)
	}
	again, err := configs.Parse("effective.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	read := experiment.Defaults()
	if err := again.Decode(&read); err != nil {
		t.Fatal(err)
	}
	if changes, err := configs.Diff(effective, read); err != nil || len(changes) > 0 {
		t.Errorf("the effective document changes when it is read again: %v, %v", changes, err)
	}
	if _, ok := factory.(trading.Opened); ok != (cfg.Env.Kind == "trading") {
		t.Errorf("environments of kind %q give figures of trading: %t", cfg.Env.Kind, ok)
	}
	return true
}
