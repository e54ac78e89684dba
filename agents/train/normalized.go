package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// normalized is an agent that learnt from normalised observations, for environments that show raw
// ones.
type normalized struct {
	agents.Agent
	// spec is that of the raw environments.
	spec envs.Spec
	list []wrap.Normalizer
}

// NewActor implements agents.Agent.
func (a *normalized) NewActor(m agents.Mode, n int) (agents.Actor, error) {
	inner, err := a.Agent.NewActor(m, n)
	if err != nil {
		return nil, err
	}
	f, err := vector.NewFrozen(a.spec, n, a.list)
	if err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return &normalizing{inner, f}, nil
}

// normalizing shows an actor what it was trained on.
type normalizing struct {
	agents.Actor
	frozen *vector.Frozen
}

// Act implements agents.Actor.
func (a *normalizing) Act(ctx context.Context, key rng.Key, b *vector.Batch) (*vector.Decision, error) {
	return a.Actor.Act(ctx, key, a.frozen.Show(b))
}

// Close implements agents.Actor.
func (a *normalizing) Close() error { return errors.Join(a.Actor.Close(), a.frozen.Close()) }

// Inherit goes on from the running statistics that another run had when its parameters were those
// that this one begins with. These are of fields that both normalise, with as many elements, and
// of returns where both scale rewards and discount them alike. c is the configuration that they
// were made under. It is for runs that have not begun. taken says what is taken, left what is
// not, and why.
func (t *Trainer) Inherit(s vector.Statistics, c wrap.Normalize) (taken, left []string, err error) {
	if t.s.Rounds > 0 {
		return nil, nil, fmt.Errorf("train: inherit statistics: the run has taken %d env steps already", t.EnvSteps())
	}
	if len(s.Obs) != len(s.Fields) {
		return nil, nil, fmt.Errorf("train: inherit statistics: of %d fields and %d names", len(s.Obs), len(s.Fields))
	}
	own := vector.Statistics{}
	if t.norm != nil {
		own = t.norm.State()
	}
	for i, name := range own.Fields {
		j := slices.Index(s.Fields, name)
		if j < 0 {
			left = append(left, name+": is not normalised there")
			continue
		}
		if here, there := len(own.Obs[i].Mean), len(s.Obs[j].Mean); here != there {
			left = append(left, fmt.Sprintf("%s: has %d elements there and %d here", name, there, here))
			continue
		}
		own.Obs[i] = s.Obs[j]
		taken = append(taken, fmt.Sprintf("%s (%d elements, %.0f observations)", name, len(s.Obs[j].Mean), s.Obs[j].Count))
	}
	for _, name := range s.Fields {
		if !slices.Contains(own.Fields, name) {
			left = append(left, name+": is not normalised here")
		}
	}
	switch here := t.cfg.Normalize; {
	case here.Reward && !c.Reward:
		left = append(left, "returns: rewards are not scaled there")
	case !here.Reward && c.Reward:
		left = append(left, "returns: rewards are not scaled here")
	case here.Reward && here.Discount() != c.Discount():
		left = append(left, fmt.Sprintf("returns: are discounted by %g there and %g here", c.Discount(), here.Discount()))
	case here.Reward:
		own.Return = s.Return
		taken = append(taken, "returns")
	}
	if len(taken) == 0 {
		return nil, left, nil
	}
	if err := t.norm.SetState(own); err != nil {
		return nil, nil, fmt.Errorf("train: inherit statistics: %w", err)
	}
	return taken, left, nil
}
