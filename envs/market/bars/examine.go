package bars

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// enough rows tell what the clock times and volumes of a symbol are like.
const enough = 20

// Examine looks at all rows of the data together for what no single row shows: clock times that
// differ between symbols, dates that a time zone has moved, volumes that are all zero. What makes
// the data useless is an error that says how to set the rules where it is meant; the rest are
// notes, one sentence each.
func (d *Data) Examine(rules Rules) (notes []string, err error) {
	var errs []error
	report := func(rule, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); rule == "error" {
			errs = append(errs, errors.New(text))
		} else if rule != "" {
			notes = append(notes, text)
		}
	}
	mean := "; set quality.clock: note if that is meant"
	if rules.Clock == "note" {
		mean = ""
	}
	for _, text := range d.clocks() {
		report(rules.Clock, "%s%s", text, mean)
	}
	if text, sure := d.moved(); text != "" {
		rule := "note"
		if sure {
			rule = rules.Clock
		} else {
			mean = ""
		}
		report(rule, "%s%s", text, mean)
	}
	if n := len(d.factors); n > 0 {
		text := strings.Join(d.factors[:min(n, 3)], "; ")
		if n > 3 {
			text += fmt.Sprintf("; and %d more", n-3)
		}
		report("note", "the factor jumps and the price does not, so that the adjusted price does: %s", text)
	}
	for _, text := range d.without {
		report("note", "%s", text)
	}
	for _, text := range []string{d.outside, d.totals} {
		if text != "" {
			report("note", "%s", text)
		}
	}
	for _, text := range d.UnitNotes() {
		report("note", "%s", text)
	}
	for _, text := range d.Exchange().texts() {
		report(cmp.Or(rules.Calendar, "note"), "%s", text)
	}
	var zero, none, constant []string
	for _, s := range d.Each() {
		switch kind := volumes(s); {
		case !d.HasVolume || len(s.Records) < enough:
		case kind == "zero":
			zero = append(zero, s.Symbol)
		case kind == "none":
			none = append(none, s.Symbol)
		case kind == "constant":
			constant = append(constant, s.Symbol)
		}
	}
	if text := d.hole(); text != "" {
		report("note", "%s", text)
	}
	for i, s := range d.Series {
		for _, o := range d.Series[:i] {
			if strings.EqualFold(s.Symbol, o.Symbol) {
				report("note", "the symbols %s and %s differ by upper and lower case only, and count as two", o.Symbol, s.Symbol)
			}
		}
	}
	if len(zero) > 0 {
		rule, then := "note", ""
		if rules.ZeroVolume == "suspended" {
			rule, then = "error", ", which says that they were never traded (quality.zero_volume: suspended); set it to traded if there is no volume to know"
		}
		report(rule, "every volume is 0 for %s%s", some(zero), then)
	}
	if len(none) > 0 {
		report("note", "every volume is blank for %s", some(none))
	}
	if len(constant) > 0 {
		report("note", "every volume is the same number for %s: it was not measured", some(constant))
	}
	return notes, errors.Join(append(errs, d.Err())...)
}

// hole tells of the longest time in which no symbol has a bar, if it is much longer than usual: a
// part of the data is missing, or a date is wrong.
func (d *Data) hole() string {
	seen := map[instant]time.Time{}
	for _, s := range d.Each() {
		for i := range s.Records {
			seen[instantOf(s.Records[i].Time)] = s.Records[i].Time
		}
	}
	if len(seen) < enough {
		return ""
	}
	times := slices.SortedFunc(maps.Values(seen), time.Time.Compare)
	steps := make([]float64, len(times)-1) // days
	longest := 0
	for i := range steps {
		if steps[i] = HoursBetween(times[i], times[i+1]) / 24; steps[i] > steps[longest] {
			longest = i
		}
	}
	gap := steps[longest]
	slices.Sort(steps)
	if usual := steps[len(steps)/2]; gap < 30 || gap < 20*usual {
		return ""
	}
	return fmt.Sprintf("no symbol has a bar between %s and %s, %.0f days: a part of the data is missing, or a date is wrong", formatTime(times[longest]), formatTime(times[longest+1]), gap)
}

// volumes says what those of a symbol have in common: zero, none, constant or nothing. Rows that
// the file itself calls suspended do not count.
func volumes(s Series) string {
	var first float64
	seen, blank, same := 0, 0, true
	for _, r := range s.Records {
		switch {
		case r.Suspended:
		case !(r.Volume == r.Volume):
			blank++
		case seen == 0:
			seen, first = 1, r.Volume
		default:
			seen++
			same = same && r.Volume == first
		}
	}
	switch {
	case seen == 0 && blank >= enough:
		return "none"
	case seen < enough || !same:
		return ""
	case first == 0:
		return "zero"
	}
	return "constant"
}

// session is when a symbol has bars.
type session struct {
	symbol      string
	days        map[Date]time.Duration // the clock of the first bar
	bars        int                    // of most days
	step        time.Duration          // between most bars
	first, last time.Duration          // clock of the first and the last bar of most days
}

// sessionOf describes a symbol with enough rows.
func sessionOf(s Series) (session, bool) {
	if len(s.Records) < enough {
		return session{}, false
	}
	times := make([]time.Time, len(s.Records))
	for i := range s.Records {
		times[i] = s.Records[i].Time
	}
	slices.SortFunc(times, time.Time.Compare)
	dates := make([]Date, len(times))
	for i, t := range times {
		dates[i] = NewDate(t)
	}
	e := session{symbol: s.Symbol, days: map[Date]time.Duration{}}
	steps, firsts, lasts, counts := map[time.Duration]int{}, map[time.Duration]int{}, map[time.Duration]int{}, map[int]int{}
	of := 0
	for i, t := range times {
		clock := clockOf(t)
		if i > 0 {
			steps[t.Sub(times[i-1])]++
		}
		if of++; i == 0 || dates[i-1] != dates[i] {
			e.days[dates[i]] = clock
			firsts[clock]++
			of = 1
		}
		if i+1 == len(times) || dates[i+1] != dates[i] {
			lasts[clock]++
			counts[of]++
		}
	}
	e.step, e.first, e.last, e.bars = most(steps), most(firsts), most(lasts), most(counts)
	return e, true
}

func clockOf(t time.Time) time.Duration {
	h, m, s := t.Clock()
	return time.Duration(h)*time.Hour + time.Duration(m)*time.Minute + time.Duration(s)*time.Second
}

// most is the key with the highest count, and the least of those that have it.
func most[K time.Duration | int](counts map[K]int) K {
	var best K
	n := 0
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		if counts[k] > n {
			best, n = k, counts[k]
		}
	}
	return best
}

func (e *session) daily() bool { return e.bars == 1 }

// clocks says which symbols have bars that cannot belong to one calendar.
func (d *Data) clocks() []string {
	var daily, intraday []session
	for _, s := range d.Each() {
		e, ok := sessionOf(s)
		switch {
		case !ok:
		case e.daily():
			daily = append(daily, e)
		case e.bars >= 4:
			intraday = append(intraday, e)
		}
	}
	var found []string
	if len(daily) > 0 && len(intraday) > 0 {
		found = append(found, fmt.Sprintf("%s has one bar a day and %s has %d: they cannot share a calendar", daily[0].symbol, intraday[0].symbol, intraday[0].bars))
	}
	type seen struct {
		symbol string
		clock  time.Duration
	}
	first, mixed, example := map[Date]seen{}, map[Date]bool{}, ""
	for _, e := range daily {
		for _, date := range slices.SortedFunc(maps.Keys(e.days), func(a, b Date) int { return a.day.Compare(b.day) }) {
			clock := e.days[date]
			was, ok := first[date]
			if !ok {
				first[date] = seen{e.symbol, clock}
			} else if was.clock != clock {
				if mixed[date] = true; example == "" {
					example = fmt.Sprintf("on %s the bar of %s is at %s and that of %s at %s", date, was.symbol, hhmm(was.clock), e.symbol, hhmm(clock))
				}
			}
		}
	}
	if len(mixed) > 0 {
		found = append(found, fmt.Sprintf("daily bars have different clock times on %d days, and each symbol would be missing at the times of the others: %s", len(mixed), example))
	}
	for i := range intraday {
		a, b := &intraday[0], &intraday[i]
		if a.step != b.step || a.step == 0 {
			continue
		}
		shift := b.first - a.first
		if shift%a.step != 0 || (shift == a.step || shift == -a.step) && b.last-a.last == shift {
			found = append(found, fmt.Sprintf("the bars of %s begin at %s and those of %s at %s, with a step of %s: some are named by their beginning and others by their end, or their clocks differ",
				a.symbol, hhmm(a.first), b.symbol, hhmm(b.first), strings.TrimSuffix(a.step.String(), "0s")))
			break
		}
	}
	return found
}

func hhmm(d time.Duration) string { return time.Time{}.Add(d).Format("15:04:05") }

// moved says that dates are not those of the trading days. It is sure where the file gives
// instants, which the zone has turned into dates.
func (d *Data) moved() (text string, sure bool) {
	if c := d.clock; c.instants > 0 && c.midnights == c.instants && c.moved > 0 {
		return fmt.Sprintf("the times are midnights of UTC, which stand for dates; in the time zone of source.timezone %d of them fall on another date: leave source.timezone out", c.moved), true
	}
	var on [7]int
	all := 0
	for _, s := range d.Each() {
		if e, ok := sessionOf(s); !ok || !e.daily() {
			continue
		}
		for _, r := range s.Records {
			on[r.Time.Weekday()]++
			all++
		}
	}
	advice := "set source.timezone to that of the exchange"
	if d.clock.instants == 0 {
		advice = "if the exchange trades from Monday to Friday, the dates were moved before the file was written"
	}
	many, no := func(w time.Weekday) bool { return on[w]*8 > all }, func(w time.Weekday) bool { return on[w]*50 < all }
	switch {
	case all < enough:
	case many(time.Sunday) && no(time.Friday):
		return fmt.Sprintf("%d of %d daily bars are dated on Sundays and %d on Fridays: %s", on[time.Sunday], all, on[time.Friday], advice), d.clock.instants > 0
	case many(time.Saturday) && no(time.Monday):
		return fmt.Sprintf("%d of %d daily bars are dated on Saturdays and %d on Mondays: %s", on[time.Saturday], all, on[time.Monday], advice), d.clock.instants > 0
	}
	return "", false
}
