package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
	"github.com/onnxrl/onnxrl/agents/livetrade/webhook"
	"github.com/onnxrl/onnxrl/envs/market/stream"
)

// Event is a batch as GET /live/events has it; the keys are stable, and those of the lines of
// onnxrl data live. Of one beside decisions Policy is empty.
type Event struct {
	Seq   uint64  `json:"seq"`
	Time  string  `json:"time"`
	Value float64 `json:"value"`
	Cash  float64 `json:"cash"`
	// PnL is the gain since the first decision, and PnLDay that of the day.
	PnL       float64            `json:"pnl"`
	PnLDay    float64            `json:"pnl_day"`
	Positions map[string]float64 `json:"positions"`
	// Weights are the shares of the value, that of the cash by the name cash.
	Weights map[string]float64 `json:"weights,omitempty"`
	Fills   []Fill             `json:"fills"`
	Orders  map[string]string  `json:"orders,omitempty"`
	Targets map[string]float64 `json:"targets,omitempty"`
	// Refused are orders that a limit has left out.
	Refused map[string]string `json:"refused,omitempty"`
	// Policy is the digest of the version that has decided, and Shadow how far that which decides
	// beside differs: by a number of orders, or the largest difference of a target weight.
	Policy string  `json:"policy"`
	Shadow *Shadow `json:"shadow,omitempty"`
	// Expert is the one in charge, of a policy that is a router of several.
	Expert string `json:"expert,omitempty"`
	// Limited says what has become of the decision: cut, hold or flatten.
	Limited string `json:"limited,omitempty"`
	// Because has the names of the risk events that it was limited by.
	Because []string `json:"because,omitempty"`
	Risk    Risk     `json:"risk"`
	sent    []string // the sides of the orders that were given
}

// Shadow is how the version that decides beside differs.
type Shadow struct {
	Policy  string  `json:"policy"`
	Differs float64 `json:"differs"`
}

// Risk is how an account stands to its limits; the measures are nil until there are days enough.
type Risk struct {
	Drawdown *float64 `json:"drawdown,omitempty"`
	CVaR     *float64 `json:"cvar,omitempty"`
	CVaR95   *float64 `json:"cvar95,omitempty"`
	Stopped  bool     `json:"stopped,omitempty"`
	Cut      bool     `json:"cut,omitempty"`
	// Bound are limits that changed the fills.
	Bound map[string]bool `json:"bound,omitempty"`
	// Events are limits that were passed since the decision before, and those that were no more.
	Events []RiskEvent `json:"events,omitempty"`
}

// RiskEvent is a limit that was passed, or is no more.
type RiskEvent struct {
	Event     string  `json:"event"`
	On        bool    `json:"on"`
	Symbol    string  `json:"symbol,omitempty"`
	Expert    string  `json:"expert,omitempty"` // such as expert_0, in the order of the router's document
	Value     float64 `json:"value"`
	Threshold float64 `json:"threshold"`
	Action    string  `json:"action,omitempty"`
}

// State is what GET /live/state answers; the keys are stable.
type State struct {
	Name   string `json:"name"`
	Policy string `json:"policy"`
	// Shadow is the version that decides beside.
	Shadow string `json:"shadow,omitempty"`
	// Seq is the number of the last event, and Decisions how many were decisions.
	Seq       uint64 `json:"seq"`
	Decisions uint64 `json:"decisions"`
	// Differs is how many positions are not those of the broker, and OpenOrders how many orders it
	// may still execute, or is to get.
	Differs    int    `json:"differs,omitempty"`
	OpenOrders int    `json:"open_orders,omitempty"`
	Killed     bool   `json:"killed"`
	Reason     string `json:"reason,omitempty"`
	// Heard is when the last message came, by the clock.
	Heard string `json:"heard,omitempty"`
	// Reconnects is how often the source has connected again, of one that is connected.
	Reconnects int64           `json:"reconnects,omitempty"`
	Counters   stream.Counters `json:"counters"`
	// Alerts are those for the webhook, if there is one.
	Alerts *webhook.Counts `json:"alerts,omitempty"`
	// CVaRLevel is the level of the CVaR.
	CVaRLevel float64 `json:"cvar_level"`
	// Last is the last event, null before the first. After a restart it is what the account
	// stands at, without orders, until the next one.
	Last *Event `json:"last"`
}

// cashName stands for the cash among symbols.
const cashName = "cash"

// Fill is an execution, at Price with Fee in money; Shares are negative where it is a sale.
type Fill struct {
	Asset  string  `json:"asset"`
	Shares float64 `json:"shares"`
	Price  float64 `json:"price"`
	Fee    float64 `json:"fee"`
}

// history is how many events are kept for who comes later.
const history = 1024

// board is what others see of a service. It is safe for concurrent use.
type board struct {
	name   string
	level  float64               // of the CVaR
	alerts func() webhook.Counts // nil without a webhook

	mu      sync.Mutex
	status  livetrade.Status
	last    *Event
	lines   [][]byte // of JSON; the last is that of last
	changed chan struct{}
}

func newBoard(name string) *board {
	return &board{name: name, changed: make(chan struct{})}
}

// set notes how the service stands.
func (b *board) set(s livetrade.Status) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.status = s
}

// add adds a batch.
func (b *board) add(e *Event) {
	var text bytes.Buffer
	if encode(&text, e) != nil {
		return // It was read from JSON, which has no number that JSON lacks.
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.lines) >= history {
		b.lines = append(b.lines[:0:0], b.lines[history/2:]...)
	}
	b.last, b.lines = e, append(b.lines, bytes.TrimSpace(text.Bytes()))
	close(b.changed)
	b.changed = make(chan struct{})
}

// report is the state.
func (b *board) report() State {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := State{Name: b.name, Policy: b.status.Policy, Shadow: b.status.Shadow, Seq: b.status.Seq, Decisions: b.status.Decisions, Differs: b.status.Differs, OpenOrders: b.status.Open, Killed: b.status.Killed, Reason: b.status.Reason, Reconnects: b.status.Reconnects, Counters: b.status.Bars, Last: b.last}
	r.CVaRLevel = b.level
	if b.alerts != nil {
		c := b.alerts()
		r.Alerts = &c
	}
	if !b.status.Heard.IsZero() {
		r.Heard = b.status.Heard.UTC().Format(time.RFC3339Nano)
	}
	return r
}

// after returns the events behind a number that are kept, and what is closed when there are more.
func (b *board) after(seq uint64) (lines [][]byte, first uint64, more <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.last == nil {
		return nil, 0, b.changed
	}
	if seq > b.last.Seq {
		seq = 0 // It is of a service that was here before.
	}
	// Batches follow each other by one.
	first = b.last.Seq - uint64(len(b.lines)) + 1
	skip := 0
	if seq >= first {
		skip = min(int(seq-first)+1, len(b.lines))
	}
	return b.lines[skip:], first + uint64(skip), b.changed
}

// readBatch makes an event of the records of a batch.
func readBatch(b *livetrade.Batch) (*Event, error) {
	e := &Event{Seq: b.Seq, Fills: []Fill{}}
	for i := range b.Records {
		r := &b.Records[i]
		var err error
		switch r.Topic {
		case livetrade.Fills:
			var f struct {
				Symbol             string
				Shares, Price, Fee float64
			}
			if err = json.Unmarshal(b.Value(r), &f); err == nil {
				e.Fills = append(e.Fills, Fill{Asset: f.Symbol, Shares: f.Shares, Price: f.Price, Fee: f.Fee})
			}
		case livetrade.RiskEvents:
			var x RiskEvent
			if err = json.Unmarshal(b.Value(r), &x); err == nil {
				e.Risk.Events = append(e.Risk.Events, x)
			}
		case livetrade.Orders:
			var o struct{ Order string }
			if err = json.Unmarshal(b.Value(r), &o); err == nil && o.Order != "" {
				e.sent = append(e.sent, o.Order)
			}
		case livetrade.Signals:
			err = json.Unmarshal(b.Value(r), e)
		case livetrade.Positions:
			var x struct{ Prices map[string]float64 }
			if err = json.Unmarshal(b.Value(r), e); err == nil {
				err = json.Unmarshal(b.Value(r), &e.Risk)
			}
			if err == nil {
				err = json.Unmarshal(b.Value(r), &x)
			}
			e.Weights = Weights(e.Value, e.Cash, e.Positions, x.Prices)
		}
		if err != nil {
			return nil, fmt.Errorf("batch %d: %v: %w", b.Seq, r.Topic, err)
		}
	}
	return e, nil
}

// Weights returns the shares of a portfolio's value, that of the cash by the name cash: nil where the
// value is not positive.
func Weights(value, cash float64, positions, prices map[string]float64) map[string]float64 {
	if !(value > 0) {
		return nil
	}
	w := map[string]float64{cashName: cash / value}
	for symbol, q := range positions {
		w[symbol] = 0
		if q != 0 {
			w[symbol] = q * prices[symbol] / value
		}
	}
	return w
}
