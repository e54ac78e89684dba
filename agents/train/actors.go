package train

import (
	"context"
	"runtime"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/actors"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// Lag is how many updates the parameters that acted were behind those that learnt from what they
// did, over all unrolls of a run. Lost are the unrolls that ended with the processes that played
// them.
type Lag struct {
	Mean      float64
	Max, Lost int64
}

// lag is what a run has counted of it; the newest update's are not saved.
type lag struct {
	Sum     int64 `json:"sum"`
	Unrolls int64 `json:"unrolls"`
	Max     int64 `json:"max"`
	Lost    int64 `json:"lost,omitempty"`

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
	return &Lag{float64(l.Sum) / float64(l.Unrolls), l.Max, l.Lost}
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
	if !t.group.Stop(t.hooks.Patience) {
		t.outside.where.Store(abandoned)
	}
	return err
}

// NewActor opens the environments of one actor of a run that [New] makes of the same arguments, to
// be served in another process. It returns what the agent of the learner is made with, too.
func NewActor(f envs.Factory, s agents.Setup, cfg Config, index int) (*actors.Actor, agents.Setup, error) {
	cfg = cfg.settle(runtime.GOMAXPROCS(0))
	keys := actors.Keys{Act: s.Key.Split(actKey), Worlds: s.Key.Split(envsKey)}
	a, err := actors.NewActor(f, cfg.NumEnvs/cfg.Actors.Count, keys.Of(index, cfg.Actors.Count), vector.Options{Workers: 1, Log: s.Log})
	if err != nil {
		return nil, s, err
	}
	return a, cfg.setup(s, a.Spec()), nil
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
	t.s.Lag.Lost += t.group.Lost()
	t.s.Rounds += rows / int64(t.cfg.NumEnvs)
	return nil
}
