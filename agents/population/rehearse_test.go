package population

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestRefusedBeforePretraining: what the experts or the routers cannot do with the encoder that is
// going to be pretrained is found before that, and nothing is written.
func TestRefusedBeforePretraining(t *testing.T) {
	const expert = `
seed: 1
env:
  kind: trading
  window: 4
  actions: weights
  episode: {kind: random, length: 20}
  data:
    synthetic: {kind: noise, seed: 3, bars: 300, assets: 2}
    features: {prices: relative, volume: log}
    split: {train: [2000-01-03, 2000-08-31], valid: [2000-09-01, 2000-11-01], test: [2000-11-02, 2001-01-10]}
agent: {kind: sac, encoder: {kind: mlp, hidden: [4]}, lora: {rank: 2}, hidden: [4], learning_starts: 10, buffer_size: 100, batch_size: 4}
train: {num_envs: 2, total_env_steps: 40, threads: 1}
publish: {observations: 64, allow_ties: true}
`
	const whole = `
pretrain:
  stride: 10
  fit:
    network: {encoder: {kind: mlp, hidden: [4]}, outputs: {return: 1}}
    loss: [{output: return, kind: mse}]
    epochs: 1
  router: true
experts: {base: expert.yaml, population: 2, interval_steps: 20, generations: 2, strategy: {kind: random_search}, diversity: {threshold: 0}, space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}}}
router:
  interval_steps: 16
  every: 2
  experiment:
    env: {kind: meta, segment: 5}
    agent: {kind: ppo, n_steps: 8, batch_size: 8, n_epochs: 1, hidden: [4]}
    train: {num_envs: 2, total_env_steps: 16, threads: 1}
    publish: {observations: 64, allow_ties: true}
`
	for _, c := range []struct{ set, says string }{
		{},
		{"agent.lora.target=[nowhere]", `experts: `},
		{"router.experiment.agent.lora={rank: 2, target: [nowhere]}", `router.experiment: `},
	} {
		var sets []string
		if c.set != "" {
			sets = append(sets, c.set)
		}
		err := rehearsed(t, expert, whole, sets...)
		if c.set == "" && err != nil || c.set != "" && (err == nil || !strings.HasPrefix(err.Error(), c.says) || !strings.Contains(err.Error(), `target "nowhere" matches no`)) {
			t.Errorf("%s: %v", c.set, err)
		}
	}
}

// TestExpertsWithSkillsAreRehearsed: the router's experts act in environments without skills, so
// that what they are rehearsed with has its own inside, too.
func TestExpertsWithSkillsAreRehearsed(t *testing.T) {
	err := rehearsed(t, `
seed: 4
env: {kind: pendulum}
wrappers: {time_limit: 20, skill: {dim: 4}}
agent: {kind: sac, hidden: [4], learning_starts: 10, buffer_size: 100, batch_size: 4, diversity: {kind: diayn, features: [action], hidden: [4]}}
train: {num_envs: 2, total_env_steps: 40, threads: 1}
publish: {observations: 64}
`, `
experts: {base: expert.yaml, population: 2, interval_steps: 20, generations: 2, strategy: {kind: random_search}, diversity: {threshold: 0}, space: {agent.learning_rate: {kind: loguniform, low: 1.0e-4, high: 1.0e-2}}}
router:
  interval_steps: 16
  every: 2
  experiment:
    env: {kind: meta, segment: 4}
    agent: {kind: ppo, n_steps: 8, batch_size: 8, n_epochs: 1, hidden: [4]}
    train: {num_envs: 2, total_env_steps: 16, threads: 1}
    publish: {observations: 64, allow_ties: true}
`)
	if err != nil {
		t.Error(err)
	}
}

// rehearsed rehearses a population of experts of a document and returns what refuses it. Nothing is
// left in its directory.
func rehearsed(t *testing.T, expert, whole string, sets ...string) error {
	t.Helper()
	folder := t.TempDir()
	for name, text := range sorted.All(map[string]string{"expert.yaml": expert, "population.yaml": whole}) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	e := portable.New()
	o := Options{Kinds: kinds.All(), Dir: filepath.Join(t.TempDir(), "population"), Sets: sets}
	o.Run.Engine = e
	p, err := Open(t.Context(), filepath.Join(folder, "population.yaml"), o)
	if err != nil {
		t.Fatal(sets, err)
	}
	refused := p.Rehearse(t.Context())
	if _, err := os.Stat(o.Dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v: a rehearsal has left %s: %v", sets, o.Dir, err)
	}
	if err := errors.Join(p.Close(), e.Close()); err != nil {
		t.Error(err)
	}
	return refused
}
