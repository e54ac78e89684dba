package train

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"onnxrl/agents"
	"onnxrl/envs/vector"
)

// Result summarises a finished or stopped run.
type Result struct {
	EnvSteps, LearnerSteps, Episodes int64
	// Taken counts the env steps of this call.
	Taken int64
	// Stopped says why a run ended before its last env step: "" when it did not, or one of the constants.
	Stopped string
	// Train are the metrics of the last learner step of this call; nil when there was none.
	Train agents.Metrics
	// Last is the newest evaluation and Best the one with the highest score; nil when there was none. The evaluation before training counts as the newest but never as the best.
	Last, Best *Evaluation
	// Published is the reference of what was published last.
	Published string
}

// Why a run ended before its last env step.
const (
	EarlyStopped = "early stop"
	Interrupted  = "interrupted"
)

// Run trains until the last env step, an early stop, or the end of ctx. The latter is no error: the rollout in progress is finished and learnt from, the state is saved, the result says so, and the run can be resumed. An error names the env step; what was saved before stays good.
func (t *Trainer) Run(ctx context.Context) (Result, error) {
	t.first = t.EnvSteps()
	if t.hooks.Now != nil {
		t.began = t.hooks.Now()
	}
	err := t.run(ctx)
	res := Result{
		EnvSteps: t.EnvSteps(), LearnerSteps: t.s.LearnerSteps, Episodes: t.s.Episodes, Taken: t.EnvSteps() - t.first,
		Train: maps.Clone(t.last), Last: t.validation, Best: t.best, Published: t.s.Published,
	}
	switch {
	case err == nil && t.s.Done:
		res.Stopped = EarlyStopped
	case err != nil && ctx.Err() != nil && errors.Is(err, ctx.Err()):
		res.Stopped = Interrupted
		err = nil
		if t.saved != t.EnvSteps() {
			err = t.save(nil)
		}
	}
	if err != nil {
		err = fmt.Errorf("train: env step %d: %w", t.EnvSteps(), err)
	}
	return res, err
}

// run alternates between learner steps and what is due between them. The error of ctx comes only from where the state is whole.
func (t *Trainer) run(ctx context.Context) error {
	whole := context.WithoutCancel(ctx)
	for {
		if err := t.between(ctx); err != nil {
			return err
		}
		if t.Finished() {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.learn(whole); err != nil {
			return err
		}
	}
}

// learn collects until the learner is ready, and lets it take one step.
func (t *Trainer) learn(ctx context.Context) error {
	for !t.learner.Ready() {
		if err := agents.Collect(ctx, t.env, t.actor, t.agent.Recorder(), t.key, int(t.s.Rounds), 1, t.each); err != nil {
			return err
		}
	}
	m, err := t.learner.Step(ctx)
	if err != nil {
		return fmt.Errorf("learner step %d: %w", t.s.LearnerSteps+1, err)
	}
	t.last = m
	if loss, ok := m[lossTag]; ok && (math.IsNaN(loss) || math.IsInf(loss, 0)) {
		return fmt.Errorf("learner step %d: the loss is %v; lower the learning rates, or clip the gradient", t.s.LearnerSteps+1, loss)
	}
	t.s.LearnerSteps++
	if err := t.actor.Sync(ctx); err != nil {
		return fmt.Errorf("actor: %w", err)
	}
	if t.hooks.Progress != nil {
		reward, _ := t.episodes.means()
		t.hooks.Progress(Progress{
			EnvSteps: t.EnvSteps(), TotalEnvSteps: t.cfg.TotalEnvSteps, LearnerSteps: t.s.LearnerSteps, Metrics: m, EpisodeReward: reward, Validation: t.validation, Best: t.best,
		})
	}
	return nil
}

const lossTag = "train/loss"

// count takes note of a round.
func (t *Trainer) count(b *vector.Batch) error {
	t.s.Rounds++
	for _, r := range b.Reward {
		t.s.RewardSum += r
	}
	t.s.RewardSteps += int64(len(b.Reward))
	for _, e := range b.Ended {
		t.s.Episodes++
		t.episodes.add(e.Return, float64(e.Length))
	}
	return nil
}

// between does what is due at this env step: metrics, an evaluation, a checkpoint, in this order. It does nothing twice, so a run that is resumed at this env step goes on where it was stopped.
func (t *Trainer) between(ctx context.Context) error {
	at := t.EnvSteps()
	if due(at, t.s.Logged, t.cfg.LogIntervalSteps) {
		t.record()
	}
	var score *float64
	better := false
	if t.hooks.Evaluate != nil && t.cfg.Validation.EverySteps > 0 && at != t.s.Evaluated && (t.s.Evaluated < 0 || t.Finished() || due(at, t.s.Evaluated, t.cfg.Validation.EverySteps)) {
		var err error
		if better, err = t.evaluate(ctx); err != nil {
			return err
		}
		if s := t.validation.Score; !math.IsNaN(s) && !math.IsInf(s, 0) {
			score = &s
		}
	}
	if t.Finished() {
		if at != t.s.Logged {
			t.record()
		}
		if t.validation == nil && at != t.s.PublishedAt {
			if err := t.publish(ctx, nil); err != nil {
				return err
			}
		}
	}
	if at != t.saved && (t.saved < 0 || t.Finished() || better && t.cfg.Checkpoint.KeepBest > 0 || due(at, t.saved, t.cfg.Checkpoint.EverySteps)) {
		return t.save(score)
	}
	return nil
}

// due reports whether a multiple of every lies in (before, at].
func due(at, before, every int64) bool { return every > 0 && at/every > before/every }

// record tells the hook how training goes.
func (t *Trainer) record() {
	at := t.EnvSteps()
	sum, steps := t.s.RewardSum, t.s.RewardSteps
	t.s.Logged, t.s.RewardSum, t.s.RewardSteps = at, 0, 0
	if t.hooks.Metrics == nil {
		return
	}
	clear(t.values)
	maps.Copy(t.values, t.last)
	if steps > 0 {
		t.values["rollout/reward_mean"] = sum / float64(steps)
	}
	if reward, length := t.episodes.means(); !math.IsNaN(reward) {
		t.values["rollout/ep_rew_mean"], t.values["rollout/ep_len_mean"] = reward, length
	}
	t.values["time/total_timesteps"] = float64(at)
	if t.hooks.Now != nil {
		if d := t.hooks.Now().Sub(t.began); d > 0 {
			t.values["time/fps"] = float64(at-t.first) / d.Seconds()
		}
	}
	t.hooks.Metrics(at, t.values)
}

// evaluate judges the policy, and keeps and publishes it when it is the best so far. A policy that was not trained is a yardstick and never the best.
func (t *Trainer) evaluate(ctx context.Context) (better bool, err error) {
	at, want := t.EnvSteps(), t.cfg.Validation
	began := time.Time{}
	if t.hooks.Now != nil {
		began = t.hooks.Now()
	}
	m, err := t.hooks.Evaluate(ctx, t.agent, at)
	if err != nil {
		return false, fmt.Errorf("evaluate: %w", err)
	}
	score, ok := m[want.Metric]
	if !ok {
		return false, fmt.Errorf("train.validation.metric: evaluation has no metric %q; it has %s", want.Metric, strings.Join(slices.Sorted(maps.Keys(m)), ", "))
	}
	e := &Evaluation{EnvSteps: at, LearnerSteps: t.s.LearnerSteps, Score: score, Metrics: maps.Clone(m)}
	if t.s.LearnerSteps > 0 {
		if better = !math.IsNaN(score) && (t.best == nil || score > t.best.Score); better {
			_, params := t.learner.Policy()
			t.kept.take(params)
			t.best = e
			if err := t.publish(ctx, e); err != nil {
				return false, err
			}
		}
		if r := t.s.Reference; !math.IsNaN(score) && (r == nil || score > *r+want.MinDelta) {
			t.s.Reference, t.s.Stale = &score, 0
		} else {
			t.s.Stale++
		}
		t.s.Done = want.Patience > 0 && t.s.Stale >= want.Patience
	}
	t.s.Evaluated, t.validation = at, e
	if t.hooks.Metrics != nil {
		clear(t.values)
		for k, v := range m {
			t.values["eval/"+k] = v
		}
		if t.hooks.Now != nil {
			t.values["time/eval_seconds"] = t.hooks.Now().Sub(began).Seconds()
		}
		t.hooks.Metrics(at, t.values)
	}
	t.hooks.Log.Debug("evaluated", "env_steps", at, want.Metric, score, "best", better)
	return better, nil
}

// publish hands the present policy over, even when somebody has become impatient meanwhile. e is its evaluation, if there was one.
func (t *Trainer) publish(ctx context.Context, e *Evaluation) error {
	if t.hooks.Publish == nil {
		return nil
	}
	net, params := t.learner.Policy()
	p := Policy{Network: net, Params: params, EnvSteps: t.EnvSteps(), LearnerSteps: t.s.LearnerSteps}
	if e != nil {
		p.Metric, p.Score, p.Metrics = t.cfg.Validation.Metric, e.Score, e.Metrics
	}
	ref, err := t.hooks.Publish.Publish(context.WithoutCancel(ctx), p)
	if err != nil {
		return fmt.Errorf("publish the policy: %w", err)
	}
	t.s.Published, t.s.PublishedAt = ref, p.EnvSteps
	return nil
}

// save tells the hook that the state is to be saved.
func (t *Trainer) save(score *float64) error {
	t.saved = t.EnvSteps()
	if t.hooks.Save == nil {
		return nil
	}
	return t.hooks.Save(t.saved, score)
}
