package rlmath

import "fmt"

// QTargets writes yₜ = rₜ + γₜ·maxₐ q(sₜ, a), the targets of Q-learning (Mnih et al. 2015). q_t is
// [B, actions]. Actions that mask excludes do not count; a nil mask allows all. mask has the layout
// of q_t.
func QTargets[F Float](dst, r_t, discount_t, q_t []F, mask []bool) {
	DoubleQTargets(dst, r_t, discount_t, q_t, q_t, mask)
}

// DoubleQTargets writes the targets of double Q-learning (van Hasselt et al. 2016, arXiv
// 1509.06461):
//
//	yₜ = rₜ + γₜ·q(sₜ, argmaxₐ q_selector(sₜ, a))
//
// The selector is the online network, q_t the target network; both are [B, actions]. The first of
// equal values is selected. Actions that mask excludes are not selected; a nil mask allows all. With
// several numbers for each action (quantiles), q_t is [B, numbers, actions] and dst [B, numbers].
func DoubleQTargets[F Float](dst, r_t, discount_t, q_t, q_t_selector []F, mask []bool) {
	check("DoubleQTargets", len(r_t), 1, len(discount_t))
	if len(r_t) == 0 && len(dst) == 0 {
		return
	}
	rows := max(1, len(r_t))
	n, numbers := len(q_t_selector)/rows, len(dst)/rows
	if numbers < 1 || numbers*rows != len(dst) || n*rows != len(q_t_selector) || numbers*len(q_t_selector) != len(q_t) || mask != nil && len(mask) != len(q_t_selector) {
		panic(fmt.Sprintf("rlmath: DoubleQTargets: %d targets, %d action values, %d that select and %d mask elements for %d steps", len(dst), len(q_t), len(q_t_selector), len(mask), len(r_t)))
	}
	for i := range r_t {
		best := -1
		for a := range n {
			if k := i*n + a; (mask == nil || mask[k]) && (best < 0 || q_t_selector[k] > q_t_selector[i*n+best]) {
				best = a
			}
		}
		for k := i * numbers; k < (i+1)*numbers; k++ {
			dst[k] = r_t[i]
			// After a termination there may be no valid action, and no value is needed.
			if best >= 0 {
				dst[k] += discount_t[i] * q_t[k*n+best]
			}
		}
	}
}

// TwinTargets writes yₜ = rₜ + γₜ·min(q1ₜ, q2ₜ), the clipped double-Q targets of TD3 (Fujimoto et
// al. 2018, arXiv 1802.09477, equation 10). The twins are evaluated at the target policy's smoothed
// action.
func TwinTargets[F Float](dst, r_t, discount_t, q1_t, q2_t []F) {
	check("TwinTargets", len(dst), 1, len(r_t), len(discount_t), len(q1_t), len(q2_t))
	for i := range dst {
		dst[i] = r_t[i] + discount_t[i]*min(q1_t[i], q2_t[i])
	}
}

// SoftTargets writes the targets of soft actor-critic (Haarnoja et al. 2018, arXiv 1812.05905,
// equations 3 and 5),
//
//	yₜ = rₜ + γₜ·(min(q1ₜ, q2ₜ) − α·log π(aₜ|sₜ))
//
// with the action aₜ drawn from the present policy. α = 0 gives TwinTargets.
func SoftTargets[F Float](dst, r_t, discount_t, q1_t, q2_t, logPi_t []F, alpha F) {
	check("SoftTargets", len(dst), 1, len(r_t), len(discount_t), len(q1_t), len(q2_t), len(logPi_t))
	for i := range dst {
		dst[i] = r_t[i] + discount_t[i]*(min(q1_t[i], q2_t[i])-alpha*logPi_t[i])
	}
}

// DiscreteSoftTargets writes the targets of soft actor-critic for discrete actions (Christodoulou
// 2019, arXiv 1910.07207, equation 10), an expectation instead of a sample:
//
//	yₜ = rₜ + γₜ·Σₐ π(a|sₜ)·(min(q1, q2)(sₜ, a) − α·log π(a|sₜ))
//
// q1_t, q2_t and logPi_t are [B, actions]. Excluded actions have a log-probability so low that
// their probability is 0, and do not count.
func DiscreteSoftTargets[F Float](dst, r_t, discount_t, q1_t, q2_t, logPi_t []F, alpha F) {
	check("DiscreteSoftTargets", len(dst), 1, len(r_t), len(discount_t))
	if len(dst) == 0 {
		return
	}
	n := len(q1_t) / len(dst)
	check("DiscreteSoftTargets", n*len(dst), 1, len(q1_t), len(q2_t), len(logPi_t))
	for i := range dst {
		var v F
		for a := i * n; a < (i+1)*n; a++ {
			if p := exp(logPi_t[a]); p > 0 {
				v += p * (min(q1_t[a], q2_t[a]) - alpha*logPi_t[a])
			}
		}
		dst[i] = r_t[i] + discount_t[i]*v
	}
}
