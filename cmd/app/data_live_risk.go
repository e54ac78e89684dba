package app

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/envs/market/risk"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// liveRisk is how a portfolio stands to its limits on risk, as JSON; the keys are stable.
type liveRisk struct {
	Drawdown float64 `json:"drawdown"`
	// CVaR is nil before there are days enough, and without a limit on it.
	CVaR *float64 `json:"cvar,omitempty"`
	// Stopped says that nothing is bought, Cut that exposure is cut.
	Stopped bool `json:"stopped"`
	Cut     bool `json:"cut"`
	// Bound are the limits that changed the fills.
	Bound []string `json:"bound,omitempty"`
	// Memory is what a later --positions goes on with.
	Memory *trading.RiskMemory `json:"memory"`
}

// risk says how the portfolio stands to its limits, nil without any, and tells when what a limit
// demands to be sold could not be.
func (s *liveSession) risk(at time.Time) *liveRisk {
	a := s.trader.Portfolio.Account()
	m := a.Risk()
	if m == nil {
		return nil
	}
	r := &liveRisk{Drawdown: m.Drawdown(), Stopped: m.Stopped(), Cut: m.Factor() < 1, Memory: a.RiskMemory()}
	if loss, known := m.CVaR(); known {
		r.CVaR = &loss
	}
	if s.filling {
		r.Bound = a.Bound().Names()
	}
	unsold := s.filling && a.Bound()&risk.Unsold != 0
	if unsold && !s.unsold {
		s.say(fmt.Sprintf("risk: %s: what a limit demands to be sold could not be; it is tried again at each bar", at.Format(time.DateTime)))
	}
	s.unsold = unsold
	return r
}

// liveMetrics writes the state of a portfolio in the text format of Prometheus.
type liveMetrics struct {
	path                                      string
	registry                                  *prometheus.Registry
	time, value, drawdown, cvar, stopped, cut prometheus.Gauge
	bound                                     *prometheus.CounterVec
}

func newLiveMetrics(path string) *liveMetrics {
	m := &liveMetrics{path: path, registry: prometheus.NewRegistry()}
	for _, g := range []struct {
		to         *prometheus.Gauge
		name, help string
	}{
		{&m.time, "onnxrl_portfolio_decision_timestamp_seconds", "Time of the bar of the last decision"},
		{&m.value, "onnxrl_portfolio_value", "Value of the portfolio at that bar's close"},
		{&m.drawdown, "onnxrl_portfolio_drawdown", "Fall from the highest value of risk.drawdown.window, a fraction"},
		{&m.cvar, "onnxrl_portfolio_cvar", "CVaR of daily returns, positive for a loss; 0 before there are days enough"},
		{&m.stopped, "onnxrl_portfolio_stopped", "1 while the drawdown allows no purchase"},
		{&m.cut, "onnxrl_portfolio_cut", "1 while the CVaR cuts exposure"},
	} {
		*g.to = prometheus.NewGauge(prometheus.GaugeOpts{Name: g.name, Help: g.help})
		m.registry.MustRegister(*g.to)
	}
	m.bound = prometheus.NewCounterVec(prometheus.CounterOpts{Name: "onnxrl_portfolio_limit_bars_total", Help: "Bars at which a limit on risk has changed what was traded"}, []string{"limit"})
	m.registry.MustRegister(m.bound)
	for _, name := range risk.BoundNames {
		m.bound.WithLabelValues(name)
	}
	return m
}

// write replaces the file by the state of a line.
func (m *liveMetrics) write(at time.Time, l *liveLine) error {
	m.time.Set(float64(at.Unix()))
	m.value.Set(l.Value)
	if r := l.Risk; r != nil {
		m.drawdown.Set(r.Drawdown)
		m.cvar.Set(0)
		if r.CVaR != nil {
			m.cvar.Set(*r.CVaR)
		}
		m.stopped.Set(oneIf(r.Stopped))
		m.cut.Set(oneIf(r.Cut))
		for _, name := range r.Bound {
			m.bound.WithLabelValues(name).Inc()
		}
	}
	if err := prometheus.WriteToTextfile(m.path, m.registry); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}

func oneIf(on bool) float64 {
	if on {
		return 1
	}
	return 0
}
