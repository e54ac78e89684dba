package processes

import "testing"

func TestLowerRefuses(t *testing.T) {
	for _, nice := range []int{-20, -1, 0, Least + 1} {
		if err := Lower(nice); err == nil {
			t.Errorf("niceness %d is accepted", nice)
		}
	}
}
