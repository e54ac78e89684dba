package ablate

import (
	"context"
	"fmt"
	"sync"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// Opened returns an [Effective] that opens the parts of experiments. Data are loaded once for equal
// environments, of which a grid has many, and are not kept.
func Opened(k experiment.Kinds) Effective {
	o := &opener{kinds: k, envs: map[string]opened{}}
	return o.open
}

type opener struct {
	kinds experiment.Kinds

	mu   sync.Mutex
	envs map[string]opened
}

// opened is what is known of an environment.
type opened struct {
	config configs.Kinded
	shape  string
}

func (o *opener) open(ctx context.Context, c experiment.Config) (experiment.Config, string, error) {
	var err error
	if _, c.Agent, err = o.kinds.Agent(c.Agent); err != nil {
		return c, "", err
	}
	env, err := o.env(ctx, c)
	if err != nil {
		return c, "", err
	}
	c.Env = env.config
	c = o.kinds.Complete(c, nil)
	// Cost is decided by what is observed, how it is learnt from, and how often that is looked at.
	shape, err := configs.Digest(struct {
		Env             string
		Wrappers, Train any
		Agent           configs.Kinded
	}{env.shape, c.Wrappers, c.Train, c.Agent})
	return c, shape, err
}

func (o *opener) env(ctx context.Context, c experiment.Config) (opened, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	key, err := configs.Digest(c.Env)
	if err != nil {
		return opened{}, err
	}
	if known, ok := o.envs[key]; ok {
		return known, nil
	}
	factory, err := envs.Open(ctx, o.kinds.Envs, c.Env)
	if err != nil {
		return opened{}, err
	}
	defer factory.Close()
	var e opened
	for _, split := range []envs.Split{envs.Train, envs.Valid} {
		env, err := factory.New(split, 0)
		if err != nil {
			return opened{}, err
		}
		spec := env.Spec()
		e.shape += fmt.Sprintf("%s %d:", split, spec.MaxSteps)
		for _, f := range spec.Observation {
			e.shape += fmt.Sprintf(" %s%v", f.Name, f.Space.Shape())
		}
		if err := env.Close(); err != nil {
			return opened{}, err
		}
	}
	e.config, err = configs.NewKinded(c.Env.Kind, factory.Config())
	if err == nil {
		o.envs[key] = e
	}
	return e, err
}
