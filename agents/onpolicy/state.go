package onpolicy

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Recorded is the part of a checkpoint that says how much there is of a rollout that is not learnt
// from yet; algorithms embed it in what they say of it besides. There is none between an update and
// the round after it.
type Recorded struct {
	Rounds int `json:"rounds"`
}

// Save saves counters, parameters and optimiser.
func (l *Learner) Save(w *checkpoint.Writer, counters any) {
	w.PutJSON("state", counters)
	network.SaveParams(w.Scope("params"), l.Params)
	network.SaveOptimizer(w.Scope("optim"), l.Optimizer)
}

// Load takes back what Save saved. counters points to them.
func (l *Learner) Load(r *checkpoint.Reader, counters any) error {
	if err := r.JSON("state", counters); err != nil {
		return err
	}
	if err := network.LoadParams(r.Scope("params"), l.Params); err != nil {
		return err
	}
	if err := network.LoadOptimizer(r.Scope("optim"), l.Optimizer); err != nil {
		return err
	}
	l.Replaced++
	clear(l.Metrics)
	return nil
}

// LoadRollout takes back a rollout that is not learnt from yet. all points to what was saved of it
// as JSON, and n to the Recorded in it. arrays lists the arrays of the rounds that there are.
func (l *Learner) LoadRollout(r *checkpoint.Reader, all any, n *Recorded, arrays func() network.Arrays) error {
	l.Rollout.Clear()
	if !r.Has("rollout") {
		return nil
	}
	if err := r.JSON("rollout", all); err != nil {
		return err
	}
	if n.Rounds < 1 || n.Rounds > l.Rollout.Rounds {
		return fmt.Errorf("%s: restore: %d rounds of a rollout of %d", l.Name, n.Rounds, l.Rollout.Rounds)
	}
	l.Rollout.T, l.Rollout.Present = n.Rounds, nil
	if r.Scope("rollout").Has("present") {
		l.Rollout.setPresent()
	}
	return arrays().Load(r.Scope("rollout"))
}
