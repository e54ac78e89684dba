package evolve

import "testing"

// TestTogether: members that end together leave no core idle at the end, unless too many would
// train at once.
func TestTogether(t *testing.T) {
	n := 0
	for _, k := range []struct{ members, cores, want int }{
		{5, 2, 5}, {4, 2, 2}, {16, 2, 2}, {6, 4, 6}, {9, 4, 9}, {1, 8, 8}, {3, 1, 1},
		// Seven are more than three times two cores.
		{7, 2, 2}, {17, 4, 4},
	} {
		if got := together(k.members, k.cores); got != k.want {
			t.Errorf("%d members on %d cores: %d at once, expected %d", k.members, k.cores, got, k.want)
		}
		n++
	}
	if n != 9 {
		t.Errorf("%d cases", n)
	}
}
