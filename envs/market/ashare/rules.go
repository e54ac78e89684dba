package ashare

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// dated is a row of the book: what holds from a day on.
type dated[T any] struct {
	from  bars.Date
	value T
}

// at returns what holds on a day: the last row that is not later, or the zero value before the
// first.
func at[T any](rows []dated[T], d bars.Date) (value T) {
	for _, r := range rows {
		if d.Before(r.from) {
			break
		}
		value = r.value
	}
	return value
}

func day(year int, month time.Month, d int) bars.Date {
	return bars.NewDate(time.Date(year, month, d, 0, 0, 0, 0, time.UTC))
}

// The days on which much changed at once, or a board opened.
var (
	begin          = day(2005, 1, 1)
	chiNextOpened  = day(2009, 10, 30)
	starOpened     = day(2019, 7, 22)
	chiNextReform  = day(2020, 8, 24)
	bseOpened      = day(2021, 11, 15)
	mainReform     = day(2023, 4, 10)
	duty2023       = day(2023, 8, 28)
	mainBoards2026 = day(2026, 7, 6)
)

// opened says when trading on a board began, or the book where that was earlier.
var opened = [boards]bars.Date{MainSH: begin, MainSZ: begin, ChiNext: chiNextOpened, STAR: starOpened, BSE: bseOpened}

// Rules are the rules of one day. The methods are pure functions of it and of their arguments and
// allocate nothing.
type Rules struct{ date bars.Date }

// On returns the rules of a day. The book begins in 2005; an earlier day is an error. What it says
// last goes on.
func On(date bars.Date) (Rules, error) {
	if date.Before(begin) {
		return Rules{}, fmt.Errorf("the rule book begins on %s, not on %s", begin, date)
	}
	return Rules{date}, nil
}

// Open reports whether a board is there yet.
func (r Rules) Open(b Board) bool { return !r.date.Before(opened[b]) }
