package universe

import (
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Membership says what a universe lets be done with a symbol at a bar.
type Membership uint8

// The memberships.
const (
	// Outside is who has not entered yet, or has left: it cannot be bought.
	Outside Membership = iota
	// Member can be bought.
	Member
	// Leaving is who has left, and what is held of it is to be sold.
	Leaving
)

// Members writes the membership of a symbol at each time, times ascending. defined says at which of
// them all its features are known, and warmup at how many up to a time they must be for the symbol
// to enter. Only times up to each one are used.
func (u *Universe) Members(c Config, symbol string, times []time.Time, defined []bool, warmup int, out []Membership) {
	own, left := 0, -1 // left counts the days with bars since it has left
	for t, at := range times {
		if defined[t] {
			own++
		}
		switch inside := u.contains(symbol, at); {
		case inside && own >= warmup:
			out[t], left = Member, 0
		case inside || left < 0:
			out[t] = Outside
		default:
			if t == 0 || bars.NewDate(times[t-1]).Before(bars.NewDate(at)) {
				left++
			}
			out[t] = Outside
			if c.Exit != Hold && left > c.ExitDays {
				out[t] = Leaving
			}
		}
	}
}

func (u *Universe) contains(symbol string, t time.Time) bool {
	for _, s := range u.spans[symbol] {
		if s.Contains(t) {
			return true
		}
	}
	return false
}
