package envs

import (
	"fmt"
	"slices"
)

// MaskLen returns the number of elements of an action mask, 0 when the space cannot be masked.
// Masks are flat: for Discrete one element per action; for MultiDiscrete the masks of the heads one
// after the other; for MultiBinary two elements per bit, first for 0 and then for 1. True means
// valid.
func MaskLen(s Space) int {
	switch s := s.(type) {
	case Discrete:
		return s.N
	case MultiDiscrete:
		n := 0
		for _, k := range s.N {
			n += k
		}
		return n
	case MultiBinary:
		return 2 * s.N
	}
	return 0
}

// Heads returns the number of choices of each head of a space of choices, in the order of its
// masks, two for each bit of MultiBinary; nil for a space that cannot be masked. It may share the
// space's memory.
func Heads(s Space) []int {
	switch s := s.(type) {
	case Discrete:
		return []int{s.N}
	case MultiDiscrete:
		return s.N
	case MultiBinary:
		return slices.Repeat([]int{2}, s.N)
	}
	return nil
}

// CheckMask returns an error when some head of the space has no valid action left, or the mask has
// the wrong length.
func CheckMask(s Space, mask []bool) error {
	if n := MaskLen(s); len(mask) != n {
		return fmt.Errorf("mask of %v: %d elements, expected %d", s, len(mask), n)
	}
	head := func(i, n int) error {
		if !slices.Contains(mask[:n], true) {
			return fmt.Errorf("mask of %v: head %d has no valid action", s, i)
		}
		mask = mask[n:]
		return nil
	}
	switch s := s.(type) {
	case Discrete:
		return head(0, s.N)
	case MultiDiscrete:
		for i, n := range s.N {
			if err := head(i, n); err != nil {
				return err
			}
		}
	case MultiBinary:
		for i := range s.N {
			if err := head(i, 2); err != nil {
				return err
			}
		}
	}
	return nil
}
