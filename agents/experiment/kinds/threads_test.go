package kinds_test

import (
	"runtime"
	"testing"
)

// TestThreadsAreTheDocuments trains with batches that are split: the bits follow from train.threads
// and not from the processors that there are.
func TestThreadsAreTheDocuments(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	others := 0
	for _, kind := range steps() {
		states := map[[2]int]string{}
		for _, c := range [][2]int{{1, 2}, {2, 2}, {3, 2}, {2, 1}} {
			runtime.GOMAXPROCS(c[0])
			x, err := start(t, 2, 1, begin[kind.Name], map[int]string{1: "train.threads=1", 2: "train.threads=2"}[c[1]])
			if err != nil {
				t.Fatal(err)
			}
			x.to(t, 64)
			states[c] = x.state(t)
			if err := x.Close(); err != nil {
				t.Error(err)
			}
		}
		if states[[2]int{1, 2}] != states[[2]int{2, 2}] || states[[2]int{3, 2}] != states[[2]int{2, 2}] {
			t.Errorf("%s: other bits on another number of processors", kind.Name)
		}
		if states[[2]int{2, 1}] != states[[2]int{2, 2}] {
			others++
		}
	}
	if others == 0 {
		t.Error("no batch was split")
	}
}
