package assess

import (
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// annual returns the configuration with the number of bars in a year, from the dates of all bars of
// the market where it gives none, and says where the number is from.
func annual(c evaluate.Config, m *trading.Market) (evaluate.Config, string) {
	if c.PeriodsPerYear != 0 {
		return c, "eval.periods_per_year"
	}
	f := performance.FrequencyOf(m.Dates)
	c.PeriodsPerYear = f.PeriodsPerYear
	return c, f.String() + ", by the timestamps"
}
