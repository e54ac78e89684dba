package evolve

import (
	"errors"
	"maps"
	"math"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// PBT is population-based training by truncation (Jaderberg et al. 2017), with Ray Tune's names and
// defaults: the worst Quantile of members become clones of random ones of the best, with other
// hyper-parameters.
type PBT struct {
	// Quantile is the share of members that is replaced, and that is cloned, at most half.
	Quantile float64 `yaml:"quantile_fraction"`
	// Resample is the probability with which a hyper-parameter is drawn again from the search
	// space. Otherwise it is multiplied by one of Factors.
	Resample float64   `yaml:"resample_probability"`
	Factors  []float64 `yaml:"perturbation_factors"`
	// Noise, unless 0, is the standard deviation of what is added to a hyper-parameter, in place of
	// Factors.
	Noise float64 `yaml:"noise"`
	// Clip keeps hyper-parameters within the bounds of the search space.
	Clip bool `yaml:"clip"`
	// Inherit lets clones begin with the hyper-parameters of the better member; otherwise with
	// their own.
	Inherit bool `yaml:"inherit"`
}

// Validate reports all problems of the parameters.
func (b PBT) Validate() error {
	var p configs.Problems
	p.InRange("quantile_fraction", b.Quantile, 0, 0.5)
	p.InRange("resample_probability", b.Resample, 0, 1)
	p.NonNegative("noise", b.Noise)
	for _, f := range b.Factors {
		p.Check(f > 0 && f-f == 0, "perturbation_factors", "%g is no positive number", f)
	}
	p.Check(len(b.Factors) > 0 || b.Noise > 0, "perturbation_factors", "must not be empty")
	return p.Err()
}

// Check needs two members, of which one can be better.
func (b PBT) Check(members int) error { return atLeastTwo(members) }

func atLeastTwo(members int) error {
	if members < 2 {
		return errors.New("a population of 1 has nobody to learn from; expected at least 2 members")
	}
	return nil
}

// truncate returns the worst members and, as many, the best, in the order of their ranks.
func truncate(list []Member, quantile float64) (worst, best []int) {
	order := ranked(list)
	n := min(int(math.Ceil(quantile*float64(len(list)))), len(list)/2)
	worst, best = order[len(order)-n:], order[:n]
	for len(best) > 0 && math.IsNaN(list[best[len(best)-1]].Score) {
		best = best[:len(best)-1]
	}
	if len(best) == 0 {
		worst = nil
	}
	return worst, best
}

// Next replaces the worst members.
func (b PBT) Next(history [][]Member, space tune.Space, s *rng.Stream) []Take {
	list := history[len(history)-1]
	takes := keep(list)
	worst, best := truncate(list, b.Quantile)
	for _, a := range worst {
		from := best[s.IntN(len(best))]
		hyper := a
		if b.Inherit {
			hyper = from
		}
		takes[a] = Take{Weights: from, Hyper: hyper, Values: b.explore(list[hyper].Values, space, s), Action: Clone}
	}
	return takes
}

// explore returns other hyper-parameters.
func (b PBT) explore(v tune.Values, space tune.Space, s *rng.Stream) tune.Values {
	v, drawn := maps.Clone(v), space.Draw(s)
	for _, path := range space.Paths() {
		switch {
		case s.Bernoulli(b.Resample):
			v[path] = drawn[path]
		case b.Noise > 0:
			set(v, path, space[path], v[path]+b.Noise*s.Normal(), b.Clip)
		default:
			set(v, path, space[path], v[path]*b.Factors[s.IntN(len(b.Factors))], b.Clip)
		}
	}
	return v
}
