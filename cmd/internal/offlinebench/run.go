package offlinebench

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/ope"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/run/recorded"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Data is how a data set is recorded.
type Data struct {
	Name string
	// Expert acts, or else the medium policy; Stochastic draws from its distribution.
	Expert, Stochastic    bool
	Noise, RandomEpisodes float64
}

// DataSets lists them.
func DataSets() []Data {
	return []Data{
		{Name: "mix", Stochastic: true, RandomEpisodes: 0.5},
		{Name: "medium", Stochastic: true},
		{Name: "noisy", Expert: true, Noise: 0.3},
	}
}

// held is the share of the episodes that are held out.
const held = 0.1

// Bench is where and how it is measured.
type Bench struct {
	Kinds  experiment.Kinds
	Engine engine.Compiler
	// Dir is the folder in which everything is kept.
	Dir string
	// Seeds are those of every method.
	Seeds []uint64
	// Say, unless nil, receives what begins, and Done is called each time that a policy is finished.
	Say  func(text string)
	Done func()
}

// Result is what one seed of a method has learnt; the JSON keys are stable.
type Result struct {
	Data   string `json:"data"`
	Method string `json:"method"`
	Seed   uint64 `json:"seed"`
	// Score is the mean return of episodes that nothing else has seen.
	Score float64 `json:"score"`
	// FQE is the value by the data, and ActionScore how near the policy is to the episodes held
	// out.
	FQE         float64 `json:"fqe"`
	ActionScore float64 `json:"action_score"`
	// Seconds are those of training, and FQESeconds those of fitted Q evaluation.
	Seconds    float64 `json:"seconds"`
	FQESeconds float64 `json:"fqe_seconds"`
	// Settings is the SHA-256 of everything that the numbers depend on but the program.
	Settings string `json:"settings"`
}

// Set is a data set with what was learnt from it; the JSON keys are stable.
type Set struct {
	Data string `json:"data"`
	// Behaviour is the mean return of the episodes.
	Behaviour   float64  `json:"behaviour_return"`
	Episodes    int64    `json:"episodes"`
	Transitions int64    `json:"transitions"`
	Results     []Result `json:"results"`
}

// Run measures a task. When ctx ends the error is ctx's, and the same call goes on.
func (b *Bench) Run(ctx context.Context, t Task) (list []Set, err error) {
	dir := filepath.Join(b.Dir, t.Name)
	medium, err := b.behave(ctx, t, filepath.Join(dir, "behaviour"))
	if err != nil {
		return nil, fmt.Errorf("%s: behaviour: %w", t.Name, err)
	}
	var learners []*learner
	defer func() {
		for _, l := range learners {
			err = errors.Join(err, l.close())
		}
	}()
	for _, d := range DataSets() {
		from, to := medium, filepath.Join(dir, "data", d.Name)
		if d.Expert {
			from = filepath.Join(dir, "behaviour")
		}
		err := b.record(ctx, t, d, from, to)
		if err == nil {
			var l *learner
			if l, err = b.newLearner(ctx, t, d, to); err == nil {
				learners = append(learners, l)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: data set %s: %w", t.Name, d.Name, err)
		}
	}
	// Seed after seed: with fewer of them what has been measured by then is a table, too.
	for _, seed := range b.Seeds {
		for _, l := range learners {
			for _, m := range methods() {
				if err := l.learn(ctx, m, seed, filepath.Join(dir, "results")); err != nil {
					return nil, fmt.Errorf("%s: data set %s: %s, seed %d: %w", t.Name, l.s.Data, m.Kind, seed, err)
				}
			}
		}
	}
	for _, l := range learners {
		list = append(list, l.s)
	}
	return list, nil
}

func (b *Bench) say(format string, args ...any) {
	if b.Say != nil {
		b.Say(fmt.Sprintf(format, args...))
	}
}

// behave trains the behaviour, and returns the checkpoint of its medium policy.
func (b *Bench) behave(ctx context.Context, t Task, dir string) (medium string, err error) {
	j, document := run.Job{Dir: dir, Sets: t.Sets}, t.Document
	if run.Holds(dir) {
		j, document = run.Job{Resume: dir}, ""
	}
	b.say("%s: the behaviour learns in %s", t.Name, dir)
	p, err := run.Open(ctx, b.Kinds, document, j, run.Options{Engine: b.Engine})
	if err != nil {
		return "", err
	}
	sum, err := p.Train(ctx)
	if err = errors.Join(err, p.Close()); err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return "", err
	}
	if n := len(sum.Runs); n != 1 {
		return "", fmt.Errorf("%d runs, expected 1", n)
	}
	return mediumOf(filepath.Join(dir, run.CheckpointDir))
}

// mediumOf returns the first checkpoint whose validation return has come a third of the way from
// that of the first one to the best one.
func mediumOf(dir string) (string, error) {
	list, err := checkpoint.List(dir)
	if err != nil {
		return "", err
	}
	scores, paths := []float64(nil), []string(nil)
	for _, e := range list {
		c, err := checkpoint.Open(e.Path)
		if err != nil {
			return "", err
		}
		if err := c.Close(); err != nil {
			return "", err
		}
		if c.Score != nil {
			scores, paths = append(scores, *c.Score), append(paths, e.Path)
		}
	}
	if len(scores) < 2 {
		return "", fmt.Errorf("%s: %d checkpoints with a validation return, expected two at least", dir, len(scores))
	}
	enough := scores[0] + (slices.Max(scores)-scores[0])/3
	i := slices.IndexFunc(scores[1:], func(x float64) bool { return x >= enough })
	return paths[1+max(i, 0)], nil
}

// record makes a data set unless it is there.
func (b *Bench) record(ctx context.Context, t Task, d Data, from, to string) (err error) {
	if _, err := os.Stat(filepath.Join(to, offline.ManifestFile)); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.say("%s: %s acts for the data set %s", t.Name, from, d.Name)
	e, err := run.NewEvaluation(b.Kinds, from, run.EvaluationOptions{Split: envs.Train, Sets: []string{"eval.deterministic=" + strconv.FormatBool(!d.Stochastic), "train.threads=1"}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	if err := e.Open(ctx, b.Engine); err != nil {
		return err
	}
	r, m, err := recorded.Recording(e)
	if err != nil {
		return err
	}
	r.Behaviour.Noise, r.Behaviour.RandomEpisodes = d.Noise, d.RandomEpisodes
	m.Behaviours = []offline.Behaviour{r.Behaviour}
	r.Envs, r.Transitions = 4, t.Transitions
	w, err := offline.Create(to, m)
	if err != nil {
		return err
	}
	if err := offline.Record(ctx, r, w); err != nil {
		return err
	}
	return w.Finish()
}

// newLearner looks at a data set.
func (b *Bench) newLearner(ctx context.Context, t Task, d Data, dir string) (*learner, error) {
	set, err := offline.Open(dir)
	if err != nil {
		return nil, err
	}
	r, err := set.Inspect(ctx, nil)
	if err != nil {
		return nil, err
	}
	return &learner{b: b, t: t, set: set, s: Set{Data: d.Name, Behaviour: r.Behaviours[0].Return, Episodes: r.Episodes, Transitions: r.Transitions}}, nil
}

// learn trains and evaluates a seed of a method unless there is its result.
func (l *learner) learn(ctx context.Context, m Method, seed uint64, dir string) error {
	cfg, digest, err := l.b.config(l.t, m, l.set, seed)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fmt.Sprintf("%s-%s-%d.json", l.s.Data, m.Kind, seed))
	r, err := known(path, digest)
	if errors.Is(err, fs.ErrNotExist) {
		l.b.say("%s: %s learns from %s, seed %d", l.t.Name, m.Kind, l.s.Data, seed)
		r, err = l.measure(ctx, m, cfg)
		r.Data, r.Settings = l.s.Data, digest
		if err == nil {
			err = errors.Join(os.MkdirAll(dir, 0o755), run.WriteJSON(path, r))
		}
	}
	if err != nil {
		return err
	}
	if l.s.Results = append(l.s.Results, r); l.b.Done != nil {
		l.b.Done()
	}
	return nil
}

// config is the document of a run, with the digest of everything that its result depends on.
func (b *Bench) config(t Task, m Method, set *offline.Dataset, seed uint64) (cfg experiment.Config, digest string, err error) {
	sets := []string{
		"agent={kind: " + m.Kind + "}", "train={num_envs: 1, threads: 1, validation: {every_steps: 0}, checkpoint: {every_steps: 0}}",
		fmt.Sprintf("train.total_env_steps=%d", t.Updates), fmt.Sprintf("seed=%d", seed),
	}
	cfg, _, err = b.Kinds.Load(t.Document, slices.Concat(sets, t.Methods, m.Sets))
	if err != nil {
		return cfg, "", err
	}
	text, err := configs.Marshal(cfg)
	if err != nil {
		return cfg, "", err
	}
	h := sha256.New()
	h.Write(text)
	fmt.Fprintln(h, set.Digest, held, t.FQEUpdates, t.FQEHidden, t.Episodes)
	return cfg, hex.EncodeToString(h.Sum(nil)), nil
}

// known reads a result that was measured before, with the same settings.
func known(path, digest string) (r Result, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	if r.Settings != digest {
		return r, fmt.Errorf("%s: it was measured with other settings or data; remove it, or choose another folder", path)
	}
	return r, nil
}

// learner trains the methods on a data set, with what they share.
type learner struct {
	b   *Bench
	t   Task
	set *offline.Dataset
	// s has what was learnt so far.
	s       Set
	factory envs.Factory
	// held, of the episodes, are held out, and judge compares with them; data are all of them.
	held  []bool
	judge *offline.Judge
	data  *ope.Data
	spec  envs.Spec
}

// open opens the environment and reads the data, once.
func (l *learner) open(ctx context.Context, cfg experiment.Config) (err error) {
	if l.factory != nil {
		return nil
	}
	if _, l.factory, _, err = l.b.Kinds.Open(ctx, cfg); err != nil {
		return err
	}
	if l.spec, err = offline.SpecOf(l.factory, envs.Train, 0); err != nil {
		return err
	}
	l.held = l.set.Split(held, 0)
	if l.judge, err = offline.NewJudge(ctx, l.set, l.spec, l.held); err != nil {
		return err
	}
	l.data, err = ope.Read(ctx, l.set, l.spec)
	return err
}

func (l *learner) close() error {
	if l.factory == nil {
		return nil
	}
	return l.factory.Close()
}

// measure trains and evaluates a seed of a method.
func (l *learner) measure(ctx context.Context, m Method, cfg experiment.Config) (r Result, err error) {
	if err := l.open(ctx, cfg); err != nil {
		return r, err
	}
	maker, _, err := l.b.Kinds.Agent(cfg.Agent)
	if err != nil {
		return r, err
	}
	setup := l.b.Kinds.Setup(cfg, l.b.Engine)
	if setup.Replay, err = offline.NewStore(ctx, l.set, l.spec, l.held, 1); err != nil {
		return r, err
	}
	r = Result{Method: m.Kind, Seed: cfg.Seed}
	start := time.Now()
	tr, err := train.New(ctx, l.factory, maker, setup, cfg.Train, train.Hooks{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	if _, err = tr.Run(ctx); err != nil {
		return r, err
	}
	r.Seconds = time.Since(start).Seconds()
	// A run that was stopped has saved nothing.
	if err := ctx.Err(); err != nil {
		return r, err
	}
	return r, l.evaluate(ctx, tr.Agent(), cfg, &r)
}

// evaluate evaluates a policy by the data, and then by acting.
func (l *learner) evaluate(ctx context.Context, a agents.Agent, cfg experiment.Config, r *Result) error {
	near, err := l.judge.Metrics(ctx, a)
	if err != nil {
		return err
	}
	r.ActionScore = near["action_score"]
	start := time.Now()
	policy, err := ope.Ask(ctx, a, l.b.Engine, l.data, false)
	if err != nil {
		return err
	}
	c := ope.Defaults()
	c.Estimators, c.Samples, c.Seed, c.Gamma = []string{ope.FQE}, 0, cfg.Seed, cmp.Or(l.set.Gamma, c.Gamma)
	c.FQE.Updates, c.FQE.Hidden, c.FQE.BatchSize, c.FQE.TargetEvery = l.t.FQEUpdates, l.t.FQEHidden, 128, fqeTargetEvery
	list, err := ope.Evaluate(ctx, c, l.data, policy, ope.Tools{Engine: l.b.Engine, Encoders: l.b.Kinds.Encoders})
	if err != nil {
		return err
	}
	r.FQE, r.FQESeconds = list[1].Value, time.Since(start).Seconds()
	res, err := evaluate.Episodes(ctx, l.factory, envs.Test, a, agents.Greedy, l.t.Episodes, cfg.Eval.MaxEpisodeSteps, rng.New(cfg.Seed).Split("test"))
	r.Score = res.Return
	return err
}

// fqeTargetEvery is the number of updates of an iteration of fitted Q evaluation: with so few, γ
// 0.99 leaves less than 2 % of where q began.
const fqeTargetEvery = 10
