package rlmath

import "fmt"

// Float is the element type of a sequence.
type Float interface{ ~float32 | ~float64 }

// check panics unless the slices make a matrix [T, width].
func check(what string, n, width int, lengths ...int) {
	if width < 1 || n%width != 0 {
		panic(fmt.Sprintf("rlmath: %s: %d elements are no rows of width %d", what, n, width))
	}
	for _, m := range lengths {
		if m != n {
			panic(fmt.Sprintf("rlmath: %s: slices of %d and %d elements", what, n, m))
		}
	}
}

// FoldTruncation makes the reward of a truncated step carry the value of what was cut off:
//
//	rₜ ← rₜ + γₜ·vₜ,  γₜ ← 0   where last[t]
//
// v_t is the value of the final observation, not of the next episode's first one, and only read
// where last is set. Steps that terminated have discount 0 and are not changed, so last may mark
// them too. It changes r_t and discount_t. Stable-Baselines3 adds the same term to the reward
// (Pardo et al. 2018, arXiv 1712.00378, call it partial-episode bootstrapping).
func FoldTruncation[F Float](r_t, discount_t, v_t []F, last []bool) {
	check("FoldTruncation", len(r_t), 1, len(discount_t), len(v_t), len(last))
	for i, l := range last {
		if l {
			r_t[i] += discount_t[i] * v_t[i]
			discount_t[i] = 0
		}
	}
}

// DiscountedReturns writes the returns of whole sequences, bootstrapped at their end:
//
//	Gₜ = rₜ + γₜ·Gₜ₊₁,  G after the end = bootstrap
//
// r_t, discount_t and dst are [T, width] with width = len(bootstrap). It is LambdaReturns with λ =
// 1, and QTMRL's Gₜ.
func DiscountedReturns[F Float](dst, r_t, discount_t, bootstrap []F) {
	width := len(bootstrap)
	check("DiscountedReturns", len(dst), width, len(r_t), len(discount_t))
	if width == 1 {
		g, n := bootstrap[0], len(dst)
		r_t, discount_t = r_t[:n], discount_t[:n]
		for i := n - 1; i >= 0; i-- {
			g = r_t[i] + discount_t[i]*g
			dst[i] = g
		}
		return
	}
	next := bootstrap
	for i := len(dst) - width; i >= 0; i -= width {
		row, r, d := dst[i:i+width], r_t[i:i+width], discount_t[i:i+width]
		for j := range row {
			row[j] = r[j] + d[j]*next[j]
		}
		next = row
	}
}

// LambdaReturns writes the λ-returns
//
//	Gₜ = rₜ + γₜ·((1−λ)·vₜ + λ·Gₜ₊₁),  G after the end = v of the last step
//
// λ = 0 gives one-step targets, λ = 1 the discounted return (Sutton & Barto 2018, equation 12.18).
// v_t is the value after the step. dst must not overlap v_t.
func LambdaReturns[F Float](dst, r_t, discount_t, v_t []F, lambda F, width int) {
	check("LambdaReturns", len(dst), width, len(r_t), len(discount_t), len(v_t))
	if len(dst) == 0 {
		return
	}
	if width == 1 {
		g, n := v_t[len(v_t)-1], len(dst)
		r_t, discount_t, v_t = r_t[:n], discount_t[:n], v_t[:n]
		for i := n - 1; i >= 0; i-- {
			d := discount_t[i]
			g = r_t[i] + d*(1-lambda)*v_t[i] + d*lambda*g
			dst[i] = g
		}
		return
	}
	next := v_t[len(v_t)-width:]
	for i := len(dst) - width; i >= 0; i -= width {
		row, r, d, v := dst[i:i+width], r_t[i:i+width], discount_t[i:i+width], v_t[i:i+width]
		for j := range row {
			row[j] = r[j] + d[j]*((1-lambda)*v[j]+lambda*next[j])
		}
		next = row
	}
}

// NStepReturns writes the returns of n steps,
//
//	Gₜ = rₜ + γₜ·(rₜ₊₁ + γₜ₊₁·(… rₜ₊ₙ₋₁ + γₜ₊ₙ₋₁·vₜ₊ₙ₋₁))
//
// where sequences that end earlier bootstrap from their last value (Sutton & Barto 2018, section
// 7.1). n = 1 gives one-step targets, n ≥ T the discounted return. It takes O(T·n). dst must not
// overlap the arguments.
func NStepReturns[F Float](dst, r_t, discount_t, v_t []F, n, width int) {
	check("NStepReturns", len(dst), width, len(r_t), len(discount_t), len(v_t))
	if n < 1 {
		panic(fmt.Sprintf("rlmath: NStepReturns: n is %d", n))
	}
	for i := range dst {
		// The last step that counts lies n−1 rows below, or in the last row of the column.
		k := i + (n-1)*width
		if k >= len(dst) {
			k = len(dst) - width + i%width
		}
		g := v_t[k]
		for ; k >= i; k -= width {
			g = r_t[k] + discount_t[k]*g
		}
		dst[i] = g
	}
}

// TDErrors writes δₜ = rₜ + γₜ·vₜ − vₜ₋₁.
func TDErrors[F Float](dst, r_t, discount_t, v_tm1, v_t []F) {
	check("TDErrors", len(dst), 1, len(r_t), len(discount_t), len(v_tm1), len(v_t))
	for i := range dst {
		dst[i] = r_t[i] + discount_t[i]*v_t[i] - v_tm1[i]
	}
}
