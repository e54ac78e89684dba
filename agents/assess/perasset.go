package assess

import (
	"math"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// PerAsset are means over assets of metrics of one asset each, as the paper reports them. They are
// not the metrics of the portfolio: diversification is missing, and what an asset earns counts the
// same whatever was invested in it.
type PerAsset struct {
	TotalReturn float64 `json:"total_return"`
	// Sharpe is over the assets that have one; NaN, null in JSON, where none has.
	Sharpe      performance.Number `json:"sharpe"`
	Volatility  float64            `json:"volatility"`
	MaxDrawdown float64            `json:"max_drawdown"`
	// Assets is the number of assets that were held at some time; the others do not count.
	Assets int `json:"assets"`
}

// perAssetOf averages over the assets that were held at some time of a record: metrics of the
// returns of the capital employed in each, annual where they are in the table. All but Sharpe are 0
// when nothing was ever held.
func perAssetOf(r *backtest.Record, c evaluate.Config) PerAsset {
	var p PerAsset
	root, rate, sharpes := math.Sqrt(c.PeriodsPerYear), performance.PerPeriod(c.RiskFree, c.PeriodsPerYear), 0
	for i := range r.Assets {
		g := r.AssetReturn(i)
		if !held(r, i) {
			continue
		}
		p.Assets++
		p.TotalReturn += performance.TotalReturn(g)
		p.MaxDrawdown += performance.MaxDrawdown(performance.Growth(g))
		if v := performance.Volatility(g); !math.IsNaN(v) {
			p.Volatility += v * root
		}
		if s := performance.Sharpe(performance.Excess(g, rate)); !math.IsNaN(s) {
			p.Sharpe += performance.Number(s * root)
			sharpes++
		}
	}
	n := float64(max(p.Assets, 1))
	p.TotalReturn, p.Volatility, p.MaxDrawdown = p.TotalReturn/n, p.Volatility/n, p.MaxDrawdown/n
	p.Sharpe /= performance.Number(sharpes) // 0/0 is NaN
	return p
}

// held reports whether asset i was held at some close.
func held(r *backtest.Record, i int) bool {
	for at := i; at < len(r.Positions); at += len(r.Assets) {
		if r.Positions[at] > 0 {
			return true
		}
	}
	return false
}
