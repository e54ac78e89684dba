package exchange

import (
	"slices"
	"time"
)

// closures are the weekdays on which New York stayed closed for one reason: Nixon's funeral,
// September 2001, Reagan's and Ford's, the hurricane Sandy, Bush's and Carter's.
var closures = []day{
	on(1994, 4, 27), on(2001, 9, 11), on(2001, 9, 12), on(2001, 9, 13), on(2001, 9, 14), on(2004, 6, 11), on(2007, 1, 2), on(2012, 10, 29), on(2012, 10, 30),
	on(2018, 12, 5), on(2025, 1, 9),
}

// halves are the half days that no rule gives.
var halves = []day{on(1997, 12, 26), on(1999, 12, 31), on(2003, 12, 26)}

// newYork is the calendar of the New York Stock Exchange, which Nasdaq shares. Its present half
// days and holidays are those since 1993; what is to come follows the rules of today.
func newYork() (*Calendar, error) {
	whole := []Session{{Open: hhmm(9, 30), Close: hhmm(16, 0), From: hhmm(9, 30), Until: hhmm(16, 10)}}
	half := []Session{{Open: hhmm(9, 30), Close: hhmm(13, 0), From: hhmm(9, 30), Until: hhmm(13, 10)}}
	return &Calendar{
		Name: "XNYS", first: on(1993, 1, 1), last: on(2100, 12, 31),
		trades: func(d day) bool { return !weekend(d) && !holidayXNYS(d) && !slices.Contains(closures, d) },
		sessions: func(d day) []Session {
			if halfXNYS(d) {
				return half
			}
			return whole
		},
	}, nil
}

func holidayXNYS(d day) bool {
	year, month, of := d.date()
	w := d.weekday()
	monday := func(n int) bool { return w == time.Monday && (of-1)/7 == n-1 }
	// observed is a fixed date, or the weekday beside its weekend.
	observed := func(date int) bool {
		return of == date || w == time.Friday && of == date-1 || w == time.Monday && of == date+1
	}
	switch month {
	case time.January: // a Saturday's New Year is not kept, because the year ends on the Friday
		return of == 1 || w == time.Monday && of == 2 || year >= 1998 && monday(3)
	case time.February:
		return monday(3)
	case time.March, time.April:
		return d == easter(year)-2
	case time.May:
		return w == time.Monday && of > 24
	case time.June:
		return year >= 2022 && observed(19)
	case time.July:
		return observed(4)
	case time.September:
		return monday(1)
	case time.November:
		return thanksgiving(d)
	case time.December:
		return observed(25)
	}
	return false
}

// thanksgiving is the fourth Thursday of November.
func thanksgiving(d day) bool {
	_, month, of := d.date()
	return month == time.November && d.weekday() == time.Thursday && (of-1)/7 == 3
}

func halfXNYS(d day) bool {
	year, month, of := d.date()
	w := d.weekday()
	switch {
	case thanksgiving(d - 1), slices.Contains(halves, d):
		return true
	case month == time.December && of == 24:
		return w >= time.Monday && w <= time.Thursday
	case month == time.July && of == 3 && year >= 1995:
		return w == time.Monday || w == time.Tuesday || w == time.Thursday || w == time.Wednesday && year >= 2013
	case month == time.July && of == 5: // the day after was the shorter one until 2012
		return w == time.Friday && year >= 1995 && year < 2013
	}
	return false
}

// easter is Easter Sunday of a year of the Gregorian calendar (Meeus, Jones and Butcher).
func easter(year int) day {
	a, b, c := year%19, year/100, year%100
	d, e := b/4, b%4
	g := (b - (b+8)/25 + 1) / 3
	h := (19*a + b - d - g + 15) % 30
	i, k := c/4, c%4
	l := (32 + 2*e + 2*i - h - k) % 7
	n := h + l - 7*((a+11*h+22*l)/451) + 114
	return on(year, time.Month(n/31), n%31+1)
}
