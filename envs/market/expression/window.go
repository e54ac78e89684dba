package expression

import (
	"math"
	"slices"
)

// Functions of a window take its values oldest first. Missing ones are NaN.

func present(v float64) bool { return v-v == 0 }

// sums adds f of the values that are there, in their order, and counts them.
func sums(w []float64, f func(v float64) float64) (total float64, n int) {
	for _, v := range w {
		if present(v) {
			total += f(v)
			n++
		}
	}
	return total, n
}

func sum(w []float64) float64 {
	total, n := sums(w, func(v float64) float64 { return v })
	if n == 0 {
		return math.NaN()
	}
	return total
}

func count(w []float64) float64 {
	_, n := sums(w, func(float64) float64 { return 0 })
	return float64(n)
}

func mean(w []float64) float64 { return sum(w) / count(w) }

// center is the mean, exactly the common value where all values are equal, and how many there are.
func center(w []float64) (float64, int) {
	origin := math.NaN()
	for _, v := range w {
		if present(v) {
			origin = v
			break
		}
	}
	total, n := sums(w, func(v float64) float64 { return v - origin })
	return origin + total/float64(n), n
}

// moments are the means of the second to fourth powers of deviations.
func moments(w []float64) (m2, m3, m4 float64, n int) {
	c, n := center(w)
	for _, v := range w {
		if present(v) {
			d := v - c
			m2, m3, m4 = m2+d*d, m3+d*d*d, m4+d*d*d*d
		}
	}
	k := float64(n)
	return m2 / k, m3 / k, m4 / k, n
}

func variance(w []float64) float64 {
	c, n := center(w)
	if n < 2 {
		return math.NaN()
	}
	total, _ := sums(w, func(v float64) float64 { return (v - c) * (v - c) })
	return total / float64(n-1)
}

func std(w []float64) float64 { return math.Sqrt(variance(w)) }

// skew and kurt are pandas' corrected ones, missing where all values are equal.

func skew(w []float64) float64 {
	m2, m3, _, n := moments(w)
	if n < 3 {
		return math.NaN()
	}
	k := float64(n)
	return math.Sqrt(k*(k-1)) / (k - 2) * m3 / (m2 * math.Sqrt(m2))
}

func kurt(w []float64) float64 {
	m2, _, m4, n := moments(w)
	if n < 4 {
		return math.NaN()
	}
	k := float64(n)
	return ((k*k-1)*m4/(m2*m2) - 3*(k-1)*(k-1)) / ((k - 2) * (k - 3))
}

func largest(w []float64) float64 {
	best := math.NaN()
	for _, v := range w {
		if present(v) && !(v <= best) {
			best = v
		}
	}
	return best
}

func smallest(w []float64) float64 {
	best := math.NaN()
	for _, v := range w {
		if present(v) && !(v >= best) {
			best = v
		}
	}
	return best
}

// first is the position, from 1, of the first value that is better than all others, or of the first
// that is missing.
func first(w []float64, better func(a, b float64) bool) float64 {
	at := 0
	for i, v := range w {
		if !present(v) {
			if count(w) == 0 {
				return math.NaN()
			}
			return float64(i + 1)
		}
		if better(v, w[at]) {
			at = i
		}
	}
	return float64(at + 1)
}

// quantile interpolates between the two values around it.
func quantile(w []float64, q float64, scratch []float64) float64 {
	s := scratch[:0]
	for _, v := range w {
		if present(v) {
			s = append(s, v)
		}
	}
	if len(s) == 0 {
		return math.NaN()
	}
	slices.Sort(s)
	at, part := math.Modf(q * float64(len(s)-1))
	i := int(at)
	if part == 0 {
		return s[i]
	}
	return s[i] + (s[i+1]-s[i])*part
}

// mad is the mean absolute deviation from the mean.
func mad(w []float64) float64 {
	c, n := center(w)
	total, _ := sums(w, func(v float64) float64 { return math.Abs(v - c) })
	return total / float64(n)
}

// rank is the share of values below the newest one, half of the equal ones included, and itself.
func rank(w []float64) float64 {
	x := w[len(w)-1]
	if !present(x) {
		return math.NaN()
	}
	below, equal, n := 0, 0, 0
	for _, v := range w {
		if present(v) {
			n++
			below += int(flag(v < x))
			equal += int(flag(v == x))
		}
	}
	return (float64(below) + float64(equal+1)/2) / float64(n)
}

// line fits values over the numbers of their bars, 0 for the newest: sums of products of
// deviations, and the means.
func line(w []float64) (sxx, sxy, syy, xm, ym float64, n int) {
	last := len(w) - 1
	for i, v := range w {
		if present(v) {
			xm += float64(i - last)
		}
	}
	ym, n = center(w)
	xm /= float64(n)
	for i, v := range w {
		if present(v) {
			x, y := float64(i-last)-xm, v-ym
			sxx, sxy, syy = sxx+x*x, sxy+x*y, syy+y*y
		}
	}
	return sxx, sxy, syy, xm, ym, n
}

func slope(w []float64) float64 {
	sxx, sxy, _, _, _, _ := line(w)
	return sxy / sxx // of one value: 0/0
}

// resi is the newest value's distance from the line.
func resi(w []float64) float64 {
	sxx, sxy, _, xm, ym, _ := line(w)
	return w[len(w)-1] - (ym - sxy/sxx*xm)
}

// flat is the standard deviation below which Qlib gives no correlation.
const flat = 2e-5

func rsquare(w []float64) float64 {
	sxx, sxy, syy, _, _, n := line(w)
	if n < 2 || math.Sqrt(syy/float64(n-1)) <= flat {
		return math.NaN()
	}
	return sxy * sxy / (sxx * syy)
}

// wma weighs values by 1 for the oldest bar to the length of the window for the newest, and divides
// by the sum of the weights and, as Qlib does, by the number of values.
func wma(w []float64) float64 {
	weights := float64(len(w)*(len(w)+1)) / 2
	total, n := 0.0, 0
	for i, v := range w {
		if present(v) {
			total += float64(i+1) / weights * v
			n++
		}
	}
	return total / float64(n)
}

// ema is the mean with weights that fall by a factor from bar to bar; span is the number of bars,
// or the weight of the newest bar.
func ema(w []float64, span float64, _ []float64) float64 {
	decay := 1 - 2/(span+1)
	if span < 1 {
		decay = 1 - span
	}
	total, weights := 0.0, 0.0
	for _, v := range w {
		total, weights = total*decay, weights*decay
		if present(v) {
			total, weights = total+v, weights+1
		}
	}
	return total / weights
}

// pairSums adds up the products of deviations over the bars on which both values are there.
func pairSums(a, b []float64) (saa, sab, sbb float64, n int) {
	var am, bm, ao, bo float64
	for i := range a {
		if present(a[i]) && present(b[i]) {
			if n == 0 {
				ao, bo = a[i], b[i]
			}
			am, bm = am+(a[i]-ao), bm+(b[i]-bo)
			n++
		}
	}
	am, bm = ao+am/float64(n), bo+bm/float64(n)
	for i := range a {
		if present(a[i]) && present(b[i]) {
			x, y := a[i]-am, b[i]-bm
			saa, sab, sbb = saa+x*x, sab+x*y, sbb+y*y
		}
	}
	return saa, sab, sbb, n
}

func cov(a, b []float64) float64 {
	_, sab, _, n := pairSums(a, b)
	if n < 2 {
		return math.NaN()
	}
	return sab / float64(n-1)
}

func corr(a, b []float64) float64 {
	saa, sab, sbb, n := pairSums(a, b)
	if n < 2 || std(a) <= flat || std(b) <= flat {
		return math.NaN()
	}
	return sab / math.Sqrt(saa*sbb)
}
