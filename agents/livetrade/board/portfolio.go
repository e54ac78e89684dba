package board

import (
	"iter"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
	"github.com/onnxrl/onnxrl/runtime/metrics/names"
)

// Portfolio are the metrics of a portfolio that is traded. It is safe for concurrent use.
type Portfolio struct {
	time, value, pnl, drawdown, cvar, cvar95, stopped, cut prometheus.Gauge
	bound                                                  *prometheus.CounterVec
}

// NewPortfolio adds them to an exporter.
func NewPortfolio(e *exporter.Exporter) *Portfolio {
	gauge := func(m names.Metric) prometheus.Gauge { return e.Gauges(m).WithLabelValues() }
	p := &Portfolio{
		time: gauge(names.DecisionTime), value: gauge(names.PortfolioValue), pnl: gauge(names.PnL), drawdown: gauge(names.Drawdown), cvar: gauge(names.CVaR), cvar95: gauge(names.CVaR95),
		stopped: gauge(names.PurchaseStopped), cut: gauge(names.ExposureCut), bound: e.Counters(names.LimitBars),
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
