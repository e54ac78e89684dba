package ope

import "math"

// Trajectory is an episode of T steps as estimators read it. Package rlmath's conventions hold:
// element t belongs to the step from observation t to the next one.
type Trajectory struct {
	// LogRatio is log π(aₜ|sₜ) − log b(aₜ|sₜ), [T]; nil where that is not known.
	LogRatio []float64
	// Reward and Discount are [T]; the discount of a step is γ times the environment's, 0 after a
	// termination.
	Reward, Discount []float64
	// Q are the values of the recorded actions, [T], and V those of the policy, [T + 1]; nil
	// without a fitted q.
	Q, V []float64
}

// gain is the discounted return.
func (x *Trajectory) gain() float64 {
	sum, d := 0.0, 1.0
	for t, r := range x.Reward {
		sum += d * r
		d *= x.Discount[t]
	}
	return sum
}

// perDecision is the estimate of pdis by one episode. What cannot happen to the policy does not
// count, whatever it would be worth.
func (x *Trajectory) perDecision() float64 {
	sum, d, log := 0.0, 1.0, 0.0
	for t, r := range x.Reward {
		log += x.LogRatio[t]
		if rho := math.Exp(log); rho != 0 {
			sum += d * rho * r
		}
		d *= x.Discount[t]
	}
	return sum
}

// doublyRobust is the estimate of dr by one episode.
func (x *Trajectory) doublyRobust() float64 {
	n := len(x.Reward)
	next := x.V[n]
	for t := n - 1; t >= 0; t-- {
		value := x.V[t]
		if rho := math.Exp(x.LogRatio[t]); rho != 0 {
			value += rho * (x.Reward[t] + x.Discount[t]*next - x.Q[t])
		}
		next = value
	}
	return next
}

// first is the value of the first observation.
func (x *Trajectory) first() float64 { return x.V[0] }

// logWeight is log ρ of the whole episode.
func (x *Trajectory) logWeight() float64 {
	sum := 0.0
	for _, r := range x.LogRatio {
		sum += r
	}
	return sum
}

// EffectiveSampleSize is (Σ ρ)²/Σ ρ² of the episodes' weights, and NaN where all are 0.
func EffectiveSampleSize(list []Trajectory) float64 {
	most := math.Inf(-1)
	for i := range list {
		most = max(most, list[i].logWeight())
	}
	sum, squares := 0.0, 0.0
	for i := range list {
		w := math.Exp(list[i].logWeight() - most)
		sum, squares = sum+w, squares+w*w
	}
	return sum * sum / squares
}
