package evolve

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/tune"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// PB2 is population-based bandits (Parker-Holder et al. 2020): the worst members become clones of
// random ones of the best, as in PBT, but their hyper-parameters are those of the search space with
// the highest upper confidence bound of a Gaussian process. It has learnt how much the score of a
// generation has risen from hyper-parameters and time; its kernel is a squared exponential times
// (1−ε)^(|Δt|/2), so that what is long past counts less. Length scale, ε and noise are those of a
// grid with the highest marginal likelihood.
type PB2 struct {
	// Quantile is the share of members that is replaced, at most half.
	Quantile float64 `yaml:"quantile_fraction"`
	// Window is how many of the newest observations the process has, and Candidates how many random
	// points the bound is compared at.
	Window     int `yaml:"window"`
	Candidates int `yaml:"candidates"`
}

// Validate reports all problems of the parameters.
func (b PB2) Validate() error {
	var p configs.Problems
	p.InRange("quantile_fraction", b.Quantile, 0, 0.5)
	p.AtLeast("window", b.Window, 4)
	p.AtLeast("candidates", b.Candidates, 1)
	return p.Err()
}

// Check needs two members, of which one can be better.
func (b PB2) Check(members int) error { return atLeastTwo(members) }

// Next replaces the worst members.
func (b PB2) Next(history [][]Member, space tune.Space, s *rng.Stream) []Take {
	list := history[len(history)-1]
	takes := keep(list)
	worst, best := truncate(list, b.Quantile)
	if len(worst) == 0 {
		return takes
	}
	told := b.observations(history, space)
	var gp *process
	if len(told) > 3 {
		gp = fit(told)
	}
	// The choices of others in the next generation lower the variance near them.
	now := float64(len(history))
	replaced := map[int]bool{}
	for _, a := range worst {
		replaced[a] = true
	}
	for i, m := range list {
		if gp != nil && !replaced[i] {
			gp.expect(unit(m.Values, space), now)
		}
	}
	for _, a := range worst {
		from := best[s.IntN(len(best))]
		takes[a] = Take{Weights: from, Hyper: from, Action: Clone}
		high := math.Inf(-1)
		for range b.Candidates {
			v := space.Draw(s)
			if gp == nil {
				takes[a].Values = v
				break
			}
			if u := gp.bound(unit(v, space), now, len(told)); u > high {
				high, takes[a].Values = u, v
			}
		}
		if gp != nil {
			gp.expect(unit(takes[a].Values, space), now)
		}
	}
	return takes
}

// observation is by how much the score has risen in a generation with hyper-parameters x, which are
// scaled to 0 to 1.
type observation struct {
	x    []float64
	t, y float64
}

// observations lists the newest, with standardised rises.
func (b PB2) observations(history [][]Member, space tune.Space) []observation {
	var list []observation
	for g := len(history) - 1; g > 0 && len(list) < b.Window; g-- {
		for _, m := range history[g] {
			if m.Parent < 0 {
				continue
			}
			if y := m.Score - history[g-1][m.Parent].Score; y-y == 0 {
				list = append(list, observation{unit(m.Values, space), float64(g), y})
			}
		}
	}
	list = list[:min(len(list), b.Window)]
	mean, square := 0.0, 0.0
	for _, o := range list {
		mean += o.y / float64(len(list))
	}
	for _, o := range list {
		square += (o.y - mean) * (o.y - mean) / float64(len(list))
	}
	std := math.Sqrt(square)
	if std == 0 {
		std = 1
	}
	for i := range list {
		list[i].y = (list[i].y - mean) / std
	}
	return list
}

// unit scales hyper-parameters to 0 to 1, by their logarithms where they are searched so.
func unit(v tune.Values, space tune.Space) []float64 {
	var x []float64
	for _, path := range space.Paths() {
		p, at := space[path], v[path]
		low, high := p.Low, p.High
		if p.Kind == tune.LogUniform || p.Log {
			low, high, at = math.Log(low), math.Log(high), math.Log(at)
		}
		x = append(x, (at-low)/(high-low))
	}
	return x
}
