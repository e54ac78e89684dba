package train

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Trainer is one run of one seed. It is not safe for concurrent use; several trainers may share a
// factory and an engine.
type Trainer struct {
	cfg   Config
	hooks Hooks
	// key is what actions are drawn from, worlds what environments are.
	key    rng.Key
	worlds rng.Key
	// env is what the agent acts in: base, or norm around it.
	env, base vector.Env
	norm      *vector.Normalized
	agent     agents.Agent
	actor     agents.Actor
	learner   agents.Learner
	// group acts where actors are configured, and nothing of env, base, norm, actor and counter is
	// there then.
	group *actors.Group
	maker agents.Maker
	// setup is what the agent was made with.
	setup   agents.Setup
	profile *agents.Profile
	each    func(*vector.Batch) error
	// counter counts a round into tally, and success says that episodes can be one.
	counter *actors.Counter
	tally   actors.Tally
	success bool

	s        state
	episodes window
	// validation is the newest evaluation, best the one with the highest score, and kept the
	// parameters it was of, with keptNorm the statistics. usesBest says that the policy has them.
	validation, best *Evaluation
	kept             snapshot
	keptNorm         []wrap.Normalizer
	usesBest         bool

	// until is where the present call pauses.
	until int64
	// saved is the env step of the newest checkpoint, -1 before the first; called that of the
	// newest call of each callback. behind says that the newest checkpoint lacks an evaluation.
	saved  int64
	called []int64
	behind bool
	// warned says that the log has been told that the environments cannot be saved.
	warned bool
	// whole says of an error that the state can be saved all the same, and envsLost that it has no
	// environments any more.
	whole, envsLost bool
	outside         outside
	// told is when Hooks.Progress was called last.
	told   time.Time
	last   agents.Metrics
	values map[string]float64
	// began and first are where this process started to count, for time/fps and Result.Taken;
	// judged is the time since that evaluations have taken.
	began  time.Time
	first  int64
	judged time.Duration
	pace   pace
}

// New makes the environments of the train split and the agent. Of the setup, Engine, Encoders,
// Init, Log and Key are the caller's; the others are filled in. The factory remains the caller's
// and must outlive the trainer, which is to be closed after use.
func New(ctx context.Context, f envs.Factory, m agents.Maker, s agents.Setup, cfg Config, hooks Hooks) (_ *Trainer, err error) {
	if err := configs.Validate(cfg); err != nil {
		return nil, fmt.Errorf("train: %w", err)
	}
	if hooks.Log == nil {
		hooks.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.NumEnvs == 0 && s.Offline() {
		cfg.NumEnvs = 1
	}
	cfg = cfg.For(f).settle(runtime.GOMAXPROCS(0))
	for i, c := range hooks.Every {
		if c.Steps < 1 || c.Do == nil {
			return nil, fmt.Errorf("train: callback %d: every %d env steps, expected at least 1 and something to do", i, c.Steps)
		}
	}
	t := &Trainer{
		cfg: cfg, hooks: hooks, key: s.Key.Split(actKey), worlds: s.Key.Split(envsKey), kept: snapshot{}, until: math.MaxInt64, saved: -1, values: map[string]float64{}, profile: s.Profile, called: make([]int64, len(hooks.Every)),
	}
	t.s.Evaluated = -1
	if t.hooks.Patience == 0 {
		t.hooks.Patience = 5 * time.Second
	}
	t.each = t.count
	defer func() {
		if err != nil {
			err = fmt.Errorf("train: %w", errors.Join(err, t.Close()))
		}
	}()
	if err := t.openEnvs(f, s.Offline()); err != nil {
		return nil, err
	}
	spec := t.spec()
	t.episodes, t.success = newWindow(len(spec.Costs)), actors.Successes(&spec)
	s.Updating = func(done, of int) { t.progress(float64(done) / float64(of)) }
	s = cfg.setup(s, spec)
	if s.Log == nil {
		s.Log = hooks.Log
	}
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Offline() && cfg.NumEnvs != 1 {
		return nil, fmt.Errorf("num_envs: %d environments, and a run that learns from data alone counts the rounds of one", cfg.NumEnvs)
	}
	if s.Replay != nil && t.norm != nil && !s.Offline() {
		s.Replay = replay.Normalized(s.Replay, func() replay.Normalizer { return t.norm })
	}
	t.setup, t.maker = s, m
	if t.agent, err = m.New(ctx, s); err != nil {
		return nil, err
	}
	t.learner = t.agent.Learner()
	if t.group != nil {
		return t, actors.Accepts(t.learner)
	}
	return t, t.newActor()
}

// The names of the keys below a run's.
const (
	actKey   = "act"
	envsKey  = "envs"
	agentKey = "agent"
)

// setup fills in what the caller of New leaves open.
func (c Config) setup(s agents.Setup, spec envs.Spec) agents.Setup {
	s.Spec, s.Envs, s.Threads, s.TotalEnvSteps, s.Key = spec, c.NumEnvs, c.Threads, c.TotalEnvSteps, s.Key.Split(agentKey)
	return s
}

// newActor makes the actor that explores, in place of the one that there was.
func (t *Trainer) newActor() (err error) {
	if t.group != nil {
		return nil
	}
	if t.actor != nil {
		// Resources of only one actor, such as the states of a memory, are free then.
		err, t.actor = t.actor.Close(), nil
	}
	if err == nil {
		t.actor, err = t.agent.NewActor(agents.Explore, t.cfg.NumEnvs)
	}
	return err
}

// settle decides what is left open.
func (c Config) settle(threads int) Config {
	if c.Threads == 0 {
		c.Threads = threads
	}
	if c.Validation.Metric == "" {
		c.Validation.Metric = meanReward
	}
	return c
}

// agentOf makes a vector of one agent of a world.
func agentOf(f envs.Factory, o vector.Options) (vector.Env, error) {
	list, err := envs.Make(f, envs.Train, 1)
	if err != nil {
		return nil, err
	}
	v, err := vector.New(list, o)
	if err != nil {
		return nil, errors.Join(err, list[0].Close())
	}
	return v, nil
}

// openEnvs makes the vector and begins its episodes.
func (t *Trainer) openEnvs(f envs.Factory, offline bool) (err error) {
	// With fewer threads than processors, other runs may be using the rest.
	workers := 0
	if t.cfg.Threads < runtime.GOMAXPROCS(0) {
		workers = 1
	}
	o := vector.Options{Workers: workers, Train: true, Log: t.hooks.Log}
	if t.cfg.Actors.On() {
		if offline {
			return errors.New("actors.count: a run that learns from data alone has none")
		}
		t.group, err = actors.NewGroup(t.cfg.Actors, f, t.cfg.NumEnvs, actors.Keys{Act: t.key, Worlds: t.worlds}, t.hooks.Actors, o)
		return err
	}
	if _, several := wrap.FindFactory[envs.MultiFactory](f); several && offline {
		// Nothing is stepped, and data are those of one agent at a time.
		t.base, err = agentOf(f, o)
	} else {
		t.base, err = vector.Open(f, envs.Train, t.cfg.NumEnvs, o)
	}
	if err != nil {
		return err
	}
	t.env = t.base
	t.counter = actors.NewCounter(t.base.Spec(), t.cfg.NumEnvs, t.hooks.Log)
	if t.cfg.Normalize.On() {
		if t.norm, err = vector.Normalize(t.base, t.cfg.Normalize); err != nil {
			return err
		}
		t.env = t.norm
	}
	if err := t.env.Reset(t.worlds); err != nil {
		return err
	}
	t.env = &watched{t.env, &t.outside}
	return nil
}

// spec describes one of the environments, as the agent sees them.
func (t *Trainer) spec() envs.Spec {
	if t.group != nil {
		return t.group.Spec()
	}
	return t.env.Spec()
}

// Config returns the configuration in force: what was left open in the given one is decided.
func (t *Trainer) Config() Config { return t.cfg }

// Agent returns the agent, which ends with the trainer, for environments as the factory makes them.
// Where observations are normalised its actors normalise them, by the statistics of the time when
// an actor is made, or after [Trainer.UseBest] those of the best policy.
func (t *Trainer) Agent() agents.Agent {
	if list := t.Normalizers(); len(list) > 0 {
		return &normalized{Agent: t.agent, spec: t.base.Spec(), list: list}
	}
	return t.agent
}

// Normalizers returns the present statistics of observations, by field, or after [Trainer.UseBest]
// those of the best policy; none where observations are not normalised.
func (t *Trainer) Normalizers() []wrap.Normalizer {
	switch {
	case t.norm == nil:
		return nil
	case t.usesBest:
		return t.keptNorm
	}
	return t.norm.Normalizers()
}

// Profile returns the profile that the setup brought, which may be nil.
func (t *Trainer) Profile() *agents.Profile { return t.profile }

// EnvSteps returns the env steps taken since the beginning of the run, over all environments.
func (t *Trainer) EnvSteps() int64 { return t.s.Rounds * int64(t.cfg.NumEnvs) }

// PlannedEnvSteps returns the env steps after which the run ends by itself: Config.TotalEnvSteps,
// or more where the last learner step takes more rounds. It is the former, too, of a learner that
// does not say how many it takes.
func (t *Trainer) PlannedEnvSteps() int64 {
	per := t.StepEnvSteps()
	return (t.cfg.TotalEnvSteps + per - 1) / per * per
}

// StepEnvSteps returns how many env steps a learner step is taken after, over all environments:
// those of one round for a learner that does not say it.
func (t *Trainer) StepEnvSteps() int64 {
	per := int64(t.cfg.NumEnvs)
	if s, ok := t.learner.(agents.Stepper); ok {
		per *= int64(s.StepRounds())
	}
	return per
}

// Progress returns where the run is.
func (t *Trainer) Progress() Progress {
	reward, _ := t.episodes.means()
	return Progress{
		EnvSteps: t.EnvSteps(), TotalEnvSteps: t.cfg.TotalEnvSteps, LearnerSteps: t.s.LearnerSteps, Episodes: t.s.Episodes, StepsPerSecond: t.pace.speed, Metrics: t.last, EpisodeReward: reward, Validation: t.validation, Best: t.best,
	}
}

// Settled returns the env steps after which the newest cycle of collecting and learning had ended:
// hooks other than that of progress receive nothing of later ones. A run that is stopped within a
// cycle has taken more.
func (t *Trainer) Settled() int64 {
	if t.s.Begun {
		return t.s.Since
	}
	return t.EnvSteps()
}

// Finished reports whether there is nothing left to do: all env steps are taken and learnt from, or
// the run has stopped early.
func (t *Trainer) Finished() bool {
	return t.s.Done || !t.s.Begun && t.EnvSteps() >= t.cfg.TotalEnvSteps
}

// UseBest copies the best parameters into the policy, for use after the run: the trainer cannot be
// continued from there. Without an evaluation the last ones remain.
func (t *Trainer) UseBest(ctx context.Context) error {
	if t.best == nil {
		return nil
	}
	_, params := t.learner.Policy()
	t.kept.restore(params)
	t.usesBest = true
	if t.actor == nil {
		return nil
	}
	return t.actor.Sync(ctx)
}

// Close frees the agent and the environments. Where an environment was given up because it does not
// answer, nothing is freed that it may still use.
func (t *Trainer) Close() error {
	if t.outside.abandoned() {
		return nil
	}
	var errs []error
	if t.actor != nil {
		errs = append(errs, t.actor.Close())
	}
	if t.agent != nil {
		errs = append(errs, t.agent.Close())
	}
	if t.group != nil {
		errs = append(errs, t.group.Close())
	}
	switch {
	case t.norm != nil:
		errs = append(errs, t.norm.Close())
	case t.base != nil:
		errs = append(errs, t.base.Close())
	}
	t.actor, t.agent, t.env, t.base, t.norm, t.group = nil, nil, nil, nil, nil, nil
	return errors.Join(errs...)
}
