package webhook

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/agents/livetrade"
)

// message is what is posted; the keys are stable.
type message struct {
	V       int    `json:"v"`
	ID      string `json:"id"`
	Service string `json:"service"`
	// Seq is the number of the batch that publishes the event.
	Seq uint64 `json:"seq"`
	// Time is when it was noticed, by the clock, and Bars the time of the last bars.
	Time   string `json:"time"`
	Bars   string `json:"bars,omitempty"`
	Event  string `json:"event"`
	On     bool   `json:"on"`
	Symbol string `json:"symbol"`
	// Value and Threshold are null where they are not known.
	Value     *float64 `json:"value"`
	Threshold *float64 `json:"threshold"`
	Action    string   `json:"action"`
	// Text is a line for readers, which chats show.
	Text string `json:"text"`
}

// escape keeps what others wrote from being markup of a chat, such as a call of everybody.
var escape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// encode is the body of a request.
func encode(a *livetrade.Alert) ([]byte, error) {
	m := message{
		V: 1, ID: a.ID(), Service: a.Service, Seq: a.Seq, Time: a.Time.UTC().Format(time.RFC3339Nano), Event: a.Event, On: a.On, Symbol: a.Symbol,
		Value: finite(a.Value), Threshold: finite(a.Threshold), Action: a.Action, Text: escape.Replace(a.String()),
	}
	if !a.Bars.IsZero() {
		m.Bars = a.Bars.Format(time.DateTime)
	}
	return json.Marshal(m)
}

func finite(v float64) *float64 {
	if v-v != 0 {
		return nil
	}
	return &v
}
