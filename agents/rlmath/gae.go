package rlmath

// GAE writes generalised advantage estimates (Schulman et al. 2016, arXiv 1506.02438, equation 16):
//
//	δₜ = rₜ + γₜ·vₜ − vₜ₋₁
//	Aₜ = δₜ + γₜ·λ·Aₜ₊₁,  A after the end = 0
//
// λ = 0 gives TD errors; λ = 1 gives the discounted return minus the value. The paper's reward has
// the index of the time before the step; ours, as everywhere in this package, of the time after it.
// The targets of the value function are A + v_tm1 ([AddTo]).
func GAE[F Float](dst, r_t, discount_t, v_tm1, v_t []F, lambda F, width int) {
	check("GAE", len(dst), width, len(r_t), len(discount_t), len(v_tm1), len(v_t))
	if width == 1 {
		gae1(dst, r_t, discount_t, v_tm1, v_t, lambda)
		return
	}
	var next []F
	for i := len(dst) - width; i >= 0; i -= width {
		row, r, d, v0, v1 := dst[i:i+width], r_t[i:i+width], discount_t[i:i+width], v_tm1[i:i+width], v_t[i:i+width]
		if next == nil {
			for j := range row {
				row[j] = r[j] + d[j]*v1[j] - v0[j]
			}
		} else {
			for j := range row {
				row[j] = r[j] + d[j]*v1[j] - v0[j] + d[j]*lambda*next[j]
			}
		}
		next = row
	}
}

// gae1 is the recursion of one sequence. The time of a step is that of the dependence of one
// advantage on the next, so the advantage is kept in a register and all else is computed ahead of
// it.
func gae1[F Float](dst, r_t, discount_t, v_tm1, v_t []F, lambda F) {
	n := len(dst)
	r_t, discount_t, v_tm1, v_t = r_t[:n], discount_t[:n], v_tm1[:n], v_t[:n]
	var a F
	for i := n - 1; i >= 0; i-- {
		d := discount_t[i]
		a = (r_t[i] + d*v_t[i] - v_tm1[i]) + d*lambda*a
		dst[i] = a
	}
}

// AddTo writes dst = a + b, which makes value targets of advantages and values.
func AddTo[F Float](dst, a, b []F) {
	check("AddTo", len(dst), 1, len(a), len(b))
	for i := range dst {
		dst[i] = a[i] + b[i]
	}
}

// SubTo writes dst = a − b, which makes advantages of returns and values.
func SubTo[F Float](dst, a, b []F) {
	check("SubTo", len(dst), 1, len(a), len(b))
	for i := range dst {
		dst[i] = a[i] - b[i]
	}
}
