package evaluate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The ways in which the members of an [Ensemble] act as one policy.
const (
	// ByMean takes the action that is most probable in the mean of the members' probabilities, head
	// by head, the first of equals; in a Box it takes the mean of their actions.
	ByMean = "mean"
	// ByMajority takes the action that most members take, head by head; of equals that of the first
	// member.
	ByMajority = "majority"
)

// Ensemble is several policies, such as those of the seeds of a training, acting as one. It is an
// [Actors].
type Ensemble struct {
	Members []Actors
	// By is ByMean or ByMajority.
	By string
	// Action is the space of all members.
	Action envs.Space
}

// NewActor implements [Actors]. Only [agents.Greedy] is there.
func (e Ensemble) NewActor(m agents.Mode, n int) (_ agents.Actor, err error) {
	if m != agents.Greedy {
		return nil, errors.New("an ensemble takes the best action; actions are not drawn from it (eval.deterministic: true)")
	}
	a := &ensemble{by: e.By, n: n, decision: vector.Decision{Actions: tensor.New(e.Action.DType(), append([]int{n}, e.Action.Shape()...)...)}}
	_, box := e.Action.(envs.Box)
	switch s := e.Action.(type) {
	case envs.Discrete:
		a.heads = []int{s.N}
	case envs.MultiDiscrete:
		a.heads = s.N
	}
	switch {
	case len(e.Members) == 0:
		return nil, errors.New("an ensemble needs members")
	case e.By != ByMean && e.By != ByMajority:
		return nil, fmt.Errorf("an ensemble by %q, expected %s or %s", e.By, ByMean, ByMajority)
	case box && e.By == ByMajority, !box && a.heads == nil:
		return nil, fmt.Errorf("an ensemble by %s cannot act in %s", e.By, e.Action)
	case box && a.decision.Actions.DType() != tensor.Float32:
		return nil, fmt.Errorf("an ensemble acts in boxes of float32, not in %s", e.Action)
	}
	most := 0
	for _, k := range a.heads {
		most = max(most, k)
	}
	a.sum, a.votes = make([]float64, a.decision.Actions.Len()), make([]float64, most)
	if e.By == ByMean && !box {
		a.sum = make([]float64, n*envs.MaskLen(e.Action))
	}
	for _, one := range e.Members {
		actor, err := one.NewActor(m, n)
		if err != nil {
			return nil, errors.Join(err, a.Close())
		}
		a.members = append(a.members, actor)
		a.chosen = append(a.chosen, make([]int64, a.decision.Actions.Len()))
	}
	return a, nil
}

type ensemble struct {
	by       string
	n        int
	heads    []int // nil in a Box
	members  []agents.Actor
	decision vector.Decision
	sum      []float64 // of probabilities [n, MaskLen], or of actions [n, …]
	votes    []float64
	chosen   [][]int64 // by member [n, heads]
}

// Act implements agents.Actor.
func (a *ensemble) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	clear(a.sum)
	for i, m := range a.members {
		d, err := m.Act(ctx, key, b)
		if err != nil {
			return nil, err
		}
		switch {
		case a.heads == nil:
			for k, x := range d.Actions.Float32s()[:len(a.sum)] {
				a.sum[k] += float64(x)
			}
		case a.by == ByMajority:
			copy(a.chosen[i], d.Actions.Int64s())
		case d.Logits == nil:
			return nil, fmt.Errorf("member %d of the ensemble has no probabilities, whose mean could be taken: take the majority", i+1)
		default:
			for k, x := range d.Logits.Float32s()[:len(a.sum)] {
				a.sum[k] += math.Exp(float64(x))
			}
		}
	}
	switch {
	case a.heads == nil:
		for k, x := range a.sum {
			a.decision.Actions.Float32s()[k] = float32(x / float64(len(a.members)))
		}
	case a.by == ByMajority:
		a.majority()
	default:
		a.mostProbable()
	}
	return &a.decision, nil
}

func (a *ensemble) mostProbable() {
	at := 0
	for i := range a.decision.Actions.Int64s() {
		k := a.heads[i%len(a.heads)]
		a.decision.Actions.Int64s()[i] = int64(largest(a.sum[at : at+k]))
		at += k
	}
}

func (a *ensemble) majority() {
	for i := range a.decision.Actions.Int64s() {
		clear(a.votes)
		for m := range a.members {
			a.votes[a.chosen[m][i]]++
		}
		best := a.chosen[0][i]
		for m := range a.members {
			if c := a.chosen[m][i]; a.votes[c] > a.votes[best] {
				best = c
			}
		}
		a.decision.Actions.Int64s()[i] = best
	}
}

// largest is the place of the largest number, the first of equals.
func largest(x []float64) (at int) {
	for i, v := range x {
		if v > x[at] {
			at = i
		}
	}
	return at
}

// Remembers implements vector.Policy.
func (a *ensemble) Remembers() bool { return slices.ContainsFunc(a.members, agents.Actor.Remembers) }

// Sync implements agents.Actor.
func (a *ensemble) Sync(ctx context.Context) error {
	var errs []error
	for _, m := range a.members {
		errs = append(errs, m.Sync(ctx))
	}
	return errors.Join(errs...)
}

// Close implements agents.Actor.
func (a *ensemble) Close() error {
	var errs []error
	for _, m := range a.members {
		errs = append(errs, m.Close())
	}
	return errors.Join(errs...)
}
