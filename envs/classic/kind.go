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
		kind("cartpole", CartPoleDefaults, NewCartPole),
		kind("pendulum", PendulumDefaults, NewPendulum),
		kind("mountaincar", MountainCarDefaults, NewMountainCar),
		kind("mountaincar_continuous", MountainCarContinuousDefaults, NewMountainCarContinuous),
		kind("acrobot", AcrobotDefaults, NewAcrobot),
		kind("identity", IdentityDefaults, NewIdentity),
		kind("invalid_action", InvalidActionDefaults, NewInvalidAction),
	}
}

// kind is a row of Kinds for a configuration C.
func kind[C configs.Validator](name string, defaults func() C, open func(C) (*Env, error)) envs.Kind {
	return envs.Kind{Name: name, Open: func(_ context.Context, params configs.Section) (envs.Factory, error) {
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
