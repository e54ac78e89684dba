package livetrade

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
)

// TestWarmFactors: a service cannot go on with factors that dividends make from the first row on.
func TestWarmFactors(t *testing.T) {
	for _, c := range []struct {
		warm     bool
		adjusted string
		refused  bool
	}{{true, bars.ByActions, true}, {false, bars.ByActions, false}, {true, "factor", false}} {
		err := (&Config{Warm: c.warm}).fits(live.Pipeline{Adjusted: c.adjusted})
		if (err != nil) != c.refused || c.refused && !strings.Contains(err.Error(), "warm: the prices of the agent's data are adjusted by what their dividends and bonus shares make") {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
