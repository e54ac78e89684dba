package performance

import (
	"math"
	"time"
)

// Span is the compound return of a part of the calendar. A part at either end of a record may be
// incomplete.
type Span struct {
	Year, Number int // Number counts the parts of a year from 1
	Return       float64
}

// Spans compounds the returns of a record by parts of the calendar, months per part: 1, 3 or 12. A
// return belongs to the date of the value it leads to. It has len(value) dates.
func Spans(dates []time.Time, value []float64, months int) []Span {
	var all []Span
	first := 0
	for t := 1; t < len(dates); t++ {
		year, number := dates[t].Year(), (int(dates[t].Month())-1)/months+1
		if len(all) == 0 || all[len(all)-1].Year != year || all[len(all)-1].Number != number {
			all, first = append(all, Span{Year: year, Number: number}), t-1
		}
		if value[first] > 0 {
			all[len(all)-1].Return = value[t]/value[first] - 1
		}
	}
	return all
}

func spanReturns(s []Span) []float64 {
	r := make([]float64, len(s))
	for i := range s {
		r[i] = s[i].Return
	}
	return r
}

// Since is the return from the last value dated before a time, and NaN where the record starts at
// it or later.
func Since(dates []time.Time, value []float64, from time.Time) float64 {
	at := -1
	for t, d := range dates {
		if !d.Before(from) {
			break
		}
		at = t
	}
	if at < 0 || value[at] == 0 {
		return math.NaN()
	}
	return value[len(value)-1]/value[at] - 1
}
