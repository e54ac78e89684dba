package world

import "github.com/onnxrl/onnxrl/runtime/rng"

// spread shares out a quantity for each day among n factories: rows of n, one for each day. The
// more predictable, the more the days resemble each other. The sum of a day differs from its
// quantity by rounding, by less than 2n.
func spread(s *rng.Stream, quantities []int, predictability float64, n int) [][]int {
	shares := make([][]int, len(quantities))
	sum := 0
	for day, q := range quantities {
		shares[day] = make([]int, n)
		sum += q
	}
	if sum == 0 {
		return shares
	}
	if predictability < 0.01 {
		for day, q := range quantities {
			cut(s, q, shares[day], 1)
		}
		return shares
	}
	typical := int(0.5 + float64(sum)/float64(len(quantities)))
	base := make([]int, n)
	cut(s, typical, base, 1)
	if typical == 0 {
		return shares
	}
	for day, q := range quantities {
		row := shares[day]
		if q == 0 {
			continue
		}
		for i := range row {
			row[i] = int(0.5 + float64(base[i]*q)/float64(typical))
		}
		if moved := max(0, min(q, int(0.5+float64((1-predictability)*float64(q))))); moved > 0 {
			cut(s, moved, row, -1)
			cut(s, moved, row, 1)
		}
		cover(s, row)
	}
	return shares
}

// cut adds by to a random element of bins, total times.
func cut(s *rng.Stream, total int, bins []int, by int) {
	for range total {
		bins[s.IntN(len(bins))] += by
	}
}

// cover takes what negative elements lack from others that have it, in random parts.
func cover(s *rng.Stream, row []int) {
	part := make([]int, max(len(row)-1, 1))
	for i := range row {
		lacks := -row[i]
		if lacks <= 0 {
			continue
		}
		row[i] = 0
		if len(row) == 1 {
			continue
		}
		for others := true; lacks > 0 && others; {
			clear(part)
			cut(s, lacks, part, 1)
			others = false
			for k, d := range part {
				j := k
				if j >= i {
					j++
				}
				if row[j] >= d {
					row[j] -= d
					lacks -= d
				}
				others = others || row[j] > 0
			}
		}
	}
}
