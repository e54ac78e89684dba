package rlmath

import "math"

// VTraceConfig holds the thresholds of [VTrace]. IMPALA's are all 1.
type VTraceConfig struct {
	// Lambda mixes the targets with shorter ones.
	Lambda float64
	// ClipRho (ρ̄) bounds the weights of the TD errors and so chooses the policy whose value is the
	// fixed point; ClipC (c̄) bounds those that carry errors back and only changes the speed. ClipC
	// ≤ ClipRho is recommended.
	ClipRho, ClipC float64
	// ClipPGRho bounds the weights of the policy gradient.
	ClipPGRho float64
}

// DefaultVTrace returns the thresholds of the paper.
func DefaultVTrace() VTraceConfig {
	return VTraceConfig{Lambda: 1, ClipRho: 1, ClipC: 1, ClipPGRho: 1}
}

// VTrace corrects for actions that came from another policy (Espeholt et al. 2018, arXiv
// 1802.01561, equation 1, and remark 2 for λ). With ρₜ = π(aₜ₋₁)/μ(aₜ₋₁), the ratio for the action
// that the step took:
//
//	δₜ  = min(ρ̄, ρₜ)·(rₜ + γₜ·vₜ − vₜ₋₁)
//	eₜ  = δₜ + γₜ·λ·min(c̄, ρₜ)·eₜ₊₁,  e after the end = 0
//	vsₜ₋₁ = vₜ₋₁ + eₜ
//	qₜ  = rₜ + γₜ·(λ·vsₜ + (1−λ)·vₜ),  vs after the end = v of the last step
//	pgₜ = min(ρ̄_pg, ρₜ)·(qₜ − vₜ₋₁)
//
// It writes vs, the targets of the value function at the time before each step, and pg, the
// advantages. On-policy, with all thresholds at least 1, vs are the λ-returns. The ratio ρ must be
// that of the policy that really acted, masks and squashing included. Deterministic behaviour has
// no density, so V-trace is not defined for it.
//
// vs and pg must overlap neither each other nor v_tm1 and v_t. The values between two steps must
// agree (v_t of one is v_tm1 of the next) except where discount_t is 0.
func VTrace[F Float](vs, pg, r_t, discount_t, v_tm1, v_t, rho_tm1 []F, c VTraceConfig, width int) {
	check("VTrace", len(vs), width, len(pg), len(r_t), len(discount_t), len(v_tm1), len(v_t), len(rho_tm1))
	lambda, clipRho, clipC, clipPG := F(c.Lambda), F(c.ClipRho), F(c.ClipC), F(c.ClipPGRho)
	if len(vs) == 0 {
		return
	}
	// Backwards, vs holds the errors e; forwards, they become targets. Carrying e, and not vs, from
	// step to step loses nothing to cancellation.
	if width == 1 {
		vtraceErrors1(vs, r_t, discount_t, v_tm1, v_t, rho_tm1, lambda, clipRho, clipC)
	} else {
		vtraceErrors(vs, r_t, discount_t, v_tm1, v_t, rho_tm1, lambda, clipRho, clipC, width)
	}
	// The last row has no step after it; the others add what the following step's error says.
	inner := len(vs) - width
	for i, e := range vs[width:] {
		q := r_t[i] + discount_t[i]*(v_t[i]+lambda*e)
		pg[i] = min(clipPG, rho_tm1[i]) * (q - v_tm1[i])
	}
	for i := inner; i < len(vs); i++ {
		pg[i] = min(clipPG, rho_tm1[i]) * (r_t[i] + discount_t[i]*v_t[i] - v_tm1[i])
	}
	for i, v := range v_tm1 {
		vs[i] += v
	}
}

// vtraceErrors writes e for sequences side by side.
func vtraceErrors[F Float](e, r_t, discount_t, v_tm1, v_t, rho_tm1 []F, lambda, clipRho, clipC F, width int) {
	for i := len(e) - width; i >= 0; i -= width {
		row, rho, r, d, v0, v1 := e[i:i+width], rho_tm1[i:i+width], r_t[i:i+width], discount_t[i:i+width], v_tm1[i:i+width], v_t[i:i+width]
		for j := range row {
			row[j] = min(clipRho, rho[j]) * (r[j] + d[j]*v1[j] - v0[j])
		}
		if i+width < len(e) {
			next := e[i+width : i+2*width]
			for j := range row {
				row[j] += d[j] * lambda * min(clipC, rho[j]) * next[j]
			}
		}
	}
}

// vtraceErrors1 writes e for one sequence, with the error of the following step in a register; see
// gae1.
func vtraceErrors1[F Float](e, r_t, discount_t, v_tm1, v_t, rho_tm1 []F, lambda, clipRho, clipC F) {
	n := len(e)
	r_t, discount_t, v_tm1, v_t, rho_tm1 = r_t[:n], discount_t[:n], v_tm1[:n], v_t[:n], rho_tm1[:n]
	var next F
	for i := n - 1; i >= 0; i-- {
		rho, d := rho_tm1[i], discount_t[i]
		next = min(clipRho, rho)*(r_t[i]+d*v_t[i]-v_tm1[i]) + d*lambda*min(clipC, rho)*next
		e[i] = next
	}
}

// MaxLogRatio bounds what [Ratios] exponentiates, in both directions: e²⁰ is 5e8.
const MaxLogRatio = 20

// Ratios writes the importance weights exp(logPi − logMu). The difference is limited to
// ±MaxLogRatio, so that a policy that has moved away gives large weights, which the thresholds cut,
// and never an infinity.
func Ratios[F Float](dst, logPi, logMu []F) {
	check("Ratios", len(dst), 1, len(logPi), len(logMu))
	for i := range dst {
		dst[i] = F(math.Exp(min(max(float64(logPi[i]-logMu[i]), -MaxLogRatio), MaxLogRatio)))
	}
}
