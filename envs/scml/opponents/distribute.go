package opponents

// spreading says how distribute shares out.
type spreading struct {
	// most is the largest part; 0 is no limit.
	most int
	// equal, concentrated and zeros: parts differ by little, few parts get all, parts may be 0.
	equal, concentrated, zeros bool
}

// distribute shares out q units among parts at random, as the league's helper of that name does.
func (o spreading) distribute(s *Dice, q int, parts []int) {
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
		s.shuffle(parts)
	case q < n:
		for i := range q {
			parts[n-1-i] = 1
		}
		s.shuffle(parts)
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
			parts[s.below(n)]++
		}
	}
}
