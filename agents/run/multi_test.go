package run_test

import (
	"context"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/envtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

const shifts = `
env: {kind: shifts}
wrappers: {frame_stack: {frames: 2, flat: true}, normalize: {obs: true, reward: true, gamma: 0.9}}
agent: {kind: ppo, n_steps: 25, batch_size: 30, n_epochs: 2, hidden: [8], gamma: 0.9, learning_rate: 0.01}
train: {num_envs: 6, total_env_steps: 1200, log_interval_steps: 150, threads: 1, validation: {every_steps: 600}}
eval: {episodes: 4}
publish: {when: improvements, observations: 64}
`

// workers is the kind of worlds of three agents.
var workers = envs.Kind{Name: "shifts", Summary: "three agents that come and go", Defaults: func() any { return struct{}{} }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
	return paidFactory{envtest.ShiftsFactory{Shifts: envtest.Shifts{Workers: 3}}}, params.Decode(&struct{}{})
}}

// paid is a world in which every step earns 1.
type paid struct{ envtest.Littering }

func (w paid) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	err := w.Littering.Step(actions, steps, present)
	for k, ts := range steps {
		if present[k] && ts.Type != envs.First {
			ts.Reward = 1
		}
	}
	return err
}

type paidFactory struct{ envtest.ShiftsFactory }

func (f paidFactory) NewMulti(split envs.Split, i int) (envs.Multi, error) {
	w, err := f.ShiftsFactory.NewMulti(split, i)
	return paid{envtest.Littering{Multi: w}}, err
}

// TestSeveralAgents trains, validates, publishes and resumes an agent in worlds of three agents
// that come and go, with wrappers and normalisation.
func TestSeveralAgents(t *testing.T) {
	list := kinds.All()
	list.Envs = append(list.Envs, workers)
	config := func(sets ...string) experiment.Config {
		doc, err := configs.Parse("shifts.yaml", []byte(shifts))
		if err == nil {
			err = doc.Set(sets...)
		}
		if err != nil {
			t.Fatal(err)
		}
		c := experiment.Defaults()
		if err := doc.Decode(&c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	e := portable.New()
	defer e.Close()
	dir := t.TempDir()
	plan, err := run.New(t.Context(), list, run.Job{Name: "shifts", Config: text(t, config()), Dir: filepath.Join(dir, "run")}, run.Options{Engine: e})
	if err != nil {
		t.Fatal(err)
	}
	defer plan.Close()
	s, err := plan.Train(t.Context())
	if err != nil || len(s.Runs) != 1 || s.Runs[0].Published == "" {
		t.Fatalf("%+v, %v", s, err)
	}
	train := func(name, from string, steps int64) (run.Result, string) {
		i := run.Job{Config: text(t, config("publish.when=never")), Dir: filepath.Join(dir, name), Checkpoint: from, EnvSteps: steps}
		r, err := i.Train(t.Context(), list, run.Options{Engine: e})
		if err != nil {
			t.Fatal(err)
		}
		return r, filepath.Join(i.Dir, r.Checkpoint)
	}
	whole, end := train("whole", "", 0)
	_, half := train("half", "", 450)
	rest, last := train("rest", half, 0)
	if got, want := manifest(t, last), manifest(t, end); whole.EnvSteps != 1200 || !reflect.DeepEqual(got.Files, want.Files) || !reflect.DeepEqual(got.Sections, want.Sections) || !reflect.DeepEqual(rest.Train, whole.Train) {
		t.Errorf("resumed: %s, expected %s", got.Sections, want.Sections)
	}
	n := 0
	for _, l := range metrics(t, filepath.Join(dir, "whole")) {
		if x, ok := l["rollout/reward_mean"]; ok {
			if n++; x != 1.0 || l["rollout/ep_rew_mean"] != l["rollout/ep_len_mean"] {
				t.Errorf("the mean reward of a step is %v, of episodes %v; of rows that took steps it is 1, and %v", x, l["rollout/ep_rew_mean"], l["rollout/ep_len_mean"])
			}
		}
	}
	if n != 8 {
		t.Errorf("%d means of rewards", n)
	}
	i := run.Job{Config: text(t, config("train.num_envs=4")), Dir: filepath.Join(dir, "four")}
	if _, err := i.Train(t.Context(), list, run.Options{Engine: e}); err == nil || !strings.Contains(err.Error(), "a vector of 4 rows, which is train.num_envs, of worlds of 3 agents") {
		t.Errorf("4 rows of worlds of 3 agents: %v", err)
	}
}
