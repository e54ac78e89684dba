package bars

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// clock reads times of one format. In the automatic format the first text decides.
type clock struct {
	layout string        // a Go layout; empty until known and for numbers
	unit   time.Duration // of numbers since 1970; 0 for texts
	loc    *time.Location
	auto   bool
	// guessed says that the first text decided on the unit; serial that numbers are days as Excel
	// counts them.
	guessed, serial bool
	// The same time is often repeated, once for each symbol.
	text   string
	last   time.Time
	offset int // of the last instant from UTC, in seconds, 0 where there is a zone
	// stamped says that the last time was an instant, and no zone is set.
	stamped bool
	seen    clockCounts
}

// clockCounts count the instants among the times of a source: how many were midnights of UTC, and
// how many the zone has given another date.
type clockCounts struct {
	instants, midnights, moved int
	// offsets are noted where there is no zone.
	offsets offsets
}

func (c *clockCounts) add(o clockCounts) {
	c.offsets.add(o.offsets)
	c.instants, c.midnights, c.moved = c.instants+o.instants, c.midnights+o.midnights, c.moved+o.moved
}

// unixUnits are the formats for numbers.
var unixUnits = map[string]time.Duration{"unix": time.Second, "unix_ms": time.Millisecond, "unix_us": time.Microsecond, "unix_ns": time.Nanosecond}

// layouts are tried in this order on the first time of a file. Single digits accept two.
var layouts = []string{
	"2006-1-2", "2006/1/2", "20060102", "2006-1-2 15:04:05", "2006-1-2 15:04", "2006-1-2T15:04:05", "2006-1-2T15:04", "2006/1/2 15:04:05", "2006/1/2 15:04",
	time.RFC3339, "2006-1-2 15:04:05-07:00", "2006-1-2 15:04:05-0700", "2006-1-2 15:04-07:00", "2006-1-2 15:04:05 -0700 MST", "20060102 15:04:05", "20060102 15:04",
	"20060102T150405", "20060102150405", "200601021504", "Jan 2, 2006", "2 Jan 2006", "02-Jan-2006",
}

func newClock(format string, loc *time.Location) (*clock, error) {
	c := &clock{loc: loc}
	switch unit, ok := unixUnits[format]; {
	case format == "auto":
		c.auto = true
	case ok:
		c.unit = unit
	case format == "excel":
		c.serial = true
	case strings.Contains(format, "%"):
		layout, err := fromStrftime(format)
		if err != nil {
			return nil, err
		}
		c.layout = layout
	default:
		// A layout without a year cannot be one.
		if !strings.Contains(format, "06") {
			return nil, fmt.Errorf("%q is no time format: use auto, a Go layout such as 2006-01-02, a strftime format such as %%Y-%%m-%%d, or unix, unix_ms, unix_us, unix_ns, excel", format)
		}
		c.layout = format
	}
	return c, nil
}

// parse reads a time and brings it into the zone.
func (c *clock) parse(text string) (time.Time, error) {
	if text == c.text && text != "" {
		return c.last, nil
	}
	if c.auto {
		if err := c.detect(text); err != nil {
			return time.Time{}, err
		}
	}
	t, err := c.read(text)
	if err != nil {
		return t, err
	}
	if y := t.Year(); y < 1 || y > 9999 {
		return t, fmt.Errorf("%q is in the year %d: is it of another unit? See source.time_format", text, y)
	}
	c.text, c.last = strings.Clone(text), t
	return t, nil
}

// read reads a time of the format that is known by now.
func (c *clock) read(text string) (t time.Time, err error) {
	switch {
	case c.serial:
		if t, err = serialDay(text); err != nil {
			return t, err
		}
		return c.wall(t), nil
	case c.unit > 0:
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return t, fmt.Errorf("%q is not a whole number of time units since 1970", text)
		}
		if other := unitOf(text); c.guessed && other != 0 && other != c.unit {
			return t, fmt.Errorf("%q looks like %s since 1970, and the first time of the file like %s: the column has two units; split the file, or write one unit", text, unitNames[other], unitNames[c.unit])
		}
		return c.unix(n), nil
	}
	if t, err = time.Parse(c.layout, text); err != nil {
		return t, fmt.Errorf("%q does not have the time format %q", text, c.layout)
	}
	if hasZone(c.layout) {
		return c.instant(t), nil
	}
	return c.wall(t), nil
}

// unitOf is the unit of a number of time since 1970 that has as many digits, from 1973 to 2286 in
// seconds and from 2001 on in the others; 0 where it may be anything.
func unitOf(text string) time.Duration {
	switch len(strings.TrimPrefix(text, "-")) {
	case 9, 10:
		return time.Second
	case 13:
		return time.Millisecond
	case 16:
		return time.Microsecond
	case 19:
		return time.Nanosecond
	}
	return 0
}

var unitNames = map[time.Duration]string{time.Second: "seconds", time.Millisecond: "milliseconds", time.Microsecond: "microseconds", time.Nanosecond: "nanoseconds"}

// serialDay reads a serial number of Excel's calendar that begins in 1900: days since 1899-12-30, of
// which Excel has one too many before 1900-03-01, and parts of a day, to the second.
func serialDay(text string) (time.Time, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 61 && v < 2958466) {
		return time.Time{}, fmt.Errorf("%q is not the serial number of a day, from 61, 1900-03-01, to 2958465, 9999-12-31", text)
	}
	day, part := math.Modf(v)
	return time.Date(1899, 12, 30+int(day), 0, 0, int(math.Round(part*86400)), 0, time.UTC), nil
}

// unix turns a number into a time.
func (c *clock) unix(n int64) time.Time {
	perSecond := int64(time.Second / c.unit)
	sec, rest := n/perSecond, n%perSecond
	return c.instant(time.Unix(sec, rest*int64(c.unit)).UTC())
}

// instant shows a known instant in the zone, or as it is written where there is none.
func (c *clock) instant(t time.Time) time.Time {
	out := c.wall(t)
	if c.loc != nil {
		out = t.In(c.loc)
	} else {
		_, c.offset = t.Zone()
		c.stamped = true
		c.seen.offsets.see(t)
	}
	utc := t.UTC()
	c.seen.instants++
	if utc.Equal(utc.Truncate(24 * time.Hour)) {
		c.seen.midnights++
	}
	if out.YearDay() != utc.YearDay() {
		c.seen.moved++
	}
	return out
}

// wall reads the calendar and clock of t as those of the zone.
func (c *clock) wall(t time.Time) time.Time {
	loc := c.loc
	if loc == nil {
		loc = time.UTC
	}
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), loc)
}

func hasZone(layout string) bool {
	return strings.Contains(layout, "07") || strings.Contains(layout, "MST")
}

// detect chooses the format by the first text.
func (c *clock) detect(text string) error {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 0 {
		c.unit = unitOf(text)
		c.guessed = c.unit != 0
	}
	if c.unit == 0 {
		for _, l := range layouts {
			if _, err := time.Parse(l, text); err == nil {
				c.layout = l
				break
			}
		}
	}
	if c.unit == 0 && c.layout == "" {
		hint := ""
		if strings.Count(text, "/") == 2 || strings.Count(text, ".") == 2 {
			hint = "; day and month cannot be told apart"
		}
		if day, err := serialDay(text); err == nil && day.Year() >= 1950 && day.Year() < 2100 {
			return fmt.Errorf("%q may be a day as Excel numbers them, %s: set source.time_format: excel if it is", text, formatTime(day))
		}
		return fmt.Errorf("the time format of %q is not known%s: set source.time_format", text, hint)
	}
	c.auto = false
	return nil
}

var strftime = map[byte]string{
	'Y': "2006", 'y': "06", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'I': "03", 'p': "PM", 'M': "04", 'S': "05", 'f': "000000",
	'b': "Jan", 'B': "January", 'a': "Mon", 'A': "Monday", 'z': "-0700", 'Z': "MST", 'j': "002", 'F': "2006-01-02", 'T': "15:04:05", '%': "%",
}

func fromStrftime(format string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i == len(format) {
			return "", fmt.Errorf("%q ends in %%", format)
		}
		l, ok := strftime[format[i]]
		if !ok {
			return "", fmt.Errorf("%%%c in %q is not supported", format[i], format)
		}
		b.WriteString(l)
	}
	return b.String(), nil
}
