package opponents

import "github.com/onnxrl/onnxrl/runtime/rng"

// spreading says how distribute shares out.
type spreading struct {
	// most is the largest part; 0 is no limit.
	most int
	// equal, concentrated and zeros: parts differ by little, few parts get all, parts may be 0.
	equal, concentrated, zeros bool
}

// distribute shares out q units among parts at random, as the league's helper of that name does.
func (o spreading) distribute(s *rng.Stream, q int, parts []int) {
	n := len(parts)
	clear(parts)
	if n == 0 || q <= 0 {
		return
	}
	if o.most > 0 {
		q = min(q, o.most*n)
	}
	switch {
	case o.concentrated:
		if !o.zeros {
			for i := range min(q, n) {
				parts[i] = 1
			}
			q -= min(q, n)
		}
		for i := 0; i < n && q > 0; i++ {
			d := q
			if o.most > 0 {
				d = min(q, o.most-parts[i])
			}
			parts[i] += d
			q -= d
		}
		s.Shuffle(n, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	case q < n:
		for i := range q {
			parts[i] = 1
		}
		s.Shuffle(n, func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	case q == n:
		for i := range parts {
			parts[i] = 1
		}
	default:
		each := 1
		switch {
		case o.zeros:
			each = 0
		case o.equal:
			each = q / n
		}
		for i := range parts {
			parts[i] = each
		}
		for range q - each*n {
			parts[s.IntN(n)]++
		}
	}
}

// integer returns a uniform integer from low to high, or low where it is not smaller.
func integer(s *rng.Stream, low, high int) int {
	if low >= high {
		return low
	}
	return low + s.IntN(high-low+1)
}

// shuffle permutes a list.
func shuffle(s *rng.Stream, list []int) {
	s.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
}
