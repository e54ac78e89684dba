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
// elsewhere, and the run's normalisation, which is written among the wrappers and discounts returns
// as the agent does unless it says otherwise.
func (c Config) Complete() Config {
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
	c.Train.Normalize = c.Wrappers.Normalize
	return c
}

// preprocess puts the wrappers of a document around a factory's environments. The trading
// environment is evaluated by back-tests that know no wrappers; normalisation is no wrapper of one
// environment and fits.
func preprocess(f envs.Factory, c wrap.Config) (envs.Factory, error) {
	if _, ok := f.(trading.Opened); ok && (c.TimeLimit > 0 || c.FrameStack.On() || c.Skill.On() || c.RescaleAction || c.ClipAction) {
		return nil, errors.New("wrappers: the trading environment takes none but normalize, because back-tests know no others; its episodes, windows and orders are set in env")
	}
	return wrap.Apply(f, c)
}
