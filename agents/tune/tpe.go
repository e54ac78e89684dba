package tune

import (
	"cmp"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The constants of TPE, as Optuna has them.
const (
	// candidates is how many values are drawn from the good trials' density, of which the most
	// promising is taken.
	candidates = 24
	// goodShare of the trials are the good ones, at most mostGood.
	goodShare = 0.1
	mostGood  = 25
	// recent is how many of the newest trials have full weight; those before have less, down to
	// 1/n.
	recent = 25
)

// observation is what a finished trial tells: its values, and how good it was, the smaller the
// better.
type observation struct {
	number int
	values Values
	// pruned trials are worse than completed ones, the sooner pruned the worse, and failed ones, at
	// stage -1, the worst.
	pruned bool
	stage  int
	loss   float64
}

// observations orders what finished trials tell, the best first.
func observations(done []Trial, direction string) []observation {
	sign := 1.0
	if direction == Maximize {
		sign = -1
	}
	var list []observation
	for _, t := range done {
		if !t.finished() {
			continue
		}
		o := observation{number: t.Number, values: t.Values, pruned: t.State != Complete, stage: len(t.Intermediate), loss: sign * float64(t.Value)}
		if t.State == Failed {
			o.stage = -1
		}
		if t.State == Failed || !t.Value.Defined() {
			o.loss = math.Inf(1)
		}
		list = append(list, o)
	}
	slices.SortStableFunc(list, func(x, y observation) int {
		switch {
		case x.pruned != y.pruned:
			if x.pruned {
				return 1
			}
			return -1
		case x.pruned && x.stage != y.stage:
			return y.stage - x.stage
		}
		return cmp.Or(cmp.Compare(x.loss, y.loss), x.number-y.number)
	})
	return list
}

// tpe draws from the density of the good trials and takes the candidate that is likeliest there
// compared with the others (Bergstra et al. 2011, "Algorithms for Hyper-Parameter Optimization",
// the tree-structured Parzen estimator, one parameter at a time).
func (a axis) tpe(path string, told []observation, s *rng.Stream) float64 {
	n := min(int(math.Ceil(goodShare*float64(len(told)))), mostGood)
	good, rest := a.density(path, told[:n]), a.density(path, told[n:])
	best, at := math.Inf(-1), 0.0
	for range candidates {
		x := good.draw(s)
		if score := good.log(x) - rest.log(x); score > best {
			best, at = score, x
		}
	}
	return at
}

// density is how likely a value is among some trials.
type density struct {
	a axis
	// weights, with means and deviations on the axis, are of a mixture of normal distributions that
	// are cut off at the axis' ends; of a categorical parameter they are the choices'
	// probabilities.
	weights, means, deviations []float64
}

// density estimates one from trials and a prior that is as wide as the axis and weighs as much as
// one trial.
func (a axis) density(path string, told []observation) density {
	// The newest have full weight.
	told = slices.Clone(told)
	slices.SortFunc(told, func(x, y observation) int { return x.number - y.number })
	weight := func(i int) float64 {
		old := len(told) - recent
		if i >= old {
			return 1
		}
		first := 1 / float64(len(told))
		return first + (1-first)*float64(i)/float64(old)
	}
	d := density{a: a}
	if a.choices > 0 {
		d.weights = make([]float64, a.choices)
		for i := range d.weights {
			d.weights[i] = 1
		}
		for i, o := range told {
			d.weights[int(o.values[path])] += weight(i)
		}
		d.normalise()
		return d
	}
	type center struct{ at, weight float64 }
	list := []center{{(a.low + a.high) / 2, 1}}
	for i, o := range told {
		list = append(list, center{a.to(o.values[path]), weight(i)})
	}
	prior := list[0]
	slices.SortStableFunc(list, func(x, y center) int { return cmp.Compare(x.at, y.at) })
	wide := a.high - a.low
	narrow := wide / min(100, 1+float64(len(list)))
	seen := false
	for i, c := range list {
		// A trial's deviation is the distance to its farther neighbour; the ends of the axis are
		// nobody's neighbour unless there is none on that side but the prior.
		left, right := 0.0, 0.0
		if i > 0 {
			left = c.at - list[i-1].at
		}
		if i < len(list)-1 {
			right = list[i+1].at - c.at
		}
		deviation := min(max(left, right, narrow), wide)
		if !seen && c == prior {
			deviation, seen = wide, true
		}
		d.weights, d.means, d.deviations = append(d.weights, c.weight), append(d.means, c.at), append(d.deviations, deviation)
	}
	d.normalise()
	return d
}

func (d *density) normalise() {
	sum := 0.0
	for _, w := range d.weights {
		sum += w
	}
	for i := range d.weights {
		d.weights[i] /= sum
	}
}

// draw returns a value, not a place on the axis.
func (d *density) draw(s *rng.Stream) float64 {
	for {
		k, u := 0, s.Float64()
		for k < len(d.weights)-1 && u >= d.weights[k] {
			u -= d.weights[k]
			k++
		}
		if d.a.choices > 0 {
			return float64(k)
		}
		// No component has most of its mass outside, so this ends soon.
		if x := d.means[k] + d.deviations[k]*s.Normal(); x >= d.a.low && x < d.a.high {
			return d.a.from(x)
		}
	}
}

// log returns the logarithm of the density at a value, of the probability of a whole one.
func (d *density) log(value float64) float64 {
	if d.a.choices > 0 {
		return math.Log(d.weights[int(value)])
	}
	sum := 0.0
	for k, w := range d.weights {
		inside := normalCDF((d.a.high-d.means[k])/d.deviations[k]) - normalCDF((d.a.low-d.means[k])/d.deviations[k])
		var p float64
		if d.a.whole {
			cell := func(x float64) float64 {
				return normalCDF((min(max(d.a.to(x), d.a.low), d.a.high) - d.means[k]) / d.deviations[k])
			}
			p = cell(value+0.5) - cell(value-0.5)
		} else {
			z := (d.a.to(value) - d.means[k]) / d.deviations[k]
			p = math.Exp(-z*z/2) / (math.Sqrt(2*math.Pi) * d.deviations[k])
		}
		sum += w * p / inside
	}
	return math.Log(sum + 1e-300)
}

func normalCDF(z float64) float64 { return 0.5 * math.Erfc(-z/math.Sqrt2) }
