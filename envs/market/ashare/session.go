package ashare

import (
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Phase is what happens to orders at a time of the day.
type Phase uint8

// The phases of a day. An opening call ends without cancellation, and in a closing call nothing can
// be cancelled at all; in AfterHours orders are filled at the close.
const (
	Closed Phase = iota
	OpeningCall
	OpeningCallNoCancel
	Continuous
	ClosingCall
	AfterHours
)

// String returns the phase's name.
func (p Phase) String() string {
	return [...]string{"closed", "opening call", "opening call without cancellation", "continuous", "closing call", "after hours"}[p]
}

// Session is a part of the day in minutes since midnight, from From up to, but without, To.
type Session struct {
	Phase    Phase
	From, To int
}

func clock(hour, minute int) int { return 60*hour + minute }

// The days there are, each longer than the one before.
var (
	withoutCall = []Session{
		{OpeningCall, clock(9, 15), clock(9, 20)}, {OpeningCallNoCancel, clock(9, 20), clock(9, 25)},
		{Continuous, clock(9, 30), clock(11, 30)}, {Continuous, clock(13, 0), clock(15, 0)},
	}
	withCall = []Session{
		withoutCall[0], withoutCall[1], withoutCall[2],
		{Continuous, clock(13, 0), clock(14, 57)}, {ClosingCall, clock(14, 57), clock(15, 0)},
	}
	withAfterHours = append(withCall[:len(withCall):len(withCall)], Session{AfterHours, clock(15, 5), clock(15, 30)})
)

// sessions, section 4.5 of the reference: star.sse.com.cn, nashnova. Shenzhen's closing call is of
// 2006-07-01; Shanghai's of 2018-08-20 (SSE's rules as revised on 2018-08-06) and ChiNext's hours
// after the close are from memory.
var sessions = [boards][]dated[[]Session]{
	MainSH:  {{begin, withoutCall}, {day(2018, 8, 20), withCall}, {mainBoards2026, withAfterHours}},
	MainSZ:  {{begin, withoutCall}, {day(2006, 7, 1), withCall}},
	ChiNext: {{chiNextOpened, withCall}, {chiNextReform, withAfterHours}},
	STAR:    {{starOpened, withAfterHours}},
	BSE:     {{bseOpened, withCall}},
}

// Sessions returns the parts of the day, in order; they are shared and must not be changed.
func (r Rules) Sessions(b Board) []Session { return at(sessions[b], r.date) }

// Phase returns what happens at a minute since midnight.
func (r Rules) Phase(b Board, minute int) Phase {
	for _, s := range r.Sessions(b) {
		if minute >= s.From && minute < s.To {
			return s.Phase
		}
	}
	return Closed
}

// breaker says on which days the circuit breaker of the whole market held: the four of January
// 2016, section 4.5 of the reference (from memory and search).
var breaker = []dated[bool]{{begin, false}, {day(2016, 1, 4), true}, {day(2016, 1, 8), false}}

// Breaker says until which minute the circuit breaker halts all shares when the CSI 300 is off its
// previous close by a move, in hundredths of a percent, at a minute of continuous trading; 0: it
// does not. The first move of 5 % halts for 15 minutes, the break at noon not counted, or until the
// close from 14:45 on; paused says that there has been one today. One of 7 % halts until the close.
func (r Rules) Breaker(move, minute int, paused bool) (until int) {
	move = max(move, -move)
	switch {
	case !at(breaker, r.date) || move < 500 || move < 700 && paused:
		return 0
	case move >= 700 || minute >= clock(14, 45):
		return clock(15, 0)
	}
	until = minute + 15
	if minute < clock(11, 30) && until >= clock(11, 30) {
		until += clock(13, 0) - clock(11, 30)
	}
	return until
}

// halts are when the circuit breaker halted all shares, in minutes since midnight: on 2016-01-04
// from 13:12 for 15 minutes and from 13:33 on, on 2016-01-07 from 9:42 for 15 minutes and from 9:59
// on. The minutes are those that the press of the day gave, from memory.
var halts = []struct {
	day      bars.Date
	from, to int
}{
	{day(2016, 1, 4), clock(13, 12), clock(13, 27)}, {day(2016, 1, 4), clock(13, 33), clock(15, 0)},
	{day(2016, 1, 7), clock(9, 42), clock(9, 57)}, {day(2016, 1, 7), clock(9, 59), clock(15, 0)},
}

// Halted reports whether the circuit breaker halted all shares at a time of the exchange.
func Halted(at time.Time) bool {
	minute := 60*at.Hour() + at.Minute()
	if minute == 0 && at.Second() == 0 {
		minute = clock(15, 0) // of the bar of a day, the close
	}
	today := bars.NewDate(at)
	for _, h := range halts {
		if today == h.day && minute > h.from && minute <= h.to {
			return true
		}
	}
	return false
}
