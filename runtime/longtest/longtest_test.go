package longtest_test

import (
	"maps"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
)

func TestTimes(t *testing.T) {
	for _, c := range []struct {
		value string
		want  int
	}{{"", 3}, {"1", 3}, {"20", 60}} {
		t.Setenv(longtest.Factor, c.value)
		if got := longtest.Times(t, 3); got != c.want {
			t.Errorf("%s=%s: %d times, expected %d", longtest.Factor, c.value, got, c.want)
		}
	}
}

func TestCases(t *testing.T) {
	all := map[string]int{"c": 3, "a": 1, "b": 2}
	want, n := all, 3
	if testing.Short() {
		want, n = map[string]int{"a": 1, "b": 2}, 2
	}
	if got := longtest.Few(t, all, 2); !maps.Equal(got, want) {
		t.Errorf("%v, expected %v", got, want)
	}
	if got := longtest.Cases(t, 3, 2); got != n {
		t.Errorf("%d cases, expected %d", got, n)
	}
	if got := longtest.Every(t, 4); got != 4 && testing.Short() || got != 1 && !testing.Short() {
		t.Errorf("every %d", got)
	}
	if got := longtest.Cases(t, 3, 5); got != 3 {
		t.Errorf("%d of 3 cases", got)
	}
}
