package train

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Result summarises a finished or stopped run.
type Result struct {
	EnvSteps, LearnerSteps, Episodes int64
	// Taken counts the env steps of this call.
	Taken int64
	// StepsPerSecond is the env steps of this call for each second from its beginning to the end of
	// the newest learner step. The time of evaluations, and of publishing what they choose, does
	// not count; 0 without a clock. It is what Progress tells, and what time/fps is in the metrics.
	StepsPerSecond float64
	// EpisodeReward and EpisodeLength are means over the last 100 training episodes, of raw
	// rewards; NaN before the first has ended.
	EpisodeReward, EpisodeLength float64
	// Stopped says why a run ended before its last env step: "" when it did not, or one of the
	// constants.
	Stopped string
	// Train are the metrics of the last learner step of this call; nil when there was none.
	Train agents.Metrics
	// Last is the newest evaluation and Best the one with the highest score; nil when there was
	// none. The evaluation before training counts as the newest but never as the best.
	Last, Best *Evaluation
	// Published is the reference of what was published last.
	Published string
	// Lag is how old the parameters were that acted; nil without actors of their own.
	Lag *Lag
}

// Why a run ended before its last env step.
const (
	EarlyStopped    = "early stop"
	RewardReached   = "reward threshold"
	EpisodesReached = "max episodes"
	CallbackStopped = "callback"
	Interrupted     = "interrupted"
	// Paused is that of RunTo: the run goes on with the next call.
	Paused = "paused"
)

// errPaused ends a call of RunTo.
var errPaused = errors.New("the run pauses")

// RunTo is Run, but pauses with the first learner step at or after so many env steps of the run: a
// training interval. What is due there is done, the state is saved, and the next call of Run or
// RunTo goes on as if there had been none.
func (t *Trainer) RunTo(ctx context.Context, envSteps int64) (Result, error) {
	t.until = envSteps
	defer func() { t.until = math.MaxInt64 }()
	return t.Run(ctx)
}

// Run trains until the last env step, an early stop, or the end of ctx. The latter is no error: the
// run stops between two rounds or two gradient steps, the state is saved, the result says so, and
// the run can be resumed there. Where an environment fails, the state after the last whole round is
// saved, without the episodes of the environments. An error names the env step; what was saved
// before stays good.
func (t *Trainer) Run(ctx context.Context) (Result, error) {
	t.first, t.whole = t.EnvSteps(), false
	if t.hooks.Now != nil {
		t.began = t.hooks.Now()
	}
	t.judged, t.pace = 0, pace{}
	err := t.work(ctx)
	if t.EnvSteps()-t.first != t.pace.steps {
		t.measure() // It was stopped within a learner step.
	}
	reward, length := t.episodes.means()
	res := Result{
		EpisodeReward: reward, EpisodeLength: length,
		EnvSteps: t.EnvSteps(), LearnerSteps: t.s.LearnerSteps, Episodes: t.s.Episodes, Taken: t.EnvSteps() - t.first, StepsPerSecond: t.pace.speed,
		Train: maps.Clone(t.last), Last: t.validation, Best: t.best, Published: t.s.Published, Lag: t.s.Lag.public(),
	}
	switch {
	case err == nil && t.s.Done:
		// Runs that were saved before there were other reasons have none.
		res.Stopped = cmp.Or(t.s.Stopped, EarlyStopped)
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		res.Stopped = Interrupted
		err = t.saveUnsaved()
	case errors.Is(err, errPaused):
		res.Stopped = Paused
		err = t.saveUnsaved()
	case err != nil && t.whole:
		err = errors.Join(err, t.saveUnsaved())
	}
	if err != nil {
		err = fmt.Errorf("train: env step %d: %w", t.EnvSteps(), err)
	}
	return res, err
}

// pace is how fast a call of Run trains: env steps, and how many that is for each second.
type pace struct {
	steps int64
	speed float64
}

// measure takes the pace. It is the same until it is taken again, so that all who ask after a
// learner step receive one number.
func (t *Trainer) measure() {
	if t.hooks.Now == nil {
		return
	}
	if d := t.hooks.Now().Sub(t.began) - t.judged; d > 0 {
		t.pace.steps = t.EnvSteps() - t.first
		t.pace.speed = float64(t.pace.steps) / d.Seconds()
	}
}

// run alternates between learner steps and what is due between them. The error of ctx comes only
// from where the state is whole.
func (t *Trainer) run(ctx context.Context) error {
	for {
		if !t.s.Begun {
			if err := t.between(ctx); err != nil {
				return err
			}
			if t.Finished() {
				return nil
			}
			if t.EnvSteps() >= t.until {
				return errPaused
			}
			if err := ctx.Err(); err != nil {
				return err
			}
			t.s.Begun, t.s.Since = true, t.EnvSteps()
		}
		if err := t.learn(ctx); err != nil {
			return err
		}
		t.s.Begun, t.s.Since = false, 0
	}
}

// learn collects until the learner is ready, and lets it take one step.
func (t *Trainer) learn(ctx context.Context) error {
	for n := 0; !t.learner.Ready(); n++ {
		if t.group != nil {
			if err := t.receive(ctx); err != nil {
				return err
			}
			continue
		}
		if t.setup.Offline() {
			if err := t.idle(ctx, n); err != nil {
				return err
			}
			continue
		}
		// When ctx ends the round before it is complete.
		if err := t.profile.Collect(ctx, t.env, t.actor, t.agent.Recorder(), t.key, int(t.s.Rounds), 1, t.each); err != nil {
			var env *agents.EnvError
			if errors.As(err, &env) {
				t.whole, t.envsLost = true, true
			}
			return err
		}
	}
	watch, before := t.profile.Start(), t.profile.Total()
	m, err := t.learner.Step(ctx)
	if err != nil {
		return fmt.Errorf("learner step %d: %w", t.s.LearnerSteps+1, err)
	}
	watch = watch.LapRest(agents.Learning, before)
	t.last = m
	for tag, v := range m {
		if !strings.Contains(tag, "loss") {
			continue
		}
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return &agents.DivergedError{Text: fmt.Sprintf("learner step %d: the %s is %v; lower the learning rates, or clip the gradient", t.s.LearnerSteps+1, strings.TrimPrefix(tag, "train/"), v)}
		}
		t.s.Trained = true
	}
	t.s.LearnerSteps++
	if t.group != nil {
		t.s.Lag.tell(m)
		t.group.Learnt(t.learner)
	} else if err := t.actor.Sync(ctx); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	watch.Lap(agents.Syncing)
	if err := t.restart(); err != nil {
		return err
	}
	t.measure()
	t.tell(0)
	return nil
}

// restart begins new episodes where the learner asks for them.
func (t *Trainer) restart() error {
	if r, ok := t.learner.(agents.Restarter); !ok || t.group != nil || t.setup.Offline() || !r.Restart() {
		return nil
	}
	if err := t.env.Reset(t.worlds.Split("restarted", int(t.s.Rounds))); err != nil {
		t.whole, t.envsLost = true, true
		return fmt.Errorf("reset: %w", err)
	}
	t.counter.Costs.Restart()
	return nil
}

// Rehearse takes two rounds, and a learner step after each where the learner is ready: an algorithm
// that waits for more has compiled what it learns by when it was made. The trainer is of no use
// afterwards. It does not rehearse with actors of their own.
func (t *Trainer) Rehearse(ctx context.Context) (err error) {
	waited := 0
	for n := range 2 {
		switch {
		case t.learner.Ready():
		case t.setup.Offline():
			err = t.idle(ctx, waited)
			waited++
		default:
			err = t.profile.Collect(ctx, t.env, t.actor, t.agent.Recorder(), t.key, n, 1, t.each)
		}
		if err != nil {
			return fmt.Errorf("train: env step %d: %w", t.EnvSteps(), err)
		}
		if !t.learner.Ready() {
			continue
		}
		if _, err := t.learner.Step(ctx); err != nil {
			return fmt.Errorf("train: learner step %d: %w", n+1, err)
		}
		waited = 0
		if err := t.actor.Sync(ctx); err != nil {
			return fmt.Errorf("train: actor: %w", err)
		}
	}
	return nil
}

// Pace is how long training takes by the clock.
type Pace struct {
	// Round is how many seconds a round of env steps took, and Step a learner step, on average over
	// so many, the first of which is left out where there are more: it warms up. Step is NaN where
	// there was none.
	Round, Step   float64
	Rounds, Steps int
	// Per is how many env steps come before a learner step, over all environments.
	Per int64
}

// Measure takes rounds, and learner steps where the learner is ready, until there were so many of
// those, or the time is up, and tells how long they took. The first learner step has three times the
// time; where the learner is not ready then, there are rounds alone. The trainer is of no use afterwards. It does not measure actors
// of their own, nor a run that learns from data alone.
func (t *Trainer) Measure(ctx context.Context, steps int, limit time.Duration) (p Pace, err error) {
	var rounds, learnt []float64
	p.Per = t.StepEnvSteps()
	defer func() {
		p.Round, p.Rounds = paceOf(rounds)
		p.Step, p.Steps = paceOf(learnt)
	}()
	for began := time.Now(); len(learnt) < steps; {
		if spent := time.Since(began); len(rounds) > 0 && (spent >= 3*limit || spent >= limit && len(learnt) > 0) {
			break
		}
		at := time.Now()
		if err := t.profile.Collect(ctx, t.env, t.actor, t.agent.Recorder(), t.key, len(rounds), 1, t.each); err != nil {
			return p, fmt.Errorf("train: env step %d: %w", t.EnvSteps(), err)
		}
		rounds = append(rounds, time.Since(at).Seconds())
		if !t.learner.Ready() {
			continue
		}
		at = time.Now()
		if _, err := t.learner.Step(ctx); err != nil {
			return p, fmt.Errorf("train: learner step %d: %w", len(learnt)+1, err)
		}
		learnt = append(learnt, time.Since(at).Seconds())
		if err := t.actor.Sync(ctx); err != nil {
			return p, fmt.Errorf("train: actor: %w", err)
		}
	}
	return p, nil
}

// paceOf is the mean of seconds and how many they are, without the first of several.
func paceOf(seconds []float64) (mean float64, n int) {
	if len(seconds) > 1 {
		seconds = seconds[1:]
	}
	for _, x := range seconds {
		mean += x
	}
	return mean / float64(len(seconds)), len(seconds)
}

// idle is a round of a run that learns from data alone: no environment takes a step. n counts those
// since the last learner step.
func (t *Trainer) idle(ctx context.Context, n int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if s, ok := t.learner.(agents.Stepper); ok && n >= s.StepRounds() {
		return errors.New("the learner waits for episodes to end, and no environment is stepped in a run that learns from data alone; give agent.train_freq a number of rounds")
	}
	r, b := t.agent.Recorder(), t.env.Batch()
	if err := r.Begin(b, nil); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	if err := r.End(b); err != nil {
		return fmt.Errorf("record: %w", err)
	}
	t.s.Rounds++
	t.progress(0)
	return nil
}

// tell says where the run is.
func (t *Trainer) tell(update float64) {
	if t.hooks.Progress == nil {
		return
	}
	p := t.Progress()
	p.Update = update
	t.hooks.Progress(p)
	if t.hooks.Now != nil {
		t.told = t.hooks.Now()
	}
}

// progress says where the run is, unless it has said so just now.
func (t *Trainer) progress(update float64) {
	if t.hooks.Progress == nil || t.hooks.Now == nil || t.hooks.Now().Sub(t.told) < 100*time.Millisecond {
		return
	}
	t.measure()
	t.tell(update)
}

// count takes note of a round, by what the environments gave.
func (t *Trainer) count(b *vector.Batch) error {
	t.s.Rounds++
	t.tally.Clear()
	t.counter.Add(&t.tally, b, t.base.Batch())
	t.add(&t.tally)
	t.progress(0)
	return nil
}

// add takes note of what rounds have led to.
func (t *Trainer) add(x *actors.Tally) {
	for _, r := range x.Rewards {
		t.s.RewardSum += r
	}
	t.s.RewardSteps += x.Steps
	t.s.MaskedOut += x.MaskedOut
	t.s.Masked += x.Masked
	costs := len(t.episodes.costs)
	for i, e := range x.Ended {
		t.s.Episodes++
		for k, c := range x.Costs[i*costs:][:costs] {
			t.episodes.costs[k] = slide(t.episodes.costs[k], c)
		}
		t.episodes.add(e.Return, e.Length)
		if t.success {
			t.episodes.successes = slide(t.episodes.successes, e.Success)
		}
	}
}

// between does what is due at this env step: metrics, an evaluation, callbacks, a checkpoint, in
// this order. It does nothing twice, so a run that is resumed at this env step goes on where it was
// stopped.
func (t *Trainer) between(ctx context.Context) error {
	at := t.EnvSteps()
	if due(at, t.s.Logged, t.cfg.LogIntervalSteps) {
		t.record()
	}
	if most := t.cfg.Stop.MaxEpisodes * int64(t.cfg.NumEnvs); most > 0 && t.s.Episodes >= most {
		t.stop(EpisodesReached)
	}
	var score *float64
	better := false
	if t.hooks.Evaluate != nil && t.cfg.Validation.EverySteps > 0 && at != t.s.Evaluated && (t.s.Evaluated < 0 || t.Finished() || due(at, t.s.Evaluated, t.cfg.Validation.EverySteps)) {
		var err error
		if better, err = t.evaluate(ctx); err != nil {
			return err
		}
		if e := t.validation; e.defined() {
			score = &e.Score
		}
	}
	if err := t.callbacks(ctx); err != nil {
		return err
	}
	if t.Finished() {
		if at != t.s.Logged {
			t.record()
		}
		// Without a defined score nothing has been published on the way.
		if t.best == nil && at != t.s.PublishedAt {
			if err := t.publish(ctx, nil); err != nil {
				return err
			}
		}
	}
	if (at != t.saved || t.behind) && (t.saved < 0 || t.Finished() || better && t.cfg.Checkpoint.KeepBest > 0 || due(at, t.saved, t.cfg.Checkpoint.EverySteps)) {
		return t.save(score)
	}
	return nil
}

// stop ends the run. The first reason is reported.
func (t *Trainer) stop(reason string) {
	if !t.s.Done {
		t.s.Done, t.s.Stopped = true, reason
	}
}

// callbacks calls those that are due.
func (t *Trainer) callbacks(ctx context.Context) error {
	at := t.EnvSteps()
	for i, c := range t.hooks.Every {
		if !due(at, t.called[i], c.Steps) {
			continue
		}
		t.called[i] = at
		switch err := c.Do(ctx, t); {
		case errors.Is(err, ErrStop):
			t.stop(CallbackStopped)
		case err != nil:
			return fmt.Errorf("callback: %w", err)
		}
	}
	return nil
}

// due reports whether a multiple of every lies in (before, at].
func due(at, before, every int64) bool { return every > 0 && at/every > before/every }

// meanReward is the metric of an evaluation that is the mean return of episodes.
const meanReward = "mean_reward"

// record tells the hook how training goes, under Stable-Baselines3's tags where it has them.
func (t *Trainer) record() {
	at := t.EnvSteps()
	sum, steps := t.s.RewardSum, t.s.RewardSteps
	out, masked := t.s.MaskedOut, t.s.Masked
	t.s.Logged, t.s.RewardSum, t.s.RewardSteps, t.s.MaskedOut, t.s.Masked = at, 0, 0, 0, 0
	if t.hooks.Metrics == nil {
		return
	}
	clear(t.values)
	maps.Copy(t.values, t.last)
	if steps > 0 {
		t.values["rollout/reward_mean"] = sum / float64(steps)
	}
	if masked > 0 {
		t.values["rollout/mask_invalid_ratio"] = float64(out) / float64(masked)
	}
	if r, ok := t.learner.(agents.Replayer); ok {
		t.values["replay/size"] = float64(r.Replayed())
	}
	if reward, length := t.episodes.means(); !math.IsNaN(reward) {
		t.values["rollout/ep_rew_mean"], t.values["rollout/ep_len_mean"] = reward, length
	}
	for k, list := range t.episodes.costs {
		if len(list) > 0 {
			t.values[vector.CostTag("rollout/ep_cost_mean", t.setup.Spec.Costs[k], len(t.episodes.costs))] = mean(list)
		}
	}
	if len(t.episodes.successes) > 0 {
		t.values["rollout/success_rate"] = mean(t.episodes.successes)
	}
	t.values["time/total_timesteps"], t.values["time/iterations"], t.values["time/episodes"] = float64(at), float64(t.s.LearnerSteps), float64(t.s.Episodes)
	if t.hooks.Now != nil {
		if t.pace.steps > 0 {
			t.values["time/fps"] = t.pace.speed
		}
		if d := t.hooks.Now().Sub(t.began); d > 0 {
			t.values["time/time_elapsed"] = d.Seconds()
		}
	}
	t.hooks.Metrics(at, t.values)
}

// evaluate measures the policy, and keeps and publishes it when it is the best so far. A policy
// that was not trained is a yardstick and never the best.
func (t *Trainer) evaluate(ctx context.Context) (better bool, err error) {
	at, want := t.EnvSteps(), t.cfg.Validation
	began := time.Time{}
	if t.hooks.Now != nil {
		began = t.hooks.Now()
		defer func() { t.judged += t.hooks.Now().Sub(began) }()
	}
	t.outside.enter(evaluating)
	m, err := t.hooks.Evaluate(ctx, t.Agent(), at)
	t.outside.leave(evaluating)
	if err != nil {
		t.whole = true
		return false, fmt.Errorf("evaluate: %w", err)
	}
	score, ok := m[want.Metric]
	if !ok {
		return false, fmt.Errorf("train.validation.metric: evaluation has no metric %q; it has %s", want.Metric, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
	}
	e := &Evaluation{EnvSteps: at, LearnerSteps: t.s.LearnerSteps, Score: score, Metrics: maps.Clone(m)}
	if threshold := t.cfg.Stop.RewardThreshold; threshold != nil {
		reward, ok := m[meanReward]
		if !ok {
			return false, fmt.Errorf("train.stop.reward_threshold: evaluation has no metric %q; it has %s", meanReward, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
		}
		if t.s.Trained && reward >= *threshold {
			defer t.stop(RewardReached)
		}
	}
	if t.s.Trained {
		t.s.Evaluations++
		if x, ok := t.learner.(agents.Limited); ok {
			e.Excess = x.Excess()
		}
		closer := t.best != nil && e.Excess < t.best.Excess
		if better = e.beats(t.best); better {
			_, params := t.learner.Policy()
			t.kept.take(params)
			t.keptNorm = t.Normalizers()
			t.best = e
			if err := t.publish(ctx, e); err != nil {
				return false, err
			}
		}
		if r := t.s.Reference; e.defined() && (r == nil || closer || score > *r+want.MinDelta) {
			t.s.Reference, t.s.Stale = &score, 0
		} else if t.s.Evaluations > want.MinEvals {
			t.s.Stale++
		}
		if want.Patience > 0 && t.s.Stale >= want.Patience {
			t.stop(EarlyStopped)
		}
	}
	// This state is of a run that was stopped before the evaluation had come to its end.
	t.behind = at == t.saved
	t.s.Evaluated, t.validation = at, e
	if t.hooks.Metrics != nil {
		clear(t.values)
		for k, v := range m {
			t.values["eval/"+k] = v
		}
		if v, ok := m["mean_length"]; ok {
			t.values["eval/mean_ep_length"] = v
		}
		if t.hooks.Now != nil {
			t.values["time/eval_seconds"] = t.hooks.Now().Sub(began).Seconds()
		}
		t.hooks.Metrics(at, t.values)
	}
	t.hooks.Log.Debug("evaluated", "env_steps", at, want.Metric, score, "best", better)
	return better, nil
}

// publish hands the present policy over. e is its evaluation, if there was one.
func (t *Trainer) publish(ctx context.Context, e *Evaluation) error {
	if t.hooks.Publish == nil {
		return nil
	}
	net, params := t.learner.Policy()
	p := Policy{Network: net, Params: params, Normalizers: t.Normalizers(), EnvSteps: t.EnvSteps(), LearnerSteps: t.s.LearnerSteps}
	if e != nil {
		p.Metric, p.Score, p.Metrics = t.cfg.Validation.Metric, e.Score, e.Metrics
		p.Evaluations = int64(t.s.Evaluations)
	}
	ref, err := t.hooks.Publish.Publish(ctx, p)
	if err != nil {
		return fmt.Errorf("publish the policy: %w", err)
	}
	t.s.Published, t.s.PublishedAt = ref, p.EnvSteps
	return nil
}

// save tells the hook that the state is to be saved.
func (t *Trainer) save(score *float64) error {
	// Work that is due after the present cycle is due whether or not the run was stopped in between.
	t.saved, t.behind = t.Settled(), false
	if t.hooks.Save == nil {
		return nil
	}
	return t.hooks.Save(t.EnvSteps(), score)
}

// saveUnsaved saves where a run has ended, unless that is what was saved last.
func (t *Trainer) saveUnsaved() error {
	if t.saved == t.EnvSteps() && !t.behind {
		return nil
	}
	return t.save(nil)
}
