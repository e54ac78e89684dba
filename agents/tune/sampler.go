package tune

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// sample draws values for every path from a stream, each by itself: by TPE once enough trials have
// told something, and before that, or without it, by chance.
func sample(space Space, c Config, done []Trial, s *rng.Stream) Values {
	told := observations(done, c.Direction)
	v := Values{}
	for _, path := range space.Paths() {
		p := space[path]
		a := axisOf(&p)
		if c.Sampler == TPE && len(told) >= c.StartupTrials {
			v[path] = a.tpe(path, told, s)
		} else {
			v[path] = a.random(s)
		}
	}
	return v
}

// axis is a parameter as samplers see it: an interval, in which whole numbers stand in the middle
// of cells of width 1, or a number of choices.
type axis struct {
	low, high float64
	log       bool
	whole     bool
	choices   int
}

func axisOf(p *Parameter) axis {
	a := axis{low: p.Low, high: p.High, log: p.logarithmic(), whole: p.Kind == Int, choices: len(p.Choices)}
	if a.whole {
		a.low, a.high = a.low-0.5, a.high+0.5
	}
	if a.log {
		a.low, a.high = math.Log(a.low), math.Log(a.high)
	}
	return a
}

// to and from lead between values and the axis.
func (a axis) to(x float64) float64 {
	if a.log {
		return math.Log(x)
	}
	return x
}

func (a axis) from(x float64) float64 {
	if a.log {
		x = math.Exp(x)
	}
	low, high := a.low, a.high
	if a.log {
		low, high = math.Exp(low), math.Exp(high)
	}
	if a.whole {
		return math.Round(min(max(x, low+0.5), high-0.5))
	}
	return min(max(x, low), high)
}

// random draws evenly.
func (a axis) random(s *rng.Stream) float64 {
	if a.choices > 0 {
		return float64(s.IntN(a.choices))
	}
	return a.from(a.low + s.Float64()*(a.high-a.low))
}
