package longtest_test

import (
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
