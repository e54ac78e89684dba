package sorted_test

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestAll(t *testing.T) {
	m := map[string]int{}
	for i := range 26 {
		m[string(rune('z'-i))] = i
	}
	var keys []string
	for k, v := range sorted.All(m) {
		keys = append(keys, k)
		if v != m[k] {
			t.Errorf("%s: %d, want %d", k, v, m[k])
		}
	}
	if len(keys) != 26 || !slices.IsSorted(keys) {
		t.Errorf("keys %q", keys)
	}
	for k := range sorted.All(m) {
		if k != "a" {
			t.Errorf("begins with %q", k)
		}
		break
	}
	for range sorted.All(map[int]bool(nil)) {
		t.Error("a nil map has an element")
	}
}

func TestFunc(t *testing.T) {
	var got []int
	for _, v := range sorted.Func(map[[2]int]int{{2, 0}: 4, {1, 1}: 3, {1, 0}: 2, {0, 5}: 1}, func(a, b [2]int) int {
		return slices.Compare(a[:], b[:])
	}) {
		got = append(got, v)
	}
	if !slices.Equal(got, []int{1, 2, 3, 4}) {
		t.Errorf("order %v", got)
	}
}
