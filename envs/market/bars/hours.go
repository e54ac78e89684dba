package bars

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/exchange"
)

// hours opens the calendar and the sessions of a source.
func (d *Data) hours(s Source) error {
	none := func(time.Time) []exchange.Session { return nil }
	d.sessions = none
	if s.Exchange != "" {
		c, err := exchange.Open(s.Exchange)
		if err != nil {
			return err
		}
		d.exchange, d.sessions = c, c.Sessions
	}
	if len(s.Sessions) == 0 {
		return nil
	}
	var list []exchange.Session
	for _, text := range s.Sessions {
		session, err := exchange.ParseSession(text)
		if err != nil {
			return err
		}
		list = append(list, session)
	}
	d.sessions = func(time.Time) []exchange.Session { return list }
	return nil
}

// ExchangeReport compares the times of all rows with the calendar of an exchange.
type ExchangeReport struct {
	Exchange string `json:"exchange"`
	// Lacking are the trading days within the data on which no symbol has a bar, Holidays the bars
	// on days without trading (of each day the first), HalfDays the half days on which there are
	// bars, and Outside the bars outside the hours of their day (of each day the first).
	Lacking  []string      `json:"lacking"`
	Holidays []Disagreeing `json:"holidays"`
	HalfDays []string      `json:"half_days"`
	Outside  []Disagreeing `json:"outside"`
	// Unknown is the number of days that the calendar says nothing about.
	Unknown int `json:"unknown"`
}

// Disagreeing is a bar that a calendar does not expect.
type Disagreeing struct {
	Date   string `json:"date"`
	Time   string `json:"time"`
	Symbol string `json:"symbol"`
	File   string `json:"file"`
	Line   int    `json:"line"`
}

func (b Disagreeing) String() string {
	return fmt.Sprintf("%s at %s (%s, line %d)", b.Symbol, b.Time, b.File, b.Line)
}

// Exchange compares the rows with the calendar of source.exchange; nil where there is none. Of
// daily bars the hours do not matter.
func (d *Data) Exchange() *ExchangeReport {
	c := d.exchange
	if c == nil {
		return nil
	}
	r := &ExchangeReport{Exchange: c.Name, Lacking: []string{}, Holidays: []Disagreeing{}, HalfDays: []string{}, Outside: []Disagreeing{}}
	have := map[Date]bool{}
	var all []Date
	outside := map[Date]bool{}
	for _, s := range d.Each() {
		e, ok := sessionOf(s)
		hours := ok && !e.daily()
		for i := range s.Records {
			rec := &s.Records[i]
			date := NewDate(rec.Time)
			this := Disagreeing{date.String(), formatTime(rec.Time), s.Symbol, rec.File, rec.Line}
			if !have[date] {
				have[date] = true
				all = append(all, date)
				switch {
				case !c.Knows(rec.Time):
					r.Unknown++
				case !c.Trades(rec.Time):
					r.Holidays = append(r.Holidays, this)
				case d.half(rec.Time):
					r.HalfDays = append(r.HalfDays, this.Date)
				}
			}
			if hours && !outside[date] && c.Knows(rec.Time) && c.Trades(rec.Time) && !within(d.sessions(rec.Time), clockOf(rec.Time), e.step) {
				outside[date] = true
				r.Outside = append(r.Outside, this)
			}
		}
	}
	if len(all) == 0 {
		return r
	}
	byDate := func(a, b Disagreeing) int { return strings.Compare(a.Date, b.Date) }
	slices.SortFunc(r.Holidays, byDate)
	slices.SortFunc(r.Outside, byDate)
	slices.Sort(r.HalfDays)
	slices.SortFunc(all, func(a, b Date) int { return a.day.Compare(b.day) })
	for _, day := range c.Lacking(all[0].day, all[len(all)-1].day, func(day time.Time) bool { return have[NewDate(day)] }) {
		r.Lacking = append(r.Lacking, NewDate(day).String())
	}
	return r
}

// half says whether the exchange closes early: earlier than a week before and after.
func (d *Data) half(t time.Time) bool {
	close := func(t time.Time) time.Duration {
		s := d.exchange.Sessions(t)
		if len(s) == 0 {
			return 0
		}
		return s[len(s)-1].Close
	}
	return close(t) < max(close(t.AddDate(0, 0, 7)), close(t.AddDate(0, 0, -7)))
}

// within says whether a bar of a length named by its beginning, which may be before the opening, or
// its end lies in a session.
func within(sessions []exchange.Session, clock, length time.Duration) bool {
	const day = 24 * time.Hour
	return len(sessions) == 0 || slices.ContainsFunc(sessions, func(s exchange.Session) bool {
		return clock+length > s.From && clock < s.Until || clock+day+length > s.From && clock+day < s.Until
	})
}

// texts are the disagreements in words, one sentence for each kind.
func (r *ExchangeReport) texts() (list []string) {
	if r == nil {
		return nil
	}
	more := func(n int) string {
		if n > 3 {
			return fmt.Sprintf(" and %d more", n-3)
		}
		return ""
	}
	if n := len(r.Lacking); n > 0 {
		which := "a trading day"
		if n > 1 {
			which = "trading days"
		}
		list = append(list, fmt.Sprintf("the data lack %s%s, %s of %s", strings.Join(r.Lacking[:min(n, 3)], ", "), more(n), which, r.Exchange))
	}
	for _, kind := range []struct {
		text string
		bars []Disagreeing
	}{{"bars on days on which %s does not trade", r.Holidays}, {"bars outside the hours of %s", r.Outside}} {
		if n := len(kind.bars); n > 0 {
			var names []string
			for _, b := range kind.bars[:min(n, 3)] {
				names = append(names, b.String())
			}
			list = append(list, fmt.Sprintf(kind.text, r.Exchange)+": "+strings.Join(names, ", ")+more(n)+map[bool]string{true: " days"}[n > 3])
		}
	}
	if r.Unknown > 0 {
		list = append(list, fmt.Sprintf("the calendar of %s does not know %d of the days", r.Exchange, r.Unknown))
	}
	return list
}
