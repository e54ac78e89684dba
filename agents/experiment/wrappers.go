package experiment

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Complete returns the configuration with values that follow from the rest of it. The metric by which
// policies are chosen, where it is left open, is that of the environments' judge, and the mean return of
// episodes elsewhere. The number of environments is one where nothing but a data set is learnt from, and else
// what train says for those of the factory. The run's normalisation is written among the wrappers, and
// discounts returns as the agent does unless it says otherwise. A nil factory leaves the number of
// environments open.
func (k Kinds) Complete(c Config, f envs.Factory) Config {
	if c.Train.Validation.Metric == "" {
		c.Train.Validation.Metric = "mean_reward"
		for _, j := range k.Judges {
			if c.Env.Kind == j.Kind() {
				c.Train.Validation.Metric = j.Metric()
			}
		}
	}
	if n := &c.Wrappers.Normalize; n.Reward && n.Gamma == nil {
		if s, ok := c.Agent.Lookup("gamma"); ok {
			gamma := n.Discount()
			// The agent reports a value that is no number.
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

// preprocess puts the wrappers of a document around a factory's environments.
func (k Kinds) preprocess(f envs.Factory, c wrap.Config) (envs.Factory, error) {
	if j := k.judge(f); j != nil {
		return j.Wrap(f, c)
	}
	return wrap.Apply(f, c)
}

// Rewrap returns the environments of a factory with other wrappers, in the place of those that
// [Kinds.Open] has put around them. They are still the factory's: it is closed after the use of
// what is returned, which is not.
func (k Kinds) Rewrap(f envs.Factory, c wrap.Config) (envs.Factory, error) {
	for {
		w, ok := f.(wrap.Wrapper)
		if !ok {
			return k.preprocess(f, c)
		}
		f = w.Unwrap()
	}
}
