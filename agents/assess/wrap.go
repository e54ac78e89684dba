package assess

import (
	"errors"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Wrap implements [experiment.Judge]. The trading environment is evaluated by back-tests, which know
// no wrappers: they receive the skill as a number, and normalisation is no wrapper of one
// environment and fits.
func (Judge) Wrap(f envs.Factory, c wrap.Config) (envs.Factory, error) {
	switch {
	case c.TimeLimit > 0 || c.FrameStack.On() || c.RescaleAction || c.ClipAction:
		return nil, errors.New("wrappers: the trading environment takes none but normalize and skill, because back-tests know no others; its episodes, windows and orders are set in env")
	case c.Skill.On() && c.Skill.Fixed == nil:
		return nil, errors.New("wrappers.skill.fixed: required in the trading environment: the number of the skill that back-tests and what is published have")
	}
	out, err := wrap.Apply(f, c)
	if w, ok := out.(wrap.Wrapper); ok && err == nil {
		return &opened{w, f.(trading.Opened)}, nil
	}
	return out, err
}

// opened is a factory of the trading environment with wrappers around single environments; the
// source of back-tests has none.
type opened struct {
	wrap.Wrapper
	inside trading.Opened
}

var _ trading.Opened = (*opened)(nil)

// Data implements trading.Opened.
func (o *opened) Data() *trading.Data { return o.inside.Data() }

// Source implements trading.Opened.
func (o *opened) Source() *trading.Source { return o.inside.Source() }

// Unwrap returns the factory with the wrappers.
func (o *opened) Unwrap() envs.Factory { return o.Wrapper }
