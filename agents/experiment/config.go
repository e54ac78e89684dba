package experiment

import (
	"context"
	"errors"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/engine"
)

// Config is a run's document.
type Config struct {
	// Seed is where all randomness descends from. Seeds, where given, makes several runs, one for
	// each, instead.
	Seed  uint64   `yaml:"seed"`
	Seeds []uint64 `yaml:"seeds,omitempty"`
	// Env is the environment.
	Env configs.Kinded `yaml:"env" kinds:"env"`
	// Wrappers stand between the environment and the agent.
	Wrappers wrap.Config `yaml:"wrappers"`
	// Agent is the algorithm, with its networks.
	Agent configs.Kinded  `yaml:"agent" kinds:"algo"`
	Train train.Config    `yaml:"train"`
	Eval  evaluate.Config `yaml:"eval"`
	// Dataset is what the agent learns from, beside the environment or without it; absent for the
	// environment alone.
	Dataset *replay.Dataset `yaml:"dataset,omitempty"`
	// Replay is where an off-policy agent keeps transitions in place of a replay of its own; absent
	// for its own.
	Replay *replay.Served `yaml:"replay,omitempty"`
	// Publish says when the policy is published, and what is checked before.
	Publish Publish `yaml:"publish"`
	// ChosenFrom says what the document was chosen from; absent where nobody has searched for it.
	ChosenFrom *ChosenFrom `yaml:"chosen_from,omitempty"`
	// Tune is what a search for hyper-parameters looks through; nothing else reads it.
	Tune configs.Section `yaml:"tune,omitempty" section:"tune"`
}

// ChosenFrom is what a search for hyper-parameters writes into the document that it has found, so
// that its runs are evaluated as the best of that many trials. Nothing is computed from it but
// that.
type ChosenFrom struct {
	// Trials is the number of configurations that were evaluated.
	Trials int `yaml:"trials"`
	// SharpeVariance is the variance between their annual Sharpe ratios on the validation split; 0
	// where the search was for another metric.
	SharpeVariance float64 `yaml:"sharpe_variance"`
}

// Defaults returns the document's defaults; the environment and the agent must be named.
func Defaults() Config {
	return Config{Seed: 42, Wrappers: wrap.Defaults(), Train: train.Defaults(), Eval: evaluate.Defaults(), Publish: Publish{When: AtEnd, Observations: bake.Observations}}
}

// YAML is the document as text, as jobs have it.
func (c Config) YAML() (string, error) {
	text, err := configs.Marshal(c)
	return string(text), err
}

// Validate reports what the sections themselves do not: a missing part, and seeds given twice.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.Env.Kind != "", "env.kind", "required: the name of an environment, such as trading")
	p.Check(c.Agent.Kind != "", "agent.kind", "required: the name of an algorithm, such as a2c")
	if f := c.ChosenFrom; f != nil {
		p.AtLeast("chosen_from.trials", f.Trials, 1)
		p.NonNegative("chosen_from.sharpe_variance", f.SharpeVariance)
	}
	p.Check(!c.Train.Actors.On() || !c.Wrappers.Normalize.On(), "train.actors.count", "cannot be combined with wrappers.normalize, whose statistics would be those of one actor")
	if c.Dataset != nil {
		p.Check(!c.Train.Actors.On(), "train.actors.count", "cannot be combined with dataset")
		p.Check(!c.Wrappers.Normalize.On(), "wrappers.normalize", "cannot be combined with dataset: the episodes have observations as the environment gives them")
	}
	if c.Replay != nil {
		p.Check(c.Dataset == nil, "replay", "cannot be combined with dataset")
	}
	seen := map[uint64]bool{}
	for _, s := range c.Seeds {
		p.Check(!seen[s], "seeds", "%d is given twice", s)
		seen[s] = true
	}
	return p.Err()
}

// Load reads a document with edits, such as agent.gamma=0.9, and makes its paths absolute. A path
// that does not exist but is the name of a shipped experiment ("qtmrl" or "qtmrl.yaml") opens that.
// What the document's kinds can be told is not looked at; see [Kinds.Load].
func Load(path string, sets []string) (Config, *configs.Document, error) {
	return load(Document, path, sets, func(doc *configs.Document) (Config, error) {
		c := Defaults()
		return c, doc.Decode(&c)
	})
}

func load(read func(path string) (*configs.Document, error), path string, sets []string, decode func(doc *configs.Document) (Config, error)) (Config, *configs.Document, error) {
	doc, err := read(path)
	if err == nil {
		err = doc.Set(sets...)
	}
	if err == nil {
		err = Absolute(doc)
	}
	if err != nil {
		return Defaults(), nil, err
	}
	c, err := decode(doc)
	return c, doc, err
}

// Open makes the parts that a document names. The caller closes the factory. The returned Config
// has the effective parameters of environment and agent, defaults included: written out, it is the
// recipe of the run.
func (k Kinds) Open(ctx context.Context, c Config) (Config, envs.Factory, agents.Maker, error) {
	maker, agent, err := k.Agent(c.Agent)
	if err != nil {
		return c, nil, nil, err
	}
	c.Agent = agent
	factory, err := envs.Open(ctx, k.Envs, c.Env)
	if err != nil {
		return c, nil, nil, err
	}
	if u, ok := factory.(interface {
		UseEngine(open func(context.Context) (engine.Compiler, error))
	}); ok && k.Engine != nil {
		u.UseEngine(k.Engine)
	}
	config := factory.Config()
	wrapped, err := k.preprocess(factory, c.Wrappers)
	if err == nil {
		c.Env, err = configs.NewKinded(c.Env.Kind, config)
	}
	if err != nil {
		return c, nil, nil, errors.Join(err, factory.Close())
	}
	return k.Complete(c, wrapped), wrapped, maker, nil
}
