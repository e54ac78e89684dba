package ashare

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Listing is what the rules must know of a share on a day.
type Listing struct {
	Board Board
	// Listed is the first day of trading, and Day counts the days of trading since, that one being
	// 1. Zero: long ago.
	Listed bars.Date
	Day    int
	// ST says that the share is under risk warning (ST or *ST).
	ST bool
	// Delisting counts the days of the delisting period, from 1; 0: it is in none.
	Delisting int
	// Unlimited says that the exchange has announced a day without limits, as it does for the first
	// one after a suspended listing is resumed, a share reform or, formerly, an issue of more
	// shares. No rule of dates tells these days.
	Unlimited bool
	// Suspended says that the share is not traded on this day.
	Suspended bool
}

// rates are limits in percent of the previous close: of ordinary shares and of those under risk
// warning.
type rates struct{ ordinary, st int64 }

// priceLimits, section 4.5 of the reference: nashnova special/5176 and english.sse.com.cn (main
// boards and ST), star.sse.com.cn (STAR), tpfh.cntaiping.com (ChiNext); BSE of the same class of
// pages. That ST shares had 10 % from 2026-07-06 follows a proposal of 2025-06-27. ChiNext had
// hardly any share under risk warning before 2020; that it would have been held to 5 % as others in
// Shenzhen were is uncertain. Shares marked S, whose share reform was undone, were held to 5 % from
// 2007 on: who trades them says ST.
var priceLimits = [boards][]dated[rates]{
	MainSH:  {{begin, rates{10, 5}}, {mainBoards2026, rates{10, 10}}},
	MainSZ:  {{begin, rates{10, 5}}, {mainBoards2026, rates{10, 10}}},
	ChiNext: {{chiNextOpened, rates{10, 5}}, {chiNextReform, rates{20, 20}}},
	STAR:    {{starOpened, rates{20, 20}}},
	BSE:     {{bseOpened, rates{30, 30}}},
}

// debut is how the first days of a new share are limited: in percent of the price of issue, which
// is the previous close of the first day, or not where these are 0.
type debut struct {
	days     int
	up, down int64
	halts    []Halt
}

// Halt is an interruption of trading of a share without limits: when its price is first off the
// open by a percentage, up or down, it rests for some minutes.
type Halt struct{ Percent, Minutes int }

var registrationHalts = []Halt{{30, 10}, {60, 10}}

// debuts, by the day of listing, section 4.5 of the reference (pages of the exchanges; BSE's first
// day: wodefinance.com). 2014-01-01 stands for the first new share of that year, of 2014-01-17:
// none was issued in 2013. The rules of 2014 came in steps until June of that year, and halts of
// other thresholds on the first day, before 2014 and until 2023, are not in the book.
var debuts = [boards][]dated[debut]{
	MainSH:  {{begin, debut{days: 1}}, {day(2014, 1, 1), debut{1, 44, 36, nil}}, {mainReform, debut{5, 0, 0, registrationHalts}}},
	MainSZ:  {{begin, debut{days: 1}}, {day(2014, 1, 1), debut{1, 44, 36, nil}}, {mainReform, debut{5, 0, 0, registrationHalts}}},
	ChiNext: {{chiNextOpened, debut{days: 1}}, {day(2014, 1, 1), debut{1, 44, 36, nil}}, {chiNextReform, debut{5, 0, 0, registrationHalts}}},
	STAR:    {{starOpened, debut{5, 0, 0, registrationHalts}}},
	BSE:     {{bseOpened, debut{1, 0, 0, registrationHalts}}},
}

// Period is a delisting period: how many days of trading it has, and whether the first of them has
// no limits. Days is 0 where there is none yet.
type Period struct {
	Days      int
	FreeFirst bool
}

// delistings: 30 days at 10 % in Shenzhen by its rules of July 2012 (China Daily, 2012-07-18) and
// in Shanghai since its risk warning board of 2013. Both agree with the bars of 2019 and 2020 at
// hand. 15 days, the first without limits, by the rules of 2020-12-31. The days at which these
// began to hold are from memory and uncertain, as is all of STAR's and BSE's.
var delistings = [boards][]dated[Period]{
	MainSH:  {{begin, Period{}}, {day(2013, 1, 1), Period{30, false}}, {day(2020, 12, 31), Period{15, true}}},
	MainSZ:  {{begin, Period{}}, {day(2012, 7, 7), Period{30, false}}, {day(2020, 12, 31), Period{15, true}}},
	ChiNext: {{chiNextOpened, Period{}}, {day(2012, 7, 7), Period{30, false}}, {day(2020, 12, 31), Period{15, true}}},
	STAR:    {{starOpened, Period{30, false}}, {day(2020, 12, 31), Period{15, true}}},
	BSE:     {{bseOpened, Period{15, true}}},
}

// Limits are the lowest and the highest price at which a share may be traded on a day.
type Limits struct {
	Low, High Fen
	// Limited is false on days without limits; Low and High are then 0.
	Limited bool
	// Suspended says that there is no trading at all.
	Suspended bool
}

// Limits returns the limits of a share after a previous close, the exchange's own, from which
// dividends and new shares have been taken out; on the first day it is the price of issue. Each is
// rounded to the tick, halves up, and lies at least a tick off the previous close. A previous close
// that is not positive is unknown, and nothing is limited.
func (r Rules) Limits(l Listing, previous Fen) Limits {
	up, down := r.percents(l)
	if up == 0 || previous <= 0 {
		return Limits{Suspended: l.Suspended}
	}
	p := int64(previous)
	return Limits{
		// That limits are a tick at least is in the rules of both exchanges today; since when is
		// uncertain, but no share was worth less than 0.10 before.
		Low: Fen(max(min(roundHalfUp(p*(100-down), 100), p-1), 1)), High: Fen(max(roundHalfUp(p*(100+up), 100), p+1)),
		Limited: true, Suspended: l.Suspended,
	}
}

// percents returns how far a price may rise and fall, 0 where there is no limit.
func (r Rules) percents(l Listing) (up, down int64) {
	limits := at(priceLimits[l.Board], r.date)
	first, isDebut := r.debut(l)
	switch {
	case l.Unlimited, l.Delisting == 1 && r.Delisting(l.Board).FreeFirst:
		return 0, 0
	case isDebut:
		return first.up, first.down
	case l.ST && l.Delisting == 0:
		return limits.st, limits.st
	}
	return limits.ordinary, limits.ordinary
}

// debut says whether this is one of the first days that have rules of their own, and which.
func (r Rules) debut(l Listing) (debut, bool) {
	d := at(debuts[l.Board], l.Listed)
	return d, l.Day > 0 && l.Day <= d.days
}

// Halts returns the interruptions of trading on one of the first days; they are shared and must not
// be changed.
func (r Rules) Halts(l Listing) []Halt {
	if d, ok := r.debut(l); ok {
		return d.halts
	}
	return nil
}

// Delisting returns the delisting period of a board.
func (r Rules) Delisting(b Board) Period { return at(delistings[b], r.date) }

// MayBuy reports whether a buy can be filled at a price in yuan: at the upper limit there is nobody
// who sells. A price between two ticks, such as an average or one with slippage, counts as the
// higher one. The price must be that of the fill, never a later one such as the day's close.
func (l Limits) MayBuy(price float64) bool {
	return !l.Suspended && (!l.Limited || math.Ceil(price*100-grain) < float64(l.High))
}

// MaySell reports whether a sale can be filled at a price in yuan: at the lower limit there is
// nobody who buys. A price between two ticks counts as the lower one.
func (l Limits) MaySell(price float64) bool {
	return !l.Suspended && (!l.Limited || math.Floor(price*100+grain) > float64(l.Low))
}

// Contains reports whether a price is within the limits.
func (l Limits) Contains(p Fen) bool { return !l.Limited || p >= l.Low && p <= l.High }

// Locked reports whether a whole day's bar is one price, the upper limit or the lower: nobody could
// buy, or sell, on that day.
func (l Limits) Locked(open, high, low, closing Fen) (up, down bool) {
	one := l.Limited && !l.Suspended && open == high && high == low && low == closing
	return one && closing == l.High, one && closing == l.Low
}
