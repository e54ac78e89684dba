package ablate

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// dots shows two bytes, of which a model cannot stack several.
type dots struct{}

func (dots) Spec() envs.Spec {
	return envs.Spec{
		Name: "dots", Observation: envs.Dict{{Name: "dots", Space: envs.Box{Of: tensor.Uint8, Dims: []int{2}, Low: []float64{0}, High: []float64{255}}}},
		Action: envs.Discrete{N: 2}, MaxSteps: 4,
	}
}
func (dots) Reset(_ rng.Key, ts *envs.TimeStep) error { ts.Restart(); return nil }
func (dots) Step(_ *tensor.Tensor, ts *envs.TimeStep) error {
	ts.Terminate(1)
	return nil
}
func (dots) Close() error { return nil }

type dotsFactory struct{}

func (dotsFactory) Config() any                           { return struct{}{} }
func (dotsFactory) New(envs.Split, int) (envs.Env, error) { return dots{}, nil }
func (dotsFactory) Close() error                          { return nil }

// TestRefusedBeforeTheFirstIsTrained: a variant whose policies cannot be published refuses the
// study while there is nothing of it; where nothing is to be published it is no reason.
func TestRefusedBeforeTheFirstIsTrained(t *testing.T) {
	e := portable.New()
	t.Cleanup(func() { _ = e.Close() })
	all := kinds.All()
	all.Envs = append(all.Envs, envs.Kind{Name: "dots", Summary: "two bytes", Defaults: func() any { return struct{}{} }, Open: func(context.Context, configs.Section) (envs.Factory, error) {
		return dotsFactory{}, nil
	}})
	path := files(t, "base: base.yaml\nseeds: [1]\nmetrics: [mean_reward]\nfactors: {frames: {one: {wrappers.frame_stack.frames: 1}, two: {wrappers.frame_stack.frames: 2}}}\n", `
env: {kind: dots}
agent: {kind: ppo, n_steps: 4, batch_size: 4, n_epochs: 1, hidden: [4]}
train: {num_envs: 1, total_env_steps: 4, threads: 1, validation: {every_steps: 0}}
eval: {episodes: 1}
`)
	opened := func(sets ...string) *Study {
		t.Helper()
		c, base, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		p, err := NewPlan(t.Context(), c, base, Options{Sets: sets, Decode: all.Decode, Effective: Opened(all)})
		if err != nil {
			t.Fatal(err)
		}
		s := &Study{Plan: p, Runner: Experiments{study.Trainer{Kinds: all, Options: run.Options{Engine: e}}}, Now: time.Now}
		s.Dir, s.Parallel = filepath.Join(t.TempDir(), "out"), 1
		if err := s.Open(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := opened()
	err := s.Rehearse(t.Context())
	if err == nil || strings.Count(err.Error(), "only float32 can be stacked inside of a model") != 1 || !strings.HasPrefix(err.Error(), "frames=two: ") {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(s.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a rehearsal has left %s: %v", s.Dir, err)
	}
	if err := opened("publish.when=never").Rehearse(t.Context()); err != nil {
		t.Error(err)
	}
}
