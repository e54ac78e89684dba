package experiment

import (
	"errors"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// tradingKind is the kind of environment that back-tests evaluate.
const tradingKind = "trading"

// Complete returns the document with what follows from the rest of it: what policies are chosen by
// where that is left open, which is the Sharpe ratio in a market and the mean return of episodes
// elsewhere, one environment where nothing but a data set is learnt from and else as many as train
// says for those of the factory, and the run's normalisation, which is written among the wrappers
// and discounts returns as the agent does unless it says otherwise. A nil factory leaves the number
// of environments open.
func (c Config) Complete(f envs.Factory) Config {
	if c.Train.Validation.Metric == "" {
		c.Train.Validation.Metric = "mean_reward"
		if c.Env.Kind == tradingKind {
			c.Train.Validation.Metric = "sharpe"
		}
	}
	if n := &c.Wrappers.Normalize; n.Reward && n.Gamma == nil {
		if s, ok := c.Agent.Lookup("gamma"); ok {
			gamma := n.Discount()
			// What is no number is the agent's mistake to report.
			if s.Decode(&gamma) == nil {
				n.Gamma = &gamma
			}
		}
	}
	if d := c.Dataset; d != nil && d.Share == 1 {
		// Rounds only count, and those of one environment are the updates.
		c.Train.NumEnvs = 1
	} else if f != nil {
		c.Train = c.Train.For(f)
	}
	c.Train.Normalize = c.Wrappers.Normalize
	return c
}

// preprocess puts the wrappers of a document around a factory's environments. The trading
// environment is evaluated by back-tests, which know no wrappers: of a skill they are told which
// one it is, and normalisation is no wrapper of one environment and fits.
func preprocess(f envs.Factory, c wrap.Config) (envs.Factory, error) {
	o, ok := f.(trading.Opened)
	switch {
	case ok && (c.TimeLimit > 0 || c.FrameStack.On() || c.RescaleAction || c.ClipAction):
		return nil, errors.New("wrappers: the trading environment takes none but normalize and skill, because back-tests know no others; its episodes, windows and orders are set in env")
	case ok && c.Skill.On() && c.Skill.Fixed == nil:
		return nil, errors.New("wrappers.skill.fixed: required in the trading environment: the number of the skill that back-tests and what is published have")
	}
	out, err := wrap.Apply(f, c)
	if w, wrapped := out.(wrap.Wrapper); ok && wrapped && err == nil {
		return &opened{w, o}, nil
	}
	return out, err
}

// Rewrap returns the environments of a factory with other wrappers, in the place of those that
// [Kinds.Open] has put around them. They are still the factory's: it is closed after the use of
// what is returned, which is not.
func Rewrap(f envs.Factory, c wrap.Config) (envs.Factory, error) {
	for {
		w, ok := f.(wrap.Wrapper)
		if !ok {
			return preprocess(f, c)
		}
		f = w.Unwrap()
	}
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
