package train

import (
	"context"

	"github.com/onnxrl/onnxrl/agents"
)

// Lag is how many updates the parameters that acted were behind those that learnt from what they
// did, over all unrolls of a run.
type Lag struct {
	Mean float64
	Max  int64
}

// lag is what a run has counted of it; the newest update's are not saved.
type lag struct {
	Sum     int64 `json:"sum"`
	Unrolls int64 `json:"unrolls"`
	Max     int64 `json:"max"`

	newest, of, highest int64
}

// add takes note of the unrolls of an update, and how old they were.
func (l *lag) add(list []int64) {
	l.newest, l.of, l.highest = 0, int64(len(list)), 0
	for _, x := range list {
		l.newest += x
		l.highest = max(l.highest, x)
	}
	l.Sum, l.Unrolls, l.Max = l.Sum+l.newest, l.Unrolls+l.of, max(l.Max, l.highest)
}

// tell adds what was taken note of last to the metrics of a learner step.
func (l *lag) tell(m agents.Metrics) {
	if l != nil && l.of > 0 {
		m["train/policy_lag_mean"], m["train/policy_lag_max"] = float64(l.newest)/float64(l.of), float64(l.highest)
	}
}

// public returns what a run's result says.
func (l *lag) public() *Lag {
	if l == nil || l.Unrolls == 0 {
		return nil
	}
	return &Lag{float64(l.Sum) / float64(l.Unrolls), l.Max}
}

// work runs the training, with the actors at work meanwhile.
func (t *Trainer) work(ctx context.Context) error {
	if t.group == nil || t.Finished() {
		return t.watch(ctx)
	}
	if err := t.group.Start(ctx, t.maker, t.setup, t.learner); err != nil {
		return err
	}
	err := t.watch(ctx)
	if !t.group.Stop(t.hooks.Patience, t.hooks.Log) {
		t.outside.where.Store(abandoned)
	}
	return err
}

// receive takes what the actors have played for the next learner step.
func (t *Trainer) receive(ctx context.Context) error {
	watch := t.profile.Start()
	batch, err := t.group.Next(ctx, t.learner)
	watch.Lap(agents.Waiting)
	if err != nil {
		// Nothing has changed since the last learner step.
		t.whole = true
		return err
	}
	if t.s.Lag == nil {
		t.s.Lag = &lag{}
	}
	var lags []int64
	rows := int64(0)
	for _, p := range batch {
		t.add(&p.Tally)
		lags = append(lags, p.Lag())
		rows += int64(len(p.Tally.Rewards))
	}
	t.s.Lag.add(lags)
	t.s.Rounds += rows / int64(t.cfg.NumEnvs)
	return nil
}
