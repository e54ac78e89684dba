package exchange

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Session is a time of a day in which an exchange trades, in wall time since midnight. Close may be
// later than 24 h for a session of the night.
type Session struct {
	Open, Close time.Duration
	// From and Until are between which trades are reported that belong to the session: the opening
	// auction comes before Open, and reports come late.
	From, Until time.Duration
}

// Calendar is that of an exchange. It does not change and may be shared.
type Calendar struct {
	// Name is the code of the exchange in capitals, or that of the file.
	Name string

	first, last day // that the calendar knows
	trades      func(day) bool
	sessions    func(day) []Session
}

// day counts from 1970-01-01.
type day int

func dayOf(t time.Time) day {
	return day(time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC).Unix() / 86400)
}

func (d day) date() (year int, month time.Month, of int) { return d.time().Date() }
func (d day) time() time.Time                            { return time.Unix(int64(d)*86400, 0).UTC() }
func (d day) weekday() time.Weekday                      { return d.time().Weekday() }

func on(year int, month time.Month, of int) day {
	return dayOf(time.Date(year, month, of, 0, 0, 0, 0, time.UTC))
}

var calendars = map[string]func() (*Calendar, error){"xnys": newYork, "xshg": china("XSHG"), "xshe": china("XSHE")}

// Open returns the calendar of an exchange, xnys, xshg or xshe, or that of a CSV file, whose name
// ends in .csv: a line for each trading day with the columns date, open and close (09:30), and
// break_start and break_end where there is a break. Without open and close all hours belong to the
// day. Errors name the line.
func Open(name string) (*Calendar, error) {
	if strings.HasSuffix(strings.ToLower(name), ".csv") {
		return readFile(name)
	}
	make, ok := calendars[strings.ToLower(name)]
	if !ok {
		return nil, fmt.Errorf("there is no calendar %q; there are %s, and files that end in .csv", name, strings.Join(slices.Sorted(maps.Keys(calendars)), ", "))
	}
	return make()
}

// Knows says whether the calendar covers the date of t, in t's own zone.
func (c *Calendar) Knows(t time.Time) bool { return c.first <= dayOf(t) && dayOf(t) <= c.last }

// Trades says whether the exchange trades on the date of t, in t's own zone.
func (c *Calendar) Trades(t time.Time) bool { return c.trades(dayOf(t)) }

// Sessions are those of the date of t, in order, or of a usual day where the exchange does not
// trade on it. None means that hours are not known.
func (c *Calendar) Sessions(t time.Time) []Session { return c.sessions(dayOf(t)) }

// Lacking lists the trading days from the date of from to that of to, both included, for which have
// is false, as far as the calendar knows them.
func (c *Calendar) Lacking(from, to time.Time, have func(date time.Time) bool) (dates []time.Time) {
	for d := max(dayOf(from), c.first); d <= min(dayOf(to), c.last); d++ {
		if c.trades(d) && !have(d.time()) {
			dates = append(dates, d.time())
		}
	}
	return dates
}

func weekend(d day) bool { return d.weekday() == time.Saturday || d.weekday() == time.Sunday }

const minute = time.Minute

// hhmm is a clock time of day.
func hhmm(h, m int) time.Duration { return time.Duration(h)*time.Hour + time.Duration(m)*minute }
