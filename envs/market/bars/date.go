package bars

import (
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// Date is a day of a calendar, without a time zone. The zero Date is none.
type Date struct{ day time.Time }

// NewDate returns the day of t in t's own zone.
func NewDate(t time.Time) Date {
	return Date{time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, time.UTC)}
}

// ParseDate reads 2006-01-02.
func ParseDate(s string) (Date, error) {
	t, err := time.Parse(time.DateOnly, s)
	if err != nil {
		return Date{}, fmt.Errorf("%q is not a date such as 2010-12-31", s)
	}
	return Date{t}, nil
}

// IsZero reports whether there is no date.
func (d Date) IsZero() bool { return d.day.IsZero() }

// Before reports whether d is an earlier day than e.
func (d Date) Before(e Date) bool { return d.day.Before(e.day) }

// After reports whether the day begins later than t, by the calendar of t's zone.
func (d Date) After(t time.Time) bool { return NewDate(t).Before(d) }

// EndsBefore reports whether the day is over at t, by the calendar of t's zone.
func (d Date) EndsBefore(t time.Time) bool { return d.Before(NewDate(t)) }

// String returns 2006-01-02, or nothing.
func (d Date) String() string {
	if d.IsZero() {
		return ""
	}
	return d.day.Format(time.DateOnly)
}

// UnmarshalText reads a date; nothing is the zero Date.
func (d *Date) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*d = Date{}
		return nil
	}
	*d, err = ParseDate(string(text))
	return err
}

// MarshalText writes the date.
func (d Date) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// State moves the day.
func (d *Date) State(c *state.Codec) {
	second := d.day.Unix()
	c.Int64(&second, math.MinInt64, math.MaxInt64)
	if c.Reading() {
		d.day = time.Unix(second, 0).UTC()
	}
}
