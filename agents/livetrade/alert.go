package livetrade

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Alert is a risk event as those hear of it who are to know at once: when it happens, like the
// batch that publishes it.
type Alert struct {
	Service string
	// Seq and Number say which one it is: Number, from 0, among the events of batch Seq.
	Seq    uint64
	Number int
	// Time is when it was noticed, by the clock, and Bars the time of the last bars, zero before
	// the first.
	Time, Bars time.Time
	Event      string
	// On says that a limit was passed; it is false where this has ended.
	On     bool
	Symbol string // empty for none
	// Value and Threshold are in the unit of the limit. Value is NaN where it is not known.
	Value, Threshold float64
	Action           string
}

// Alerter notes alerts over restarts.
type Alerter interface {
	// Alert takes one and does not wait. Alerts since the last snapshot come again after the end of
	// a service, with the Seq and the Number that they had; published says that their batch was
	// published before the service began.
	Alert(a *Alert, published bool)
	// Start is called when the state directory is the service's and its journal has been read.
	Start()
	// Save notes on the disk what was told, which is not told again.
	Save()
}

// ID names an alert among all of its service.
func (a *Alert) ID() string {
	return a.Service + "-" + strconv.FormatUint(a.Seq, 10) + "-" + strconv.Itoa(a.Number)
}

// String is a line for a reader.
func (a *Alert) String() string {
	var b strings.Builder
	b.WriteString(a.Service + ": " + a.Event)
	if a.Symbol != "" {
		b.WriteString(" of " + a.Symbol)
	}
	if !a.On {
		b.WriteString(" has ended")
	}
	if a.Value-a.Value == 0 && (a.Value != 0 || a.Threshold != 0) {
		fmt.Fprintf(&b, ": %.6g", a.Value)
		if a.Threshold != 0 {
			fmt.Fprintf(&b, ", the limit is %.6g", a.Threshold)
		}
	}
	if a.Action != "" {
		b.WriteString("; " + a.Action)
	}
	// Reasons come from others: they make no second line and no colours.
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, b.String())
}

// tell tells of the events of a batch that nobody was told of.
func (m *Machine) tell(seq uint64, came time.Time) {
	for ; m.told < len(m.events); m.told++ {
		if m.onAlert == nil {
			continue
		}
		x := &m.events[m.told]
		m.onAlert(&Alert{
			Service: m.name, Seq: seq, Number: m.told, Time: came, Bars: m.trader.Feed.Time(), Event: x.what, On: x.on, Symbol: x.symbol, Value: x.value, Threshold: x.threshold, Action: x.action,
		})
	}
}

// alert passes an alert on.
func (s *service) alert(a *Alert) {
	published := a.Seq <= s.last
	if s.Alerter != nil {
		s.Alerter.Alert(a, published)
	}
	if published {
		return
	}
	s.Say("alert: " + a.String())
	if s.OnAlert != nil {
		s.OnAlert(a)
	}
}
