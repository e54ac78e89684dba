package bars

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Status says what is known of a symbol at a time.
type Status uint8

// The statuses. Only a Traded symbol can be bought or sold.
const (
	Unlisted  Status = iota // before the first row; there is no bar
	Traded                  // a row
	Suspended               // a row, but without trading
	Missing                 // no row; the last close is carried forward, with volume 0
	Gone                    // no row for a long time; the bar is as when missing
)

// String returns the name in lower case.
func (s Status) String() string {
	names := []string{"unlisted", "traded", "suspended", "missing", "gone"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("status %d", uint8(s))
}

// Listed says whether the symbol has been listed and is not gone.
func (s Status) Listed() bool { return s == Traded || s == Suspended || s == Missing }

// Calendar says how series are aligned.
type Calendar struct {
	// From and To limit the panel, both included; empty means all there is. Rows before From are
	// left out for good.
	From Date `yaml:"from"`
	To   Date `yaml:"to"`
	// GoneAfter is the number of times without a row after which a symbol counts as delisted, until
	// a row appears again.
	GoneAfter int `yaml:"gone_after"`
}

// DefaultCalendar returns the defaults.
func DefaultCalendar() Calendar { return Calendar{GoneAfter: 20} }

// Validate reports what is wrong with the fields.
func (c Calendar) Validate() error {
	var p configs.Problems
	p.AtLeast("gone_after", c.GoneAfter, 1)
	p.Check(c.From.IsZero() || c.To.IsZero() || !c.To.Before(c.From), "to", "%s is before from, %s", c.To, c.From)
	return p.Err()
}

// Panel holds T times of N symbols, row after row: the bar of time t and symbol n is at t·N+n.
type Panel struct {
	Symbols []string
	Times   []time.Time
	Bars    []Bar
	Status  []Status
	// Extra are the names of further columns, ExtraValues their values at (t·N+n)·E+e: those of the
	// row, carried forward where there is none, and NaN before.
	Extra       []string
	ExtraValues []float64
	// Quoted lists the columns of Quotes, which is at t·N+n, or nil where there are none. Without a
	// row, a quote has the last close and factor, and no limits.
	Quoted []QuoteColumn
	Quotes []Quote
}

// Index is the position of time t and symbol n.
func (p *Panel) Index(t, n int) int { return t*len(p.Symbols) + n }

// ExtraAt are the further columns of time t and symbol n.
func (p *Panel) ExtraAt(t, n int) []float64 {
	e := len(p.Extra)
	i := p.Index(t, n) * e
	return p.ExtraValues[i : i+e]
}

// Align puts cleaned series on the union of their times. Reports, where given, are completed with
// gaps; they have the order of the series.
func Align(series []Series, extra []string, c Calendar, reports []SymbolReport) (*Panel, error) {
	if len(series) == 0 {
		return nil, errors.New("align: there are no series")
	}
	l := NewTimeline(extra, c)
	for _, s := range series {
		l.Add(s)
	}
	p, err := l.Panel()
	if err != nil {
		return nil, err
	}
	p.alloc()
	for i := range series {
		var r *SymbolReport
		if reports != nil {
			r = &reports[i]
		}
		p.fill(i, series[i].Records, c, r)
	}
	return p, nil
}

// Timeline makes the calendar of series that are seen one after another, and then their columns.
type Timeline struct {
	calendar Calendar
	panel    *Panel
	seen     map[instant]bool
}

// NewTimeline returns what has seen no series. extra are the names of their further columns.
func NewTimeline(extra []string, c Calendar) *Timeline {
	return &Timeline{c, &Panel{Extra: extra}, map[instant]bool{}}
}

// Add sees a cleaned series.
func (l *Timeline) Add(s Series) {
	p := l.panel
	p.Symbols = append(p.Symbols, s.Symbol)
	p.Quoted = append(p.Quoted, s.Quoted...)
	slices.Sort(p.Quoted)
	p.Quoted = slices.Compact(p.Quoted)
	for i := range s.Records {
		t := s.Records[i].Time
		if l.calendar.includes(t) && !l.seen[instantOf(t)] {
			l.seen[instantOf(t)] = true
			p.Times = append(p.Times, t)
		}
	}
}

// Panel is the panel of all series, without their bars. The timeline is then complete.
func (l *Timeline) Panel() (*Panel, error) {
	slices.SortFunc(l.panel.Times, time.Time.Compare)
	if l.seen = nil; len(l.panel.Times) == 0 {
		return nil, fmt.Errorf("align: no rows%s", l.calendar)
	}
	return l.panel, nil
}

// Column writes one of the series into a panel of its own, whose memory is used again; nil makes one. The
// report, unless nil, is completed with gaps.
func (l *Timeline) Column(s Series, into *Panel, r *SymbolReport) *Panel {
	if into == nil {
		all := l.panel
		into = &Panel{Symbols: []string{""}, Times: all.Times, Extra: all.Extra, Quoted: all.Quoted}
		into.alloc()
	} else {
		clear(into.Bars)
		clear(into.Status)
		clear(into.Quotes)
	}
	into.Symbols[0] = s.Symbol
	into.fill(0, s.Records, l.calendar, r)
	return into
}

// alloc makes room for the bars of all times and symbols.
func (p *Panel) alloc() {
	n := len(p.Times) * len(p.Symbols)
	p.Bars, p.Status, p.ExtraValues = make([]Bar, n), make([]Status, n), make([]float64, n*len(p.Extra))
	if len(p.Quoted) > 0 {
		p.Quotes = make([]Quote, n)
	}
}

// instant is a point in time, whatever its zone, for the keys of maps.
type instant struct {
	second int64
	nano   int
}

func instantOf(t time.Time) instant { return instant{t.Unix(), t.Nanosecond()} }

// HoursBetween are the hours from one time to a later one. A time.Duration ends after 292 years.
func HoursBetween(from, to time.Time) float64 {
	seconds := to.Unix() - from.Unix()
	return float64(seconds/3600) + (float64(seconds%3600)*1e9+float64(to.Nanosecond()-from.Nanosecond()))/3600e9
}

// String says between which days the panel lies.
func (c Calendar) String() string {
	text := ""
	if !c.From.IsZero() {
		text += fmt.Sprintf(" from %s on", c.From)
	}
	if !c.To.IsZero() {
		text += fmt.Sprintf(" up to %s", c.To)
	}
	return text
}

func (c Calendar) includes(t time.Time) bool {
	return (c.From.IsZero() || !c.From.After(t)) && (c.To.IsZero() || !c.To.EndsBefore(t))
}

// fill writes the column of symbol n.
func (p *Panel) fill(n int, records []Record, c Calendar, r *SymbolReport) {
	var last *Record
	gap := 0
	next := 0
	for t, at := range p.Times {
		for next < len(records) && records[next].Time.Before(at) {
			next++ // before From
		}
		i := p.Index(t, n)
		extra := p.ExtraAt(t, n)
		switch {
		case next < len(records) && records[next].Time.Equal(at):
			if r != nil && gap > 0 {
				r.Filled += gap
				r.LongestGap = max(r.LongestGap, gap)
			}
			last, gap = &records[next], 0
			p.Bars[i], p.Status[i] = last.Bar, Traded
			if last.Suspended {
				p.Status[i] = Suspended
			}
			if p.Quotes != nil {
				p.Quotes[i] = last.Quote
			}
			next++
		case last != nil:
			gap++
			p.Bars[i] = Bar{Time: at, Open: last.Close, High: last.Close, Low: last.Close, Close: last.Close}
			p.Status[i] = Missing
			if p.Quotes != nil {
				p.Quotes[i] = last.Quote.Carried()
			}
			if gap > c.GoneAfter {
				p.Status[i] = Gone
			}
		default:
			for e := range extra {
				extra[e] = math.NaN()
			}
			continue
		}
		copy(extra, last.Extra)
	}
	if r != nil {
		r.Absent = gap
	}
}
