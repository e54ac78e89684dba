package ashare

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Counts are what was found in the days of a symbol, or of all of them.
type Counts struct {
	Days int `json:"days"`
	// Suspended days have no trading; all others below are days with trading.
	Suspended int `json:"suspended"`
	ST        int `json:"st"`
	// NotJudged are days before the book or the board begins, or without a known previous close.
	NotJudged int `json:"not_judged"`
	// Free days have no limits by the rules; Announced ones by the rules would, but have none in
	// the limit columns, as after a suspended listing is resumed. They are taken to have none.
	Free      int `json:"free"`
	Announced int `json:"announced"`
	// Outside are days with a price outside the limits.
	Outside int `json:"outside"`
	// ClosedUp and ClosedDown are closes at a limit, LockedUp and LockedDown those of them on which
	// open, high and low were there too.
	ClosedUp   int `json:"closed_up"`
	ClosedDown int `json:"closed_down"`
	LockedUp   int `json:"locked_up"`
	LockedDown int `json:"locked_down"`
	// Disagreements are days, with trading or without, on which the limit columns are not what the
	// rules say.
	Disagreements int `json:"disagreements"`
	// OffTick are days with a price that is no multiple of 0.01.
	OffTick int `json:"off_tick"`
}

func (c *Counts) add(o Counts) {
	c.Days += o.Days
	c.Suspended += o.Suspended
	c.ST += o.ST
	c.NotJudged += o.NotJudged
	c.Free += o.Free
	c.Announced += o.Announced
	c.Outside += o.Outside
	c.ClosedUp += o.ClosedUp
	c.ClosedDown += o.ClosedDown
	c.LockedUp += o.LockedUp
	c.LockedDown += o.LockedDown
	c.Disagreements += o.Disagreements
	c.OffTick += o.OffTick
}

// Range are limits; none is a day without.
type Range struct {
	Low  Fen `json:"low"`
	High Fen `json:"high"`
}

func (r *Range) String() string {
	if r == nil {
		return "no limits"
	}
	return fmt.Sprintf("limits of %s and %s", r.Low, r.High)
}

// Finding is a day that the rules and the data do not agree on.
type Finding struct {
	Date string `json:"date"`
	File string `json:"file"`
	Line int    `json:"line"`
	// Kind is outside, announced, disagreement or off_tick, as in [Counts].
	Kind     string `json:"kind"`
	Previous Fen    `json:"previous_close"`
	Low      Fen    `json:"low"`
	High     Fen    `json:"high"`
	Rules    *Range `json:"rules"`
	// Data are the limits of the file's columns.
	Data *Range `json:"data"`
}

// String says where the day is and what is at odds.
func (f Finding) String() string {
	text := fmt.Sprintf("%s, %s line %d: %s: traded from %s to %s after %s, %s by the rules", f.Date, f.File, f.Line, f.Kind, f.Low, f.High, f.Previous, f.Rules)
	if f.Kind == "announced" || f.Kind == "disagreement" {
		text += fmt.Sprintf(", %s in the data", f.Data)
	}
	return text
}

// Pause is a run of suspended days.
type Pause struct {
	From string `json:"from"`
	To   string `json:"to"`
	Days int    `json:"days"`
}

// SymbolReport is what was found in the bars of one symbol.
type SymbolReport struct {
	Symbol string `json:"symbol"`
	Board  string `json:"board"`
	// Listed is the first day of trading, where it is in the data.
	Listed string `json:"listed,omitempty"`
	// Problem says why the symbol was not judged.
	Problem string `json:"problem,omitempty"`
	Counts
	Pauses   []Pause   `json:"pauses,omitempty"`
	Findings []Finding `json:"findings,omitempty"`
	// The days of the counts of the same names.
	ClosedUpDays   []string `json:"closed_up_days,omitempty"`
	ClosedDownDays []string `json:"closed_down_days,omitempty"`
	LockedUpDays   []string `json:"locked_up_days,omitempty"`
	LockedDownDays []string `json:"locked_down_days,omitempty"`
}

// Report compares a source with the rules.
type Report struct {
	Total   Counts         `json:"total"`
	Notes   []string       `json:"notes,omitempty"`
	Symbols []SymbolReport `json:"symbols"`
}

// Inspect compares raw daily bars with the rules, and with the limits that their quotes have.
// Without a previous close the close of the row before is taken, times the change of the factor of
// adjustment; without a column for ST no share is. A symbol whose first row comes after the first
// day of the data counts as listed on that row's day.
func Inspect(d *bars.Data) *Report {
	in := inspection{hasVolume: d.HasVolume}
	for _, s := range d.Series {
		for _, r := range s.Records {
			if date := bars.NewDate(r.Time); in.first.IsZero() || date.Before(in.first) {
				in.first = date
			}
		}
	}
	report := &Report{}
	without := func(c bars.QuoteColumn, text string) {
		if !slices.ContainsFunc(d.Series, func(s bars.Series) bool { return slices.Contains(s.Quoted, c) }) {
			report.Notes = append(report.Notes, text)
		}
	}
	without(bars.PrevClose, "there is no column of previous closes: the close of the row before is taken, times the change of the factor of adjustment if there is one")
	without(bars.ST, "no column says which shares are under risk warning (ST): all are taken not to be")
	for _, s := range d.Series {
		r := in.symbol(s)
		report.Total.add(r.Counts)
		report.Symbols = append(report.Symbols, r)
	}
	if t := report.Total; t.OffTick > 0 {
		report.Notes = append(report.Notes, fmt.Sprintf("%d of %d days have prices that are no multiples of 0.01: the rules are for raw prices, not adjusted ones", t.OffTick, t.Days-t.Suspended))
	}
	return report
}

type inspection struct {
	hasVolume bool
	first     bars.Date
	quoted    []bars.QuoteColumn // of the symbol at hand
}

// quote returns a number of a row's quote, NaN where there is none.
func (in *inspection) quote(r *bars.Record, c bars.QuoteColumn) float64 {
	if slices.Contains(in.quoted, c) {
		return r.Quote[c]
	}
	return math.NaN()
}

func (in *inspection) symbol(s bars.Series) SymbolReport {
	report := SymbolReport{Symbol: s.Symbol}
	board, err := BoardOf(s.Symbol)
	if err != nil {
		report.Problem = err.Error()
		return report
	}
	report.Board = board.String()
	in.quoted = s.Quoted
	records := slices.Clone(s.Records)
	slices.SortStableFunc(records, func(a, b bars.Record) int { return a.Time.Compare(b.Time) })
	l := Listing{Board: board}
	var last *bars.Record // with a close
	var before bars.Date
	paused := false
	for i := range records {
		r := &records[i]
		date := bars.NewDate(r.Time)
		if i == 0 && in.first.Before(date) {
			l.Listed, report.Listed = date, date.String()
		}
		if date == before {
			return SymbolReport{Symbol: s.Symbol, Board: report.Board, Problem: fmt.Sprintf("%s line %d: a second row of %s: the rules are compared with one bar a day", r.File, r.Line, date)}
		}
		if !l.Listed.IsZero() {
			l.Day = i + 1
		}
		l.ST, l.Suspended = in.quote(r, bars.ST) == 1, in.suspended(r)
		if l.Suspended {
			if !paused {
				report.Pauses = append(report.Pauses, Pause{From: date.String()})
			}
			p := &report.Pauses[len(report.Pauses)-1]
			p.To = date.String()
			p.Days++
		}
		in.day(&report, l, date, r, last)
		before, paused = date, l.Suspended
		if !math.IsNaN(r.Close) {
			last = r
		}
	}
	return report
}

// day judges one row; last is the one before.
func (in *inspection) day(report *SymbolReport, l Listing, date bars.Date, r, last *bars.Record) {
	report.Days++
	if l.Suspended {
		report.Suspended++
	}
	if l.ST {
		report.ST++
	}
	previous, known := in.previous(r, last)
	rules, err := On(date)
	limits := rules.Limits(l, previous)
	if err != nil || !rules.Open(l.Board) || !known && !rules.free(l) {
		report.NotJudged++
		return
	}
	var prices [4]Fen
	off := false
	for i, p := range []float64{r.Open, r.High, r.Low, r.Close} {
		var exact bool
		prices[i], exact = FenOf(p)
		off = off || !exact
	}
	f := Finding{Date: date.String(), File: r.File, Line: r.Line, Previous: previous, Low: min(prices[2], prices[0], prices[3]), High: max(prices[1], prices[0], prices[3]), Rules: rangeOf(limits)}
	find := func(kind string, count *int) {
		*count++
		f.Kind = kind
		report.Findings = append(report.Findings, f)
	}
	if slices.Contains(in.quoted, bars.LimitUp) && slices.Contains(in.quoted, bars.LimitDown) {
		low, _ := FenOf(in.quote(r, bars.LimitDown))
		high, _ := FenOf(in.quote(r, bars.LimitUp))
		if low > 0 || high > 0 {
			f.Data = &Range{low, high}
		}
		_, debut := rules.debut(l)
		switch {
		case f.Data != nil && (f.Rules == nil || *f.Data != *f.Rules), f.Data == nil && f.Rules != nil && debut:
			find("disagreement", &report.Disagreements)
		case f.Data == nil && f.Rules != nil && !l.Suspended:
			find("announced", &report.Announced)
			l.Unlimited = true
			limits = rules.Limits(l, previous)
		}
	}
	if l.Suspended {
		return
	}
	if off {
		find("off_tick", &report.OffTick)
	}
	if rules.free(l) && !l.Unlimited {
		report.Free++
	}
	if !limits.Contains(f.Low) || !limits.Contains(f.High) {
		find("outside", &report.Outside)
	}
	if !limits.Limited {
		return
	}
	lockedUp, lockedDown := limits.Locked(prices[0], prices[1], prices[2], prices[3])
	for _, c := range []struct {
		is    bool
		count *int
		days  *[]string
	}{
		{prices[3] == limits.High, &report.ClosedUp, &report.ClosedUpDays},
		{prices[3] == limits.Low, &report.ClosedDown, &report.ClosedDownDays},
		{lockedUp, &report.LockedUp, &report.LockedUpDays},
		{lockedDown, &report.LockedDown, &report.LockedDownDays},
	} {
		if c.is {
			*c.count++
			*c.days = append(*c.days, f.Date)
		}
	}
}

// free reports whether a share has no limits by the rules.
func (r Rules) free(l Listing) bool {
	up, _ := r.percents(l)
	return up == 0
}

func rangeOf(l Limits) *Range {
	if !l.Limited {
		return nil
	}
	return &Range{l.Low, l.High}
}

// suspended reports whether there was no trading on a day.
func (in *inspection) suspended(r *bars.Record) bool {
	return r.Suspended || in.hasVolume && r.Volume == 0 || math.IsNaN(r.Open) && math.IsNaN(r.Close)
}

// previous returns the previous close to which limits refer, and whether it is known.
func (in *inspection) previous(r, last *bars.Record) (Fen, bool) {
	p := in.quote(r, bars.PrevClose)
	if math.IsNaN(p) && last != nil && last.HasFactor() && r.HasFactor() {
		p = last.Close * last.Factor / r.Factor
	}
	f, _ := FenOf(p)
	return f, f > 0
}
