package livetrade

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents/trader"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
)

// riskEvent is that a limit was passed, or that this has ended.
type riskEvent struct {
	what             string
	on               bool
	symbol, expert   string
	value, threshold float64
	action           string
}

// savedEvent is the form of a riskEvent that is not published yet.
type savedEvent struct {
	Event     string  `json:"event"`
	On        bool    `json:"on"`
	Symbol    string  `json:"symbol,omitempty"`
	Expert    string  `json:"expert,omitempty"`
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Action    string  `json:"action,omitempty"`
}

// The names of what the monitor tells, beside those of package risk.
const (
	eventStale       = "stale"
	eventOrders      = "order_rate"
	eventPriceLimits = "price_limits"
	eventInvalid     = "invalid_decision"
	eventDrift       = "drift"
	eventKilled      = "killed"
	eventPolicy      = "policy"
)

// The commands. Kill ends trading until Resume; a reason may follow it. Policy goes over to the
// version whose digest follows it; see [Swap].
const (
	CommandKill   = "kill"
	CommandResume = "resume"
	CommandPolicy = "policy"
)

// monitor watches a service. What it says follows from events alone.
type monitor struct {
	config  Risk
	heard   time.Time // when the last message came
	killed  bool
	reason  string // of killed
	stale   bool
	rated   bool // too many orders
	drifted bool
	// sent are the times of the clock at which orders went, of the last minute.
	sent []sentOrders
	bars []bool // assets whose price is beyond the limits of the day
	// drift [F] are the averages of the features that are scaled, and times how many there were.
	scaled []bool
	drift  []float64
	times  int
	quotes bool // there are limits
	// because has the names of what the last decision is limited by.
	because []string
	// experts are what was told of those of the policy.
	experts []expertState
}

// sentOrders is how many orders went at a time.
type sentOrders struct {
	At    time.Time `json:"at"`
	Count int       `json:"count"`
}

func newMonitor(c Risk, p live.Pipeline) *monitor {
	m := &monitor{config: c.complete(), bars: make([]bool, len(p.Assets)), drift: make([]float64, len(p.Features)), scaled: make([]bool, len(p.Features))}
	for i, f := range p.Features {
		m.scaled[i] = f.Scaled
	}
	needs := p.Needs()
	m.quotes = slices.Contains(needs, bars.LimitUp) || slices.Contains(needs, bars.LimitDown)
	return m
}

// bar notes that a message came.
func (m *monitor) bar(came time.Time) { m.heard = came }

// due is when the last message is too old; ok is false where nothing is waited for.
func (m *monitor) due() (time.Time, bool) {
	if m.config.Stale.After == 0 || m.stale || m.heard.IsZero() {
		return time.Time{}, false
	}
	return m.heard.Add(m.config.Stale.After), true
}

// clock lets the time be now.
func (m *monitor) clock(now time.Time) (riskEvent, bool) {
	due, ok := m.due()
	if !ok || now.Before(due) {
		return riskEvent{}, false
	}
	m.stale = true
	m.killIf(m.config.Stale.Then, eventStale)
	return riskEvent{what: eventStale, on: true, value: now.Sub(m.heard).Seconds(), threshold: m.config.Stale.After.Seconds(), action: m.config.Stale.Then}, true
}

// command takes what somebody asks for.
func (m *monitor) command(text string) (riskEvent, error) {
	word, reason := text, ""
	for i := range text {
		if text[i] == ' ' {
			word, reason = text[:i], text[i+1:]
			break
		}
	}
	switch word {
	case CommandKill:
		m.killed, m.reason = true, cmp.Or(reason, "command")
		if reason != "" {
			reason = ": " + reason
		}
		return riskEvent{what: eventKilled, on: true, action: m.config.Kill + reason}, nil
	case CommandResume:
		m.killed, m.reason = false, ""
		return riskEvent{what: eventKilled}, nil
	}
	return riskEvent{}, fmt.Errorf("command: %q is none: expected %s or %s", text, CommandKill, CommandResume)
}

// killIf is the kill switch where that is what follows from a limit.
func (m *monitor) killIf(then, limit string) {
	if then == Kill && !m.killed {
		m.killed, m.reason = true, limit
	}
}

// observe looks at the rows of a time and at the features that follow from them.
func (m *monitor) observe(t *trader.Trader, rows []live.Row, events *[]riskEvent) {
	if m.stale {
		// The rows have come.
		m.stale = false
		*events = append(*events, riskEvent{what: eventStale, threshold: m.config.Stale.After.Seconds()})
	}
	if m.quotes {
		m.prices(t, rows, events)
	}
	if m.config.Drift.Limit > 0 {
		m.features(t, events)
	}
}

// prices finds assets whose close is beyond the limits of their day.
func (m *monitor) prices(t *trader.Trader, rows []live.Row, events *[]riskEvent) {
	// A price that was stored in float32 may be off by as much.
	const slack = 1e-6
	for i := range rows {
		r := &rows[i]
		if r.Status != bars.Traded {
			continue
		}
		q, price := &r.Quote, r.Quote[bars.RawClose]
		if !(price > 0) {
			price = r.Close
		}
		up, down := q[bars.LimitUp], q[bars.LimitDown]
		threshold := 0.0
		switch {
		case up > 0 && price > up*(1+slack):
			threshold = up
		case down > 0 && price < down*(1-slack):
			threshold = down
		}
		if beyond := threshold > 0; beyond != m.bars[i] {
			m.bars[i] = beyond
			*events = append(*events, riskEvent{what: eventPriceLimits, on: beyond, symbol: t.Feed.Pipeline().Assets[i], value: price, threshold: threshold, action: m.config.PriceLimits})
		}
	}
}

// barred reports whether an asset is to be left as it is.
func (m *monitor) barred(asset int) bool { return m.bars[asset] && m.config.PriceLimits == Hold }

// features averages those that are scaled.
func (m *monitor) features(t *trader.Trader, events *[]riskEvent) {
	row, width := t.Feed.ScaledRow(), len(m.drift)
	m.times++
	alpha := max(1/float64(m.config.Drift.Window), 1/float64(m.times))
	worst, which := 0.0, 0
	for k := range m.drift {
		if !m.scaled[k] {
			continue
		}
		sum, n := 0.0, 0
		for i := k; i < len(row); i += width {
			// Unknown values are 0.
			if v := float64(row[i]); v != 0 && v-v == 0 {
				sum, n = sum+v, n+1
			}
		}
		if n > 0 {
			m.drift[k] += alpha * (sum/float64(n) - m.drift[k])
		}
		if z := math.Abs(m.drift[k]); z > worst {
			worst, which = z, k
		}
	}
	if m.times < m.config.Drift.Window {
		return
	}
	// Once it was passed, it has ended at nine tenths.
	limit := m.config.Drift.Limit
	if m.drifted {
		limit *= 0.9
	}
	if beyond := worst > limit; beyond != m.drifted {
		if m.drifted = beyond; beyond {
			m.killIf(m.config.Drift.Then, eventDrift)
		}
		*events = append(*events, riskEvent{what: eventDrift, on: beyond, symbol: t.Feed.Pipeline().Features[which].Name, value: worst, threshold: limit, action: m.config.Drift.Then})
	}
}

// allow says how much of a decision is allowed.
func (m *monitor) allow(now time.Time, events *[]riskEvent) level {
	allowed := free
	m.because = m.because[:0]
	limit := func(on bool, name, then string) {
		if !on || then == Note {
			return
		}
		m.because = append(m.because, name)
		switch then {
		case Cut:
			allowed = min(allowed, cutting)
		case Hold, Kill:
			allowed = min(allowed, holding)
		case Flatten:
			allowed = min(allowed, flattened)
		}
	}
	if per := m.config.Orders.PerMinute; per > 0 {
		for len(m.sent) > 0 && now.Sub(m.sent[0].At) >= time.Minute {
			m.sent = slices.Delete(m.sent, 0, 1)
		}
		n := 0
		for _, s := range m.sent {
			n += s.Count
		}
		if over := n >= per; over != m.rated {
			if m.rated = over; over {
				m.killIf(m.config.Orders.Then, eventOrders)
			}
			*events = append(*events, riskEvent{what: eventOrders, on: over, value: float64(n), threshold: float64(per), action: m.config.Orders.Then})
		}
	}
	limit(m.rated, eventOrders, m.config.Orders.Then)
	limit(m.drifted, eventDrift, m.config.Drift.Then)
	limit(m.killed, eventKilled, m.config.Kill)
	return allowed
}

// sending counts orders.
func (m *monitor) sending(now time.Time, orders int) {
	if m.config.Orders.PerMinute > 0 && orders > 0 {
		m.sent = append(m.sent, sentOrders{now, orders})
	}
}

// invalid is a decision that is none.
func (m *monitor) invalid(err error, events *[]riskEvent) level {
	m.killIf(m.config.Invalid, eventInvalid)
	m.because = append(m.because, eventInvalid)
	*events = append(*events, riskEvent{what: eventInvalid, on: true, action: m.config.Invalid + ": " + err.Error()})
	return holding
}

// monitorState is the form of a monitor in a snapshot.
type monitorState struct {
	Heard   time.Time    `json:"heard"`
	Killed  bool         `json:"killed"`
	Reason  string       `json:"reason,omitempty"`
	Stale   bool         `json:"stale"`
	Rated   bool         `json:"rated"`
	Drifted bool         `json:"drifted"`
	Sent    []sentOrders `json:"sent"`
	Bars    []bool       `json:"bars"`
	Drift   []float64    `json:"drift"`
	Times   int          `json:"times"`

	Experts []expertState `json:"experts,omitempty"`
}

func (m *monitor) save() monitorState {
	return monitorState{m.heard, m.killed, m.reason, m.stale, m.rated, m.drifted, slices.Clone(m.sent), slices.Clone(m.bars), slices.Clone(m.drift), m.times, slices.Clone(m.experts)}
}

func (m *monitor) load(s monitorState) error {
	if len(s.Bars) != len(m.bars) || len(s.Drift) != len(m.drift) {
		return fmt.Errorf("the monitor has %d assets and %d features, expected %d and %d", len(s.Bars), len(s.Drift), len(m.bars), len(m.drift))
	}
	m.heard, m.killed, m.reason, m.stale, m.rated, m.drifted, m.sent, m.bars, m.drift, m.times, m.experts = s.Heard, s.Killed, s.Reason, s.Stale, s.Rated, s.Drifted, s.Sent, s.Bars, s.Drift, s.Times, s.Experts
	return nil
}
