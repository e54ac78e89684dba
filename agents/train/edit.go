package train

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Edit gives the run other hyper-parameters, between two calls of [Trainer.Run]: those of m, a
// maker of the same algorithm, and of cfg, whose NumEnvs must be what it was. Afterwards the run
// equals, bit for bit, one that [New] has made of m and cfg and that has loaded this one's state.
//
// A learner that is an [agents.Editor] takes what it can as it is. For the rest a new agent takes
// over the state. A state that does not fit, such as parameters of another shape, is an error. It
// is one, too, for an agent that was given a replay store, which has its writer's name once.
// Environments that cannot be saved go on. After an error nothing has changed, unless it is that
// of making an actor, after which the trainer is only good to be closed.
func (t *Trainer) Edit(ctx context.Context, m agents.Maker, cfg Config) error {
	if err := t.edit(ctx, m, cfg); err != nil {
		return fmt.Errorf("train: edit after %d env steps: %w", t.EnvSteps(), err)
	}
	return nil
}

func (t *Trainer) edit(ctx context.Context, m agents.Maker, cfg Config) error {
	if err := configs.Validate(cfg); err != nil {
		return err
	}
	cfg = cfg.settle(t.cfg.Threads)
	if cfg.NumEnvs != t.cfg.NumEnvs {
		return fmt.Errorf("train.num_envs: %d, expected the %d that the run has", cfg.NumEnvs, t.cfg.NumEnvs)
	}
	if !reflect.DeepEqual(cfg.Actors, t.cfg.Actors) {
		return fmt.Errorf("train.actors: %+v, expected the %+v that the run has", cfg.Actors, t.cfg.Actors)
	}
	if cfg.Actors.Elsewhere() {
		return errors.New("train.actors: hyper-parameters cannot change in a run whose actors are in other processes")
	}
	if t.cfg.Threads == cfg.Threads && reflect.DeepEqual(t.cfg.Normalize, cfg.Normalize) {
		err := error(&agents.RebuildError{})
		if e, ok := t.learner.(agents.Editor); ok {
			err = e.Edit(m.Config(), cfg.TotalEnvSteps)
		}
		if err == nil {
			t.maker = m
			t.cfg, t.setup.TotalEnvSteps, t.last = cfg, cfg.TotalEnvSteps, nil
			return t.newActor()
		}
		if r := (*agents.RebuildError)(nil); !errors.As(err, &r) {
			return err
		}
	}
	return t.rebuild(ctx, m, cfg)
}

// rebuild makes the agent again, and where that has changed the normalisation, with the state of
// those that there are.
func (t *Trainer) rebuild(ctx context.Context, m agents.Maker, cfg Config) error {
	norm, err := t.normalization(cfg.Normalize)
	if err != nil {
		return err
	}
	s := t.setup
	// The state has the values that Init gave the parameters.
	s.Threads, s.TotalEnvSteps, s.Init = cfg.Threads, cfg.TotalEnvSteps, nil
	if norm != nil {
		s.Spec = norm.Spec()
	}
	a, err := m.New(ctx, s)
	if err == nil {
		if err = checkpoint.Copy(a.Learner(), t.learner); err != nil {
			err = errors.Join(err, a.Close())
		}
	}
	old := t.norm
	switch {
	case err == nil && norm != old:
		t.norm, t.env = norm, &watched{norm, &t.outside}
		err = old.Release()
	case norm != old:
		err = errors.Join(err, norm.Release())
	}
	if err != nil {
		return err
	}
	if t.actor != nil {
		err = t.actor.Close()
	}
	err = errors.Join(err, t.agent.Close())
	t.maker = m
	t.cfg, t.setup, t.agent, t.learner, t.actor, t.last = cfg, s, a, a.Learner(), nil, nil
	return errors.Join(err, t.newActor())
}

// normalization returns that of the environments by another configuration, with the statistics
// that there are.
func (t *Trainer) normalization(c wrap.Normalize) (*vector.Normalized, error) {
	switch {
	case c.On() != (t.norm != nil):
		return nil, errors.New("wrappers.normalize: a run that has begun is normalised to its end or not at all")
	case reflect.DeepEqual(c, t.cfg.Normalize):
		return t.norm, nil
	}
	n, err := vector.Normalize(t.base, c)
	if err != nil {
		return nil, err
	}
	if err := n.SetState(t.norm.State()); err != nil {
		return nil, errors.Join(err, n.Release())
	}
	return n, nil
}
