package board

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
)

// Portfolio are the metrics of a portfolio that is traded. It is safe for concurrent use.
type Portfolio struct {
	time, value, pnl, drawdown, cvar, cvar95, stopped, cut prometheus.Gauge
	bound                                                  *prometheus.CounterVec
}

// NewPortfolio adds them to an exporter.
func NewPortfolio(e *exporter.Exporter) *Portfolio {
	gauge := func(m metrics.Metric) prometheus.Gauge { return e.Gauges(m).WithLabelValues() }
	p := &Portfolio{
		time: gauge(metrics.DecisionTime), value: gauge(metrics.PortfolioValue), pnl: gauge(metrics.PnL), drawdown: gauge(metrics.Drawdown), cvar: gauge(metrics.CVaR), cvar95: gauge(metrics.CVaR95),
		stopped: gauge(metrics.PurchaseStopped), cut: gauge(metrics.ExposureCut), bound: e.Counters(metrics.LimitBars),
	}
	for _, name := range risk.BoundNames {
		p.bound.WithLabelValues(name)
	}
	return p
}

// Set notes how the portfolio stands at a time, with its value and gain in money. A measure of risk
// that is not known leaves its gauge, which begins with 0.
func (p *Portfolio) Set(at time.Time, value, gain float64, r Risk) {
	p.time.Set(float64(at.Unix()))
	p.value.Set(value)
	p.pnl.Set(gain)
	for _, x := range []struct {
		gauge prometheus.Gauge
		value *float64
	}{{p.drawdown, r.Drawdown}, {p.cvar, r.CVaR}, {p.cvar95, r.CVaR95}} {
		if x.value != nil {
			x.gauge.Set(*x.value)
		}
	}
	p.stopped.Set(oneIf(r.Stopped))
	p.cut.Set(oneIf(r.Cut))
}

// Bound counts a bar for each of the limits that changed its fills.
func (p *Portfolio) Bound(limits iter.Seq[string]) {
	for name := range limits {
		p.bound.WithLabelValues(name).Inc()
	}
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
