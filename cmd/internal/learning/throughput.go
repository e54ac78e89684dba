package learning

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment/kinds"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Row is a whole training whose speed is measured; the JSON keys are stable.
type Row struct {
	// Name is also that of the run document.
	Name string `json:"name"`
	// Settings says whose hyper-parameters they are.
	Settings string `json:"settings"`
}

// Whose hyper-parameters a Row has.
const (
	SB3 = "Stable-Baselines3's defaults"
	Zoo = "RL Baselines3 Zoo"
)

// Rows lists the trainings of "onnxrl bench train".
func Rows() []Row {
	return []Row{
		{"ppo_cartpole", SB3}, {"a2c_cartpole", SB3}, {"dqn_cartpole", SB3}, {"sac_pendulum", SB3}, {"td3_pendulum", SB3},
		{"cartpole_ppo", Zoo}, {"cartpole_dqn", Zoo},
	}
}

// SelectRows returns the rows whose names match one of the patterns of package path; all without a
// pattern. A pattern that matches none is an error.
func SelectRows(patterns []string) ([]Row, error) {
	return Matching(Rows(), patterns, func(r Row) string { return r.Name })
}

// Matching returns the elements whose names match one of the patterns of package path, or all
// without a pattern. One that matches none is an error.
func Matching[T any](list []T, patterns []string, name func(T) string) ([]T, error) {
	var out []T
	used := make([]bool, len(patterns))
	for _, x := range list {
		take := len(patterns) == 0
		for i, p := range patterns {
			ok, err := path.Match(p, name(x))
			if err != nil {
				return nil, fmt.Errorf("pattern %q: %w", p, err)
			}
			if ok {
				used[i], take = true, true
			}
		}
		if take {
			out = append(out, x)
		}
	}
	for i, ok := range used {
		if !ok {
			return nil, fmt.Errorf("nothing matches %q; --list shows what there is", patterns[i])
		}
	}
	return out, nil
}

// Speed is how fast a training is; the JSON keys are stable.
type Speed struct {
	Name     string `json:"name"`
	Settings string `json:"settings"`
	Threads  int    `json:"threads"`
	EnvSteps int64  `json:"env_steps"`
	// Seconds are of the run alone, without making environments and networks.
	Seconds           float64 `json:"seconds"`
	EnvStepsPerSecond float64 `json:"env_steps_per_second"`
	// Phases are the seconds of each part of the work, by name; empty unless a profile was asked
	// for.
	Phases map[string]float64 `json:"phases,omitempty"`
}

// Throughput trains for the env steps of a row's document, without validation and checkpoints.
func Throughput(ctx context.Context, r Row, seed uint64, o Options) (s Speed, err error) {
	cfg, err := Load(r.Name, o)
	if err != nil {
		return s, err
	}
	cfg.Seed, cfg.Train.Validation.EverySteps = seed, 0
	cfg, factory, maker, err := kinds.All().Open(ctx, cfg)
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, factory.Close()) }()
	setup := agents.Setup{Engine: o.Engine, Encoders: kinds.All().Encoders, Key: rng.New(seed), Profile: o.Profile}
	t, err := train.New(ctx, factory, maker, setup, cfg.Train, train.Hooks{Progress: o.Each})
	if err != nil {
		return s, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	start := time.Now()
	done, err := t.Run(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return s, fmt.Errorf("%s: %w", r.Name, err)
	}
	s = Speed{Name: r.Name, Settings: r.Settings, Threads: t.Config().Threads, EnvSteps: done.Taken, Seconds: time.Since(start).Seconds()}
	s.EnvStepsPerSecond = float64(s.EnvSteps) / s.Seconds
	if o.Profile != nil {
		s.Phases = map[string]float64{}
		for name, d := range o.Profile.ByName() {
			s.Phases[name] = d.Seconds()
		}
	}
	return s, nil
}
