package curriculum

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/samples"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Config is the document of a curriculum.
type Config struct {
	// Seed is where all randomness outside of the layers' own runs descends from.
	Seed uint64 `yaml:"seed"`
	// Demonstrations is what layers learn from before they act; without competitors nothing is
	// pretrained.
	Demonstrations Demonstrations `yaml:"demonstrations,omitzero"`
	// Manager sets the goals of a day, Executor changes the baseline's answers, and Coordinator
	// weighs these changes. They train in this order.
	Manager     Layer `yaml:"manager,omitzero"`
	Executor    Layer `yaml:"executor,omitzero"`
	Coordinator Layer `yaml:"coordinator,omitzero"`
	// Rounds is how often every layer trains.
	Rounds     int        `yaml:"rounds"`
	Pool       Pool       `yaml:"pool"`
	Trial      Trial      `yaml:"trial"`
	Evaluation Evaluation `yaml:"evaluation"`
}

// Worlds says in what worlds a tournament is played.
type Worlds struct {
	// Configs is the number of configurations. PerWorld competitors meet in a world, 0 for all.
	Configs  int `yaml:"configs"`
	PerWorld int `yaml:"per_world,omitzero"`
	// Processes are the lengths of chains, which configurations have in turn, and Days the least
	// and the most of a world.
	Processes []int `yaml:"processes"`
	Days      []int `yaml:"days"`
}

// Demonstrations is a tournament whose logs are kept.
type Demonstrations struct {
	// Competitors are names of agents by rule, and directories of agents.
	Competitors []string `yaml:"competitors,omitempty"`
	Worlds      `yaml:",inline"`
	// Types are the classes of the agents that are learnt from; empty are those of all competitors.
	Types []string `yaml:"types,omitempty"`
}

// On reports whether there is something to learn from.
func (d *Demonstrations) On() bool { return len(d.Competitors) > 0 }

// Layer is how one layer of the agent is trained.
type Layer struct {
	// Pretrain has the sections agent, train and eval of an experiment of an offline algorithm; its
	// environment is that of Experiment, and the data set is made of the demonstrations: the
	// manager's goals, or the executor's residuals.
	Pretrain configs.Section `yaml:"pretrain,omitempty"`
	// Experiment is the document of the layer's runs, whose rivals are the pool and whose other
	// layers are the agent's. Without one the agent does without the layer.
	Experiment configs.Section `yaml:"experiment,omitempty"`
	// RoundSteps are the env steps of a round, over all environments.
	RoundSteps int64 `yaml:"round_steps,omitzero"`
	// First and Last are the rounds in which the layer trains, counted from 1; 0 are the first and
	// the last that there are. Before it has trained the agent does without it, and afterwards it
	// stays as it is. Where rounds were rolled back to an agent without it, it trains once more.
	First int `yaml:"first_round,omitzero"`
	Last  int `yaml:"last_round,omitzero"`
}

// trains reports whether the layer is to train in a round, counted from 0.
func (l *Layer) trains(round int) bool { return round+1 >= l.First && !l.past(round) }

// past reports whether a round is behind the last in which the layer is to train.
func (l *Layer) past(round int) bool { return l.Last > 0 && round >= l.Last }

// On reports whether the agent has the layer.
func (l *Layer) On() bool { return !l.Experiment.IsZero() }

// Pool is who layers train against.
type Pool struct {
	// Rivals are there from the beginning; Reserve joins one by one where the agent over-fits.
	// They are names of agents by rule, and directories of agents.
	Rivals  []string `yaml:"rivals"`
	Reserve []string `yaml:"reserve,omitempty"`
	// Selves is how many of what the agent was are rivals, too.
	Selves int `yaml:"selves"`
}

// Trial is the tournament after each round.
type Trial struct {
	Worlds `yaml:",inline"`
	// Patience is the number of rounds without a better agent after which training ends; 0 goes on
	// to the last.
	Patience int      `yaml:"patience"`
	Rollback Rollback `yaml:"rollback"`
}

// Rollback says how much worse than the best, and than what its round began with, an agent may be for
// the next round to go on from it. The best is the baseline before there is a better agent.
type Rollback struct {
	// Score is of the mean score, Breach of the share of days with a breach.
	Score  float64 `yaml:"score"`
	Breach float64 `yaml:"breach"`
	// Overflow is of the units that are in stock beyond what the lines use in a day.
	Overflow float64 `yaml:"overflow"`
	// WinRate is of the share of worlds that are won.
	WinRate float64 `yaml:"win_rate"`
}

// Evaluation is the tournament at the end.
type Evaluation struct {
	Worlds `yaml:",inline"`
	// Rivals are who is met beside the agent and the baseline.
	Rivals []string `yaml:"rivals"`
}

// Defaults returns the schedule that the shipped experiment scml has.
func Defaults() Config {
	w := func(n, per int) Worlds {
		return Worlds{Configs: n, PerWorld: per, Processes: []int{2, 3, 4}, Days: []int{50, 200}}
	}
	return Config{
		Seed: 1, Demonstrations: Demonstrations{Worlds: w(12, 0)}, Rounds: 10,
		Pool:       Pool{Rivals: []string{"penguin", "as0", "ultra", "baseline"}, Selves: 3},
		Trial:      Trial{Worlds: w(12, 3), Patience: 5, Rollback: Rollback{Score: 0.05, Breach: 0.05, Overflow: 3, WinRate: 0.1}},
		Evaluation: Evaluation{Worlds: w(30, 3), Rivals: []string{"penguin", "as0", "ultra"}},
	}
}

// Validate reports what is wrong with the document by itself.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("rounds", c.Rounds, 1)
	p.NotEmpty("pool.rivals", c.Pool.Rivals)
	p.AtLeast("pool.selves", c.Pool.Selves, 0)
	p.AtLeast("trial.patience", c.Trial.Patience, 0)
	p.NonNegative("trial.rollback.score", c.Trial.Rollback.Score)
	p.NonNegative("trial.rollback.breach", c.Trial.Rollback.Breach)
	p.NonNegative("trial.rollback.overflow", c.Trial.Rollback.Overflow)
	p.NonNegative("trial.rollback.win_rate", c.Trial.Rollback.WinRate)
	p.NotEmpty("evaluation.rivals", c.Evaluation.Rivals)
	for _, w := range []struct {
		key string
		on  bool
		Worlds
	}{{"demonstrations", c.Demonstrations.On(), c.Demonstrations.Worlds}, {"trial", true, c.Trial.Worlds}, {"evaluation", true, c.Evaluation.Worlds}} {
		p.Check(!w.on || len(w.Days) == 2, w.key+".days", "is %v, expected the least and the most", w.Days)
	}
	some := false
	for _, l := range c.layers() {
		some = some || l.On()
		if l.On() {
			p.AtLeast(l.name+".round_steps", l.RoundSteps, 1)
			p.InRange(l.name+".first_round", l.First, 0, float64(c.Rounds))
			p.Check(l.Last == 0 || l.Last >= max(1, l.First) && l.Last <= c.Rounds, l.name+".last_round", "is %d, expected 0 or a round from %d to %d", l.Last, max(1, l.First), c.Rounds)
		}
		p.Check(l.On() || l.Pretrain.IsZero() && l.RoundSteps == 0, l.name+".experiment", "is missing")
		p.Check(l.Pretrain.IsZero() || l.samples != "", l.name+".pretrain", "there are no samples for this layer")
		p.Check(l.Pretrain.IsZero() || c.Demonstrations.On(), l.name+".pretrain", "there is nothing to learn from: demonstrations.competitors is missing")
	}
	p.Check(some, "manager.experiment", "is missing, and no other layer is trained either")
	for r := range max(0, c.Rounds) {
		p.Check(!some || slices.ContainsFunc(c.on(), func(l layer) bool { return l.trains(r) }), "rounds", "no layer trains in round %d", r+1)
	}
	p.Check(!c.Coordinator.On() || c.Executor.On(), "coordinator.experiment", "it weighs what the executor changes, which has no experiment")
	p.Check(!c.Coordinator.On() || c.Coordinator.First >= c.Executor.First, "coordinator.first_round", "is %d, and the executor, which it weighs, begins in round %d", c.Coordinator.First, c.Executor.First)
	return p.Err()
}

// spec is the tournament of competitors in worlds.
func (w *Worlds) spec(seed uint64, competitors []string) league.Spec {
	s := league.Defaults()
	s.Competitors, s.Configs, s.PerWorld, s.Processes, s.Seed = competitors, w.Configs, min(w.PerWorld, len(competitors)), w.Processes, seed
	if len(w.Days) == 2 {
		s.Days = [2]int(w.Days)
	}
	return s
}

// layer is one of the agent's, with its place in it.
type layer struct {
	*Layer
	// name is its key in the document, of its directories and of its file; env and samples are the
	// environment that it trains in and the data set that it is pretrained on, if there is one.
	name, env, samples string
	file               func(d *scml.Description) *string
}

// layers are those of the agent in the order in which they train.
func (c *Config) layers() []layer {
	return []layer{
		{&c.Manager, "manager", "scml_goals", samples.MacroDir, func(d *scml.Description) *string { return &d.Manager }},
		{&c.Executor, "executor", "scml_threads", samples.ResidualDir, func(d *scml.Description) *string { return &d.Executor }},
		{&c.Coordinator, "coordinator", "scml_threads", "", func(d *scml.Description) *string { return &d.Coordinator }},
	}
}

// on are the layers that the agent has.
func (c *Config) on() (list []layer) {
	for _, l := range c.layers() {
		if l.On() {
			list = append(list, l)
		}
	}
	return list
}

// document is the experiment of a layer's runs, whose schedules last for all of its rounds.
func (c *Config) document(l layer) (*configs.Document, error) {
	doc, err := section(l.name+".experiment", l.Experiment)
	if err != nil {
		return nil, err
	}
	rounds := int64(0)
	for r := range c.Rounds {
		if l.trains(r) {
			rounds++
		}
	}
	return doc, doc.SetValue("train.total_env_steps", l.RoundSteps*rounds)
}

// pretraining is the experiment of an offline run of a layer, on the samples in a folder.
func (c *Config) pretraining(l layer, folder string) (*configs.Document, error) {
	doc, err := section(l.name+".pretrain", l.Pretrain)
	if err != nil {
		return nil, err
	}
	for _, key := range []string{"env", "dataset.path"} {
		if _, ok := doc.Lookup(key); ok {
			return nil, l.Pretrain.Errorf(key, "follows from the layer: leave this key out")
		}
	}
	of, err := c.document(l)
	if err != nil {
		return nil, err
	}
	env, ok := of.Lookup("env")
	if !ok {
		return nil, l.Experiment.Errorf("env", "is missing")
	}
	return doc, errors.Join(doc.SetValue("env", env), doc.SetValue("dataset.path", filepath.Join(folder, l.samples)))
}

// section is a section as a document of its own, with absolute paths.
func section(name string, s configs.Section) (*configs.Document, error) {
	text, err := configs.Marshal(s)
	if err != nil {
		return nil, err
	}
	doc, err := configs.Parse(name, text)
	if err != nil {
		return nil, err
	}
	return doc, experiment.Absolute(doc)
}

// absolute makes the paths of agents absolute, so that the document means the same from any folder.
// A value without a directory is the name of an agent.
func (c *Config) absolute() (err error) {
	for _, list := range [][]string{c.Demonstrations.Competitors, c.Pool.Rivals, c.Pool.Reserve, c.Evaluation.Rivals} {
		for i, name := range list {
			if filepath.Base(name) == name {
				continue
			}
			if list[i], err = objects.Abs(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Decode decodes the document of a curriculum that was read at a path.
func Decode(doc *configs.Document, path string) (Config, error) {
	c := Defaults()
	if _, ok := doc.Lookup("env"); ok {
		return c, fmt.Errorf("%s is an experiment; expected the document of a curriculum, with the keys manager, rounds and pool", path)
	}
	return c, doc.Decode(&c)
}
