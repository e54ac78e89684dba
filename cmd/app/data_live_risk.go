package app

import (
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade/board"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
)

// liveRisk is how much a portfolio loses and how it stands to limits on that, as JSON; the keys are
// stable.
type liveRisk struct {
	Drawdown float64 `json:"drawdown"`
	// CVaR is at the level of risk.cvar and CVaR95 at 95 %; nil before there are days enough.
	CVaR   *float64 `json:"cvar,omitempty"`
	CVaR95 *float64 `json:"cvar95,omitempty"`
	// Stopped says that nothing is bought, Cut that exposure is cut.
	Stopped bool `json:"stopped"`
	Cut     bool `json:"cut"`
	// Bound are the limits that changed the fills.
	Bound []string `json:"bound,omitempty"`
	// Memory is what a later --positions goes on with.
	Memory *trading.RiskMemory `json:"memory"`
}

// risk measures the portfolio, says how it stands to its limits, and tells when what a limit demands
// to be sold could not be.
func (s *liveSession) risk(at time.Time) *liveRisk {
	a := s.trader.Portfolio.Account()
	m := a.Risk()
	r := &liveRisk{Drawdown: m.Drawdown(), Stopped: m.Stopped(), Cut: m.Factor() < 1, Memory: a.RiskMemory()}
	if loss, known := m.CVaR(); known {
		r.CVaR = &loss
	}
	if loss, known := m.CVaRAt(0.95); known {
		r.CVaR95 = &loss
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
	path string
	to   *exporter.Exporter
	*board.Portfolio
}

func newLiveMetrics(path string) *liveMetrics {
	e := exporter.New(time.Now)
	return &liveMetrics{path, e, board.NewPortfolio(e)}
}

// write replaces the file by the state of a line.
func (m *liveMetrics) write(at time.Time, l *liveLine) error {
	r := l.Risk
	m.Set(at, l.Value, l.PnL, board.Risk{Drawdown: &r.Drawdown, CVaR: r.CVaR, CVaR95: r.CVaR95, Stopped: r.Stopped, Cut: r.Cut})
	m.Bound(slices.Values(r.Bound))
	if err := m.to.WriteFile(m.path); err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	return nil
}
