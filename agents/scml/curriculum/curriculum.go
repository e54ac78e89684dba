package curriculum

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/scml/league"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Files of a curriculum's directory.
const (
	// ConfigFile has the document, RoundsFile a [Round] for each that has ended.
	ConfigFile = "scml.yaml"
	RoundsFile = "rounds.jsonl"
	// EvaluationFile is the [league.Report] of the evaluation.
	EvaluationFile = "evaluation.json"
	// AgentDir is the published agent.
	AgentDir = "agent"

	demonstrationsDir = "demonstrations"
	samplesDir        = "samples"
	pretrainDir       = "pretrain"
	roundsDir         = "rounds"
	trialFile         = "trial.json"
	tournamentFile    = "tournament.json"
)

// Options say where and how an agent is trained.
type Options struct {
	Kinds experiment.Kinds
	// Run are the options of every run: engine, program and hooks.
	Run run.Options
	// Dir is a new directory; without one it is the first of runs/NAME-1, runs/NAME-2 … that does
	// not exist. Resume is the directory of a curriculum to go on with, instead.
	Dir, Resume string
	// Sets edit the document.
	Sets []string
	// Workers is how many processors tournaments are played on. Results do not depend on it.
	Workers int
	// Stage, unless nil, is called when a stage begins, with the unit that it counts and how much
	// of it there is to do. The function that it returns receives how much is done.
	Stage func(name, unit string, total int64) (done func(n int64))
	// Rounded receives a round that has ended, Note a message for the user.
	Rounded func(s Summary)
	Note    func(text string)
}

// Curriculum trains an agent in a directory.
type Curriculum struct {
	o      Options
	c      Config
	ledger study.Ledger
	roster *scml.Roster
	key    rng.Key
	// shape is what the agent's description says beside its files.
	shape  scml.Description
	log    *study.Log[Round]
	rounds []Round
	// evaluation is nil before the end.
	evaluation *league.Report
}

// Open reads the document in a file, or the shipped one of that name, and finds out what does not
// fit before anything is played or trained. One that is resumed takes no path. Nothing is written
// before [Curriculum.Begin]. Close the curriculum after use.
func Open(ctx context.Context, path string, o Options) (_ *Curriculum, err error) {
	c := &Curriculum{o: o, ledger: study.Ledger{Kind: "curriculum", File: ConfigFile, Dir: o.Dir, Resume: o.Resume}}
	if c.o.Note == nil {
		c.o.Note = func(string) {}
	}
	if c.o.Stage == nil {
		c.o.Stage = func(string, string, int64) func(int64) { return func(int64) {} }
	}
	c.roster = scml.NewRoster(func(context.Context) (engine.Compiler, error) { return o.Run.Engine, nil })
	if err = c.read(path); err == nil {
		c.key = rng.New(c.c.Seed).Split("scml")
		err = c.check(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// read reads the document of a new curriculum, or of one that is resumed.
func (c *Curriculum) read(path string) error {
	doc, at, err := c.ledger.Read(path, c.o.Kinds.Read, len(c.o.Sets))
	if err == nil {
		err = doc.Set(c.o.Sets...)
	}
	if err == nil {
		c.c, err = Decode(doc, at)
	}
	if err == nil {
		err = c.c.absolute()
	}
	return err
}

// check opens whatever the document names.
func (c *Curriculum) check(ctx context.Context) (err error) {
	// The agent of the layers that are there already when one trains; nobody plays with it.
	standIn, err := os.MkdirTemp("", "onnxrl-scml-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(standIn)) }()
	c.shape = scml.Description{Layout: scml.Layout, Goal: scml.FullGoal, Horizon: scml.Horizon}
	for _, l := range c.c.on() {
		doc, err := c.c.document(l)
		if err == nil && len(c.c.on()) > 1 {
			err = errors.Join(run.WriteJSON(filepath.Join(standIn, scml.DescriptionFile), c.shape), doc.SetValue("env.layers", standIn))
		}
		if err != nil {
			return err
		}
		cfg, err := c.o.Kinds.Decode(doc)
		if err != nil {
			return err
		}
		if cfg.Env.Kind != l.env {
			return l.Experiment.Errorf("env.kind", "is %q, expected %s, in which this layer trains", cfg.Env.Kind, l.env)
		}
		full, factory, _, err := c.o.Kinds.Open(ctx, cfg)
		if err == nil {
			err = factory.Close()
		}
		if err != nil {
			return fmt.Errorf("%s.experiment: %w", l.name, err)
		}
		if err := c.take(l, full.Env); err != nil {
			return err
		}
		*l.file(&c.shape) = l.name + ".onnx"
		if l.Pretrain.IsZero() {
			continue
		}
		if doc, err = c.c.pretraining(l, samplesDir); err == nil {
			_, err = c.o.Kinds.Decode(doc)
		}
		if err != nil {
			return err
		}
	}
	c.shape.Manager, c.shape.Executor, c.shape.Coordinator = "", "", ""
	var p configs.Problems
	if d := &c.c.Demonstrations; d.On() {
		s := d.spec(0, d.Competitors)
		s.Find = c.roster.Find
		p.Join("demonstrations", s.Validate())
	}
	for key, list := range sorted.All(map[string][]string{"pool.rivals": c.c.Pool.Rivals, "pool.reserve": c.c.Pool.Reserve, "evaluation.rivals": c.c.Evaluation.Rivals}) {
		for i, name := range list {
			if _, err := c.roster.Find(name); err != nil {
				p.Addf(fmt.Sprintf("%s[%d]", key, i), "%v", err)
			}
		}
	}
	// Competitors were looked at, and the agent is not there yet.
	anybody := func(string) (*opponents.Kind, error) { return &scml.Baseline, nil }
	for key, s := range sorted.All(map[string]league.Spec{"trial": c.c.Trial.spec(0, append([]string{nameAgent, nameBest}, c.c.Pool.Rivals...)), "evaluation": c.c.Evaluation.spec(0, append([]string{nameAgent, nameBest}, c.c.Evaluation.Rivals...))}) {
		s.Find = anybody
		p.Join(key, s.Validate())
	}
	return p.Err()
}

// take reads what the agent's description says of a layer from its environment.
func (c *Curriculum) take(l layer, env configs.Kinded) error {
	switch l.name {
	case "manager":
		return lookup(env, map[string]any{"goal": &c.shape.Goal, "horizon": &c.shape.Horizon})
	case "executor":
		return lookup(env, map[string]any{"direct": &c.shape.Direct})
	}
	return nil
}

// lookup decodes some of the keys of a section.
func lookup(s configs.Kinded, to map[string]any) error {
	for key, v := range to {
		at, ok := s.Lookup(key)
		if !ok {
			return fmt.Errorf("env.%s is missing", key)
		}
		if err := at.Decode(v); err != nil {
			return err
		}
	}
	return nil
}

// Dir is the directory. Until [Curriculum.Begin] has found a free one it may be empty.
func (c *Curriculum) Dir() string { return c.ledger.Dir }

// Begin makes the directory of a new curriculum, or reads how far a resumed one has come.
func (c *Curriculum) Begin() (err error) {
	if err := c.ledger.Begin(); err != nil {
		return err
	}
	if err := c.ledger.Describe(c.c); err != nil {
		return err
	}
	path := filepath.Join(c.ledger.Dir, RoundsFile)
	if c.log, err = study.OpenLog[Round](path); err != nil {
		return err
	}
	c.rounds = c.log.Records()
	for i, r := range c.rounds {
		if r.Round != i {
			return fmt.Errorf("%s:%d: it is of round %d, expected %d", path, i+1, r.Round, i)
		}
	}
	return nil
}

// Close frees what the curriculum has opened.
func (c *Curriculum) Close() error { return errors.Join(c.roster.Close(), c.ledger.Close()) }

// Train goes through the stages that are left. When ctx ends what runs saves its state, and the
// error is ctx's.
func (c *Curriculum) Train(ctx context.Context) error {
	if err := c.pretrain(ctx); err != nil {
		return err
	}
	for !c.done() {
		if err := c.round(ctx); err != nil {
			return fmt.Errorf("round %d: %w", len(c.rounds)+1, err)
		}
		if c.o.Rounded != nil {
			c.o.Rounded(c.Summarize())
		}
	}
	if err := c.publish(ctx); err != nil {
		return fmt.Errorf("publish the agent: %w", err)
	}
	return c.evaluate(ctx)
}

// done reports whether there is no other round: all were, or too many without a better agent since
// all layers train.
func (c *Curriculum) done() bool {
	n, since := len(c.rounds), best(c.rounds)
	for _, l := range c.c.on() {
		since = max(since, l.First-2)
	}
	return n >= c.c.Rounds || c.c.Trial.Patience > 0 && n-1-since >= c.c.Trial.Patience
}

// best is the round after which the agent was the best so far, −1 before one is better than the
// baseline.
func best(rounds []Round) int {
	for i := len(rounds) - 1; i >= 0; i-- {
		if rounds[i].Decision == Better {
			return i
		}
	}
	return -1
}

// roundDir is the directory of a round.
func (c *Curriculum) roundDir(round int) string {
	return filepath.Join(c.ledger.Dir, roundsDir, fmt.Sprintf("%04d", round+1))
}
