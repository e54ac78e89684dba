package recorded

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// manifest is that of a data set of a document's environments, without episodes.
func manifest(c experiment.Config, spec envs.Spec, program string) (offline.Manifest, error) {
	m := offline.Describe(spec)
	env, err := configs.Marshal(struct {
		Env      configs.Kinded `yaml:"env"`
		Wrappers wrap.Config    `yaml:"wrappers"`
	}{c.Env, c.Wrappers})
	if err != nil {
		return m, err
	}
	m.Environment.Kind, m.Environment.Config, m.Program = c.Env.Kind, string(env), program
	if s, ok := c.Agent.Lookup("gamma"); ok {
		err = s.Decode(&m.Gamma)
	}
	return m, err
}

// Recording returns what lets the policy of the best validation of an opened evaluation act for a
// data set, with the manifest of one that has no episodes yet. The environment is that of the split,
// and limits of episodes are those of the section eval. What else the behaviour does is the caller's
// to add to both.
func Recording(e *run.Evaluation) (offline.Recording, offline.Manifest, error) {
	cfg := e.Config()
	limit := cfg.Eval.MaxEpisodeSteps
	spec, err := offline.SpecOf(e.Factory(), e.Split(), limit)
	if err != nil {
		return offline.Recording{}, offline.Manifest{}, err
	}
	m, err := manifest(cfg, spec, e.Program())
	if err != nil {
		return offline.Recording{}, m, err
	}
	if m.Parents, err = e.Parents(); err != nil {
		return offline.Recording{}, m, err
	}
	best, actors := e.Policies()[0], e.Actors()[0]
	b := offline.Behaviour{Algorithm: cfg.Agent.Kind, Policy: best.From, SHA256: best.SHA256, Stochastic: cfg.Eval.Mode().Draws(), Seed: cfg.Seed}
	return offline.Recording{
		Factory: e.Factory(), Split: e.Split(), Behaviour: b, Limit: limit,
		NewActor: func(n int) (agents.Actor, error) { return actors.NewActor(cfg.Eval.Mode(), n) },
	}, m, nil
}
