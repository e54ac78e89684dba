package ope

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models/encoder"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Config describes an off-policy evaluation.
type Config struct {
	// Estimators are what is asked for; nil is all that the data and the policy allow, and the
	// others have notes.
	Estimators []string
	// Gamma is the discount factor.
	Gamma float64
	// Samples and Level are those of the bootstrap. Without samples there are no intervals.
	Samples int
	Level   float64
	FQE     FQEConfig
	// Seed is where all randomness descends from.
	Seed uint64
}

// Defaults returns 1000 bootstrap samples for intervals of 95 %, and γ 0.99.
func Defaults() Config {
	return Config{Gamma: 0.99, Samples: 1000, Level: 0.95, FQE: DefaultFQE()}
}

// Validate reports all problems.
func (c Config) Validate() error {
	var p configs.Problems
	for _, name := range c.Estimators {
		p.OneOf("estimators", name, Estimators()...)
	}
	p.InRange("gamma", c.Gamma, 0, 1)
	p.AtLeast("samples", c.Samples, 0)
	p.Check(c.Level > 0 && c.Level < 1, "level", "is %g, expected a share between 0 and 1", c.Level)
	p.Join("fqe", c.FQE.Validate())
	return p.Err()
}

// Tools are what an evaluation runs on.
type Tools struct {
	Engine engine.Compiler
	// Encoders are those of windows.
	Encoders []encoder.Kind
	// Progress, unless nil, receives the updates of fitted Q evaluation.
	Progress func(done int, loss float64)
}

// Evaluate estimates the value of a policy. The first estimate is that of the behaviour; the others
// are in the order of [Estimators]. When ctx ends the error is ctx's.
func Evaluate(ctx context.Context, c Config, d *Data, p *Policy, t Tools) ([]Estimate, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	key, list := rng.New(c.Seed).Split("ope"), d.trajectories(c.Gamma)
	unknown := d.known()
	if !p.drawn() {
		unknown = fmt.Errorf("the policy always takes its best action, which has no density in a box: only %s estimates its value (eval.deterministic: false evaluates what it draws)", FQE)
	}
	asked := func(name string) bool { return c.Estimators == nil || slices.Contains(c.Estimators, name) }
	possible := func(name string) bool { return unknown == nil || !weighs(name) }
	fit := false
	for _, name := range Estimators() {
		if c.Estimators != nil && asked(name) && !possible(name) {
			return nil, fmt.Errorf("%s: %w", name, unknown)
		}
		fit = fit || asked(name) && fits(name) && possible(name)
	}
	if unknown == nil {
		p.ratios(d, list)
	}
	if fit {
		if err := c.fit(ctx, d, p, list, key, t); err != nil {
			return nil, err
		}
	}
	var out []Estimate
	for _, name := range append([]string{Behaviour}, Estimators()...) {
		if name != Behaviour && !asked(name) {
			continue
		}
		if !possible(name) {
			out = append(out, missing(name, unknown))
			continue
		}
		e, err := Of(ctx, name, list, Bootstrap{c.Samples, c.Level, key})
		if err != nil {
			return nil, err
		}
		if fits(name) && e.Note == "" {
			e.Note = c.FQE.unsettled(d, c.Gamma)
		}
		out = append(out, e)
	}
	return out, nil
}

// fit gives the episodes the values of a fitted q.
func (c *Config) fit(ctx context.Context, d *Data, p *Policy, list []Trajectory, key rng.Key, t Tools) (err error) {
	f, err := newFitter(c.FQE, d, p, c.Gamma, t.Engine, t.Encoders, key.Split("fqe"))
	if err != nil {
		return fmt.Errorf("fitted q evaluation: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := f.fit(ctx, t.Progress); err != nil {
		return err
	}
	return f.evaluate(ctx, list)
}
