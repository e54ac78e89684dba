package classic

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// Kinds lists the environments of this package under the names that configurations give.
func Kinds() []envs.Kind {
	return []envs.Kind{
		kind("cartpole", "balance a pole on a cart (Gymnasium's CartPole-v1)", CartPoleDefaults, NewCartPole),
		kind("pendulum", "swing a pendulum up and hold it (Gymnasium's Pendulum-v1)", PendulumDefaults, NewPendulum),
		kind("mountaincar", "rock an underpowered car out of a valley (Gymnasium's MountainCar-v0)", MountainCarDefaults, NewMountainCar),
		kind("mountaincar_continuous", "the same with a continuous force (Gymnasium's MountainCarContinuous-v0)", MountainCarContinuousDefaults, NewMountainCarContinuous),
		kind("acrobot", "swing the tip of two links above a line (Gymnasium's Acrobot-v1)", AcrobotDefaults, NewAcrobot),
		kind("identity", "answer with what was observed (a toy of Stable-Baselines3's tests)", IdentityDefaults, NewIdentity),
		kind("invalid_action", "the same with masked actions (a toy of sb3-contrib's tests)", InvalidActionDefaults, NewInvalidAction),
	}
}

// kind is a row of Kinds for a configuration C.
func kind[C configs.Validator](name, summary string, defaults func() C, open func(C) (*Env, error)) envs.Kind {
	return envs.Kind{Name: name, Summary: summary, Defaults: func() any { return defaults() }, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
		c := defaults()
		if err := params.Decode(&c); err != nil {
			return nil, err
		}
		return factory[C]{c, open}, nil
	}}
}

// factory makes equal environments.
type factory[C any] struct {
	c    C
	open func(C) (*Env, error)
}

func (f factory[C]) Config() any                           { return f.c }
func (f factory[C]) New(envs.Split, int) (envs.Env, error) { return f.open(f.c) }
func (f factory[C]) Close() error                          { return nil }

// valid wraps the problems of a configuration made in code.
func valid(name string, c configs.Validator) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
