package ope

import "math"

// weighted computes wpdis and wdr of bootstrap samples of the same episodes. ρ is kept divided by
// the largest of its step, which cancels out, so that none overflows.
type weighted struct {
	list []Trajectory
	// robust is wdr.
	robust bool
	// rho are those of the steps, episode after episode; decay are the factors from the scale of a
	// step to that of the next one.
	rho   [][]float64
	decay []float64
	// norm, ended are room for the sums of a sample, by step.
	norm, ended []float64
}

func newWeighted(list []Trajectory, robust bool) *weighted {
	w := &weighted{list: list, robust: robust, rho: make([][]float64, len(list))}
	steps := 0
	for i := range list {
		steps = max(steps, len(list[i].Reward))
	}
	most := make([]float64, steps)
	for t := range most {
		most[t] = math.Inf(-1)
	}
	for i := range list {
		log, x := 0.0, &list[i]
		w.rho[i] = make([]float64, len(x.Reward))
		for t, r := range x.LogRatio {
			log += r
			w.rho[i][t] = log
			most[t] = max(most[t], log)
		}
		for t := len(x.Reward); t < steps; t++ {
			most[t] = max(most[t], log)
		}
	}
	for i := range w.rho {
		for t := range w.rho[i] {
			// Where no episode is possible, all are 0.
			w.rho[i][t] = math.Exp(w.rho[i][t] - max(most[t], -math.MaxFloat64))
		}
	}
	w.norm, w.ended, w.decay = make([]float64, steps), make([]float64, steps), make([]float64, steps)
	for t := 1; t < steps; t++ {
		if !math.IsInf(most[t], -1) {
			w.decay[t] = min(math.Exp(most[t-1]-most[t]), math.MaxFloat64)
		}
	}
	return w
}

// estimate is the estimate of a sample that has episode i count[i] times. It is NaN where a step
// counts that no episode of the sample could have reached by the policy.
func (w *weighted) estimate(count []float64) float64 {
	clear(w.norm)
	clear(w.ended)
	n := 0.0
	for i, c := range count {
		if c == 0 {
			continue
		}
		n += c
		rho := w.rho[i]
		for t, r := range rho {
			w.norm[t] += c * r
		}
		// The weight of episodes that have ended is added below, on the scale of the next step.
		if last := len(rho) - 1; last+1 < len(w.ended) {
			w.ended[last+1] += c * rho[last] * w.decay[last+1]
		}
	}
	over := 0.0
	for t := range w.norm {
		over = over*w.decay[t] + w.ended[t]
		w.norm[t] += over
	}
	sum := 0.0
	for i, c := range count {
		if c == 0 {
			continue
		}
		sum += c * w.episode(i, 1/n)
	}
	return sum
}

// episode is the part of an episode that counts once; before is w₋₁.
func (w *weighted) episode(i int, before float64) float64 {
	x, sum, d := &w.list[i], 0.0, 1.0
	for t, r := range x.Reward {
		if w.robust {
			sum += d * before * x.V[t]
			r -= x.Q[t]
		}
		before = w.rho[i][t] / w.norm[t]
		sum += d * before * r
		d *= x.Discount[t]
	}
	if w.robust && d != 0 {
		sum += d * before * x.V[len(x.Reward)]
	}
	return sum
}
