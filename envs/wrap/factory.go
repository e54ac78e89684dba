package wrap

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
)

// Apply returns f with the wrappers of a section around every environment, from the inside: time
// limit, frame stack, skill, rescaled actions, clipped actions. Without any it returns f itself.
// Normalize is not among them: it is for whole vectors, see vector.Normalized. A factory that stays
// f's is closed by closing the returned one.
//
// Errors name the key of the section that does not fit, and the environment's side of it.
func Apply(f envs.Factory, c Config) (envs.Factory, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("wrappers: %w", err)
	}
	if !c.any() {
		return f, nil
	}
	w := &factory{f, c}
	// A wrapper that does not fit is found now and not by the first environment of a run.
	e, err := w.New(envs.Train, 0)
	if err != nil {
		return nil, err
	}
	return w, e.Close()
}

// any reports whether the section asks for wrappers of single environments.
func (c Config) any() bool {
	return c.TimeLimit > 0 || c.FrameStack.On() || c.Skill.On() || c.RescaleAction || c.ClipAction
}

type factory struct {
	envs.Factory
	c Config
}

// on returns the section for environments of a split.
func (f *factory) on(split envs.Split) Config {
	c := f.c
	c.Skill = c.Skill.on(split)
	return c
}

// Skills are the skills that the wrappers add.
func (f *factory) Skills() Skills { return f.c.Skill }

// New implements envs.Factory.
func (f *factory) New(split envs.Split, index int) (envs.Env, error) {
	e, err := f.Factory.New(split, index)
	if err != nil {
		return nil, err
	}
	out, err := wrap(e, f.on(split))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wrappers.%w", err), e.Close())
	}
	return out, nil
}

// wrap puts all wrappers around e. The error begins with the key that asks for the one that does
// not fit.
func wrap(e envs.Env, c Config) (_ envs.Env, err error) {
	layer := func(key string, on bool, put func() (envs.Env, error)) {
		if !on || err != nil {
			return
		}
		var outer envs.Env
		if outer, err = put(); err != nil {
			err = fmt.Errorf("%s: %w", key, err)
			return
		}
		e = outer
	}
	layer("time_limit", c.TimeLimit > 0, func() (envs.Env, error) { return NewTimeLimit(e, c.TimeLimit) })
	layer("frame_stack", c.FrameStack.On(), func() (envs.Env, error) { return NewFrameStack(e, c.FrameStack) })
	layer("skill", c.Skill.On(), func() (envs.Env, error) { return NewSkill(e, c.Skill) })
	layer("rescale_action", c.RescaleAction, func() (envs.Env, error) { return NewRescaleAction(e) })
	layer("clip_action", c.ClipAction, func() (envs.Env, error) { return NewClipAction(e) })
	return e, err
}
