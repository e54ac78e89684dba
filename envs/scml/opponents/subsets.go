package opponents

// subsets goes through the subsets of n elements, the smaller ones first and those of one size in
// lexicographic order. Each is the indices of its elements, in scratch, and is valid until the
// next.
type subsets struct {
	n     int
	chose []int
	begun bool
}

// start begins with the empty set.
func (s *subsets) start(n int) { s.n, s.chose, s.begun = n, s.chose[:0], false }

// next moves on, and reports whether there is another one.
func (s *subsets) next() bool {
	if !s.begun {
		s.begun = true
		return true
	}
	size := len(s.chose)
	for i := size - 1; i >= 0; i-- {
		if s.chose[i] < s.n-size+i {
			s.chose[i]++
			for j := i + 1; j < size; j++ {
				s.chose[j] = s.chose[j-1] + 1
			}
			return true
		}
	}
	if size == s.n {
		return false
	}
	s.chose = s.chose[:0]
	for i := range size + 1 {
		s.chose = append(s.chose, i)
	}
	return true
}
