package livetrade

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/broker"
)

// reportKind is what a broker's report is of.
type reportKind string

const (
	// reportHoldings has cash and positions: the first report, and whenever they are taken over.
	reportHoldings reportKind = "holdings"
	// reportDiffers says that the broker has others than are expected, which are not taken over.
	reportDiffers reportKind = "differs"
	// reportCash has the cash where fees, dividends and interest have changed it.
	reportCash reportKind = "cash"
	// Of a ticket: the broker has its order; it wants none; it was left out because it was late;
	// the order has ended.
	reportPlaced  reportKind = "placed"
	reportRefused reportKind = "refused"
	reportMissed  reportKind = "missed"
	reportEnded   reportKind = "ended"
	// reportFill is an execution.
	reportFill reportKind = "fill"
)

// report is the value of an event of kind Report, as JSON.
type report struct {
	Report reportKind `json:"report"`
	At     time.Time  `json:"at"` // by the broker's clock, of holdings
	// Ticket is the client id of an order, Order the broker's id, and State what has become of it.
	Ticket string       `json:"ticket,omitempty"`
	Order  string       `json:"order,omitempty"`
	State  broker.State `json:"state,omitempty"`
	// Text says why.
	Text      string             `json:"text,omitempty"`
	Fill      *broker.Fill       `json:"fill,omitempty"`
	Cash      float64            `json:"cash,omitempty"`
	Positions map[string]float64 `json:"positions,omitempty"`
	// Differs is how many positions are not those that were expected.
	Differs int `json:"differs,omitempty"`
}

// event makes an event of a report that came at a time of our clock.
func (r *report) event(came time.Time) (Event, error) {
	text, err := json.Marshal(r)
	return Event{Kind: Report, Came: came, Value: text}, err
}

// readReport reads the value of an event.
func readReport(text []byte) (*report, error) {
	var r report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("report of the broker: %w", err)
	}
	if r.Report == reportFill && r.Fill == nil {
		return nil, fmt.Errorf("report of the broker: a fill without one: %s", text)
	}
	return &r, nil
}
