package board

import (
	"cmp"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/webhook"
	"github.com/onnxrl/onnxrl/models/drift"
	"github.com/onnxrl/onnxrl/runtime/metrics"
	"github.com/onnxrl/onnxrl/runtime/metrics/exporter"
)

// service are the metrics of a service that trades.
type service struct {
	*Portfolio
	killed, limit, mismatch, drift, feature prometheus.Gauge
	orders                                  *prometheus.CounterVec
	latency                                 prometheus.Observer

	// The fields below are read when Prometheus asks.
	mu     sync.Mutex
	status livetrade.Status
	alerts func() webhook.Counts // nil without a webhook
	now    func() time.Time
	open   func(time.Time) bool
}

// newService adds them to an exporter.
func newService(e *exporter.Exporter, c *livetrade.Config, machine *livetrade.Machine, now func() time.Time) *service {
	gauge := func(m metrics.Metric) prometheus.Gauge { return e.Gauges(m).WithLabelValues() }
	m := &service{
		Portfolio: NewPortfolio(e), killed: gauge(metrics.Killed), mismatch: gauge(metrics.PositionMismatch), drift: gauge(metrics.PortfolioDrift), feature: gauge(metrics.PortfolioDriftFeature),
		limit: gauge(metrics.OrdersPerMinute), orders: e.Counters(metrics.Orders), latency: e.Histograms(metrics.DecisionSeconds).WithLabelValues(), now: now, open: machine.Trades,
	}
	m.limit.Set(float64(c.Risk.Orders.PerMinute))
	e.Register(m)
	return m
}

var (
	barsDesc      = exporter.Desc(metrics.Bars)
	stalenessDesc = exporter.Desc(metrics.DataStaleness)
	alertsDesc    = exporter.Desc(metrics.Alerts)
)

// Describe implements prometheus.Collector.
func (m *service) Describe(to chan<- *prometheus.Desc) {
	to <- barsDesc
	to <- stalenessDesc
	to <- alertsDesc
}

// Collect implements prometheus.Collector.
func (m *service) Collect(to chan<- prometheus.Metric) {
	m.mu.Lock()
	s := m.status
	m.mu.Unlock()
	b := s.Bars
	used := b.Messages - b.Malformed - b.Duplicate - b.Late - b.Unknown - b.Ahead - b.Outside - b.Impossible
	for _, x := range []struct {
		rule string
		n    int64
	}{
		{"used", used}, {"late", b.Late}, {"duplicate", b.Duplicate}, {"revised", b.Revised}, {"missing", b.Missing}, {"out_of_order", b.OutOfOrder},
		{"malformed", b.Malformed}, {"unknown", b.Unknown}, {"ahead", b.Ahead}, {"closed", b.Closed}, {"unpriced", b.Unpriced}, {"expired", b.Expired}, {"outside", b.Outside}, {"impossible", b.Impossible},
	} {
		to <- prometheus.MustNewConstMetric(barsDesc, prometheus.CounterValue, float64(x.n), x.rule)
	}
	var c webhook.Counts
	if m.alerts != nil {
		c = m.alerts()
	}
	for _, x := range []struct {
		result string
		n      uint64
	}{{"delivered", c.Delivered}, {"failed", c.Failed}, {"dropped", c.Dropped}} {
		to <- prometheus.MustNewConstMetric(alertsDesc, prometheus.CounterValue, float64(x.n), x.result)
	}
	if now := m.now(); !s.Heard.IsZero() {
		age := 0.0
		if m.open(now) {
			age = now.Sub(s.Heard).Seconds()
		}
		to <- prometheus.MustNewConstMetric(stalenessDesc, prometheus.GaugeValue, age)
	}
}

// set notes how the service stands.
func (m *service) set(s livetrade.Status) {
	m.mu.Lock()
	m.status = s
	m.mu.Unlock()
	m.killed.Set(oneIf(s.Killed))
	m.mismatch.Set(float64(s.Differs))
}

// add notes a batch. What is of bars is noted of decisions alone.
func (m *service) add(e *Event, at time.Time, latency time.Duration) {
	m.Set(at, e.Value, e.PnL, e.Risk)
	if e.Policy != "" {
		m.Bound(maps.Keys(e.Risk.Bound))
		if latency > 0 {
			m.latency.Observe(latency.Seconds())
		}
	}
	for _, f := range e.Fills {
		side := "buy"
		if f.Shares < 0 {
			side = "sell"
		}
		m.orders.WithLabelValues(side, "filled", "").Inc()
	}
	for _, side := range e.sent {
		m.orders.WithLabelValues(side, "sent", "").Inc()
	}
	for _, o := range e.Refused {
		m.orders.WithLabelValues(o, "refused", cmp.Or(e.Limited, "price_limits")).Inc()
	}
}

// drifted shows how far observations are from those that the policy was published on, once that is
// known.
func (m *service) drifted(d drift.Drift) {
	if d.Rows > 0 {
		m.drift.Set(d.PSI)
		m.feature.Set(float64(d.Feature))
	}
}
