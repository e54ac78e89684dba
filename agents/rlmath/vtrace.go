package rlmath

import "math"

// VTraceConfig holds the thresholds of [VTrace]. IMPALA's are all 1.
type VTraceConfig struct {
	// Lambda mixes the targets with shorter ones.
	Lambda float64
	// ClipRho (ρ̄) bounds the weights of the TD errors and so chooses the policy whose value is the fixed point; ClipC (c̄) bounds those that carry errors back and only changes the speed. ClipC ≤ ClipRho is recommended.
	ClipRho, ClipC float64
	// ClipPGRho bounds the weights of the policy gradient.
	ClipPGRho float64
}

// DefaultVTrace returns the thresholds of the paper.
func DefaultVTrace() VTraceConfig {
	return VTraceConfig{Lambda: 1, ClipRho: 1, ClipC: 1, ClipPGRho: 1}
}

// VTrace corrects for actions that came from another policy (Espeholt et al. 2018, arXiv 1802.01561, equation 1, and remark 2 for λ). With ρₜ = π(aₜ₋₁)/μ(aₜ₋₁), the ratio for the action that the step took:
//
//	δₜ  = min(ρ̄, ρₜ)·(rₜ + γₜ·vₜ − vₜ₋₁)
//	eₜ  = δₜ + γₜ·λ·min(c̄, ρₜ)·eₜ₊₁,  e after the end = 0
//	vsₜ₋₁ = vₜ₋₁ + eₜ
//	qₜ  = rₜ + γₜ·(λ·vsₜ + (1−λ)·vₜ),  vs after the end = v of the last step
//	pgₜ = min(ρ̄_pg, ρₜ)·(qₜ − vₜ₋₁)
//
// It writes vs, the targets of the value function at the time before each step, and pg, the advantages. On-policy, with all thresholds at least 1, vs are the λ-returns. The ratio ρ must be that of the policy that really
// acted, masks and squashing included. Deterministic behaviour has no density, so V-trace is not defined for it.
//
// vs and pg must overlap neither each other nor v_tm1 and v_t. The values between two steps must agree (v_t of one is v_tm1 of the next) except where discount_t is 0.
func VTrace[F Float](vs, pg, r_t, discount_t, v_tm1, v_t, rho_tm1 []F, c VTraceConfig, width int) {
	check("VTrace", len(vs), width, len(pg), len(r_t), len(discount_t), len(v_tm1), len(v_t), len(rho_tm1))
	lambda, clipRho, clipC, clipPG := F(c.Lambda), F(c.ClipRho), F(c.ClipC), F(c.ClipPGRho)
	n := len(vs)
	// Backwards, vs holds the errors e; forwards, they become targets. Carrying e, and not vs, from step to step loses nothing to cancellation.
	for i := n - 1; i >= 0; i-- {
		rho, d := rho_tm1[i], discount_t[i]
		e := min(clipRho, rho) * (r_t[i] + d*v_t[i] - v_tm1[i])
		if k := i + width; k < n {
			e += d * lambda * min(clipC, rho) * vs[k]
		}
		vs[i] = e
	}
	for i := range vs {
		q := r_t[i] + discount_t[i]*v_t[i]
		if k := i + width; k < n {
			q += discount_t[i] * lambda * vs[k]
		}
		vs[i] += v_tm1[i]
		pg[i] = min(clipPG, rho_tm1[i]) * (q - v_tm1[i])
	}
}

// MaxLogRatio bounds what [Ratios] exponentiates, in both directions: e²⁰ is 5e8.
const MaxLogRatio = 20

// Ratios writes the importance weights exp(logPi − logMu). The difference is limited to ±MaxLogRatio, so that a policy that has moved away gives large weights, which the thresholds cut, and never an infinity.
func Ratios[F Float](dst, logPi, logMu []F) {
	check("Ratios", len(dst), 1, len(logPi), len(logMu))
	for i := range dst {
		dst[i] = F(math.Exp(min(max(float64(logPi[i]-logMu[i]), -MaxLogRatio), MaxLogRatio)))
	}
}
