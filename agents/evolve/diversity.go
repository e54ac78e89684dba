package evolve

import (
	"math"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/wrap"
)

// Actions are those of an environment, to be compared.
type Actions struct {
	Space envs.Space
	// shares, unless nil, writes the shares of a whole that an action stands for.
	shares func(shares []float64, action []float32, scratch []float64)
}

// ActionsOf returns the actions of a factory's environments.
func ActionsOf(f envs.Factory) (a Actions, err error) {
	if o, ok := wrap.FindFactory[envs.SharesFactory](f); ok {
		a.shares = o.Shares()
	}
	e, err := f.New(envs.Train, 0)
	if err != nil {
		return a, err
	}
	a.Space = e.Spec().Action
	return a, e.Close()
}

// MAPD is [MAPD] of these actions; of shares of a whole it is that of the shares that they stand for.
func (a Actions) MAPD(actions [][]float64) (mean float64, each []float64) {
	if a.shares == nil {
		return MAPD(a.Space, false, actions)
	}
	n := a.Space.Shape()[0]
	row, scratch, weights := make([]float32, n), make([]float64, n), make([][]float64, len(actions))
	for i, list := range actions {
		weights[i] = make([]float64, len(list))
		for at := 0; at < len(list); at += n {
			for k := range row {
				row[k] = float32(list[at+k])
			}
			a.shares(weights[i][at:at+n], row, scratch)
		}
	}
	return MAPD(a.Space, true, weights)
}

// Distance returns how far two policies lie apart, from 0 to 1: a and b are what they do, in the
// elements of the action space, after the same observations. It is the mean over observations, in a
// [envs.Box] of the Euclidean distance divided by the diagonal of the box, NaN where that has none;
// in other spaces of the share of components that differ. simplex says that actions in a box are
// shares of a whole: then of the total variation, half the sum of the absolute differences.
func Distance(space envs.Space, simplex bool, a, b []float64) float64 {
	width := 1
	for _, n := range space.Shape() {
		width *= n
	}
	box, ok := space.(envs.Box)
	if !ok {
		differ := 0.0
		for i := range a {
			if a[i] != b[i] {
				differ++
			}
		}
		return differ / float64(len(a))
	}
	diagonal := 0.0
	for i := range width {
		r := box.Bounds(i)
		diagonal += (r.High - r.Low) * (r.High - r.Low)
	}
	diagonal = math.Sqrt(diagonal)
	if math.IsInf(diagonal, 0) && !simplex {
		return math.NaN()
	}
	sum := 0.0
	for i := 0; i < len(a); i += width {
		absolute, square := 0.0, 0.0
		for k := i; k < i+width; k++ {
			d := a[k] - b[k]
			absolute += math.Abs(d)
			square += d * d
		}
		if simplex {
			sum += absolute / 2
		} else {
			sum += math.Sqrt(square) / diagonal
		}
	}
	return sum / float64(len(a)/width)
}

// MAPD returns the mean action pairwise distance of policies: the mean of [Distance] over all
// pairs, and of each policy the mean over the others; NaN for less than two. actions has what each
// of them does.
func MAPD(space envs.Space, simplex bool, actions [][]float64) (mean float64, each []float64) {
	n := float64(len(actions))
	each = make([]float64, len(actions))
	for i, a := range actions {
		for j, b := range actions[:i] {
			d := Distance(space, simplex, a, b) / (n - 1)
			each[i] += d
			each[j] += d
		}
	}
	if n < 2 {
		mean = math.NaN()
		for i := range each {
			each[i] = math.NaN()
		}
	}
	for _, d := range each {
		mean += d / n
	}
	return mean, each
}
