package performance

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Frequency is how many returns a year has, by the dates of a record.
type Frequency struct {
	PeriodsPerYear float64
	// PerDay are the returns of a trading day and DaysPerYear the trading days of a year. Both are
	// 0 where bars are longer than a day.
	PerDay, DaysPerYear float64
}

// Trading days of a year: by convention where weeks have five days, in mainland China, which closes
// for a whole week twice a year, and in markets that never close.
const (
	weekdayYear = 252
	chineseYear = 243
	wholeYear   = 365
)

// daysOfYear is the mean length of a year of the calendar.
const daysOfYear = 365.25

// Hours are those from one time to a later one. A time.Duration ends after 292 years.
func Hours(from, to time.Time) float64 {
	seconds := to.Unix() - from.Unix()
	return float64(seconds/3600) + (float64(seconds%3600)*1e9+float64(to.Nanosecond()-from.Nanosecond()))/3600e9
}

// Years is the time between the first and the last date in years of the calendar.
func Years(dates []time.Time) float64 {
	if len(dates) < 2 {
		return 0
	}
	return Hours(dates[0], dates[len(dates)-1]) / 24 / daysOfYear
}

// FrequencyOf recognises how many returns a year has from dates, which ascend; the more of them,
// the better: those of all bars rather than of one split. Bars of 4 days and more are counted by
// their length (52 weeks, 12 months). Others are the returns of a trading day, in the mean over
// whole days, times the trading days of a year: 365 where weekends are traded, else those seen. A
// record shorter than a year, or within 4 days of the convention, has the convention: 252, or 243
// where the market closes for a week at least once a year or has the lunch of the Chinese sessions,
// 11:30 to 13:00. One that has every weekday of some months has 261.
func FrequencyOf(dates []time.Time) Frequency {
	if len(dates) < 2 {
		return Frequency{PeriodsPerYear: weekdayYear, PerDay: 1, DaysPerYear: weekdayYear}
	}
	steps := make([]float64, len(dates)-1) // days
	for i := range steps {
		steps[i] = Hours(dates[i], dates[i+1]) / 24
	}
	slices.Sort(steps)
	step := steps[len(steps)/2]
	if step > 3.5 {
		return Frequency{PeriodsPerYear: longBars(step)}
	}
	ends := DayEnds(dates)
	f := Frequency{DaysPerYear: daysPerYear(dates, ends), PerDay: 1}
	if len(ends)*3 < len(dates)*2 {
		f.PerDay = barsPerDay(ends, step, f.DaysPerYear == wholeYear)
	}
	f.PeriodsPerYear = f.PerDay * f.DaysPerYear
	return f
}

// longBars is how many bars of some days a year has.
func longBars(days float64) float64 {
	for _, c := range []struct{ low, high, perYear float64 }{{6, 8, 52}, {13, 15, 26}, {27, 32, 12}, {88, 93, 4}, {360, 370, 1}} {
		if days >= c.low && days <= c.high {
			return c.perYear
		}
	}
	return daysOfYear / days
}

// barsPerDay is the mean over the days between the first and the last, which may be incomplete.
func barsPerDay(ends []int, step float64, always bool) float64 {
	if n := len(ends); n > 2 {
		return float64(ends[n-2]-ends[0]) / float64(n-2)
	}
	if always {
		return 1 / step
	}
	most, from := 0, -1
	for _, end := range ends {
		most, from = max(most, end-from), end
	}
	return float64(most)
}

func daysPerYear(dates []time.Time, ends []int) float64 {
	var weekend [7]int
	closures := 0
	for i, end := range ends {
		weekend[dates[end].Weekday()]++
		if i > 0 {
			if gap := days(dates[ends[i-1]], dates[end]); gap >= 8 && gap <= 20 {
				closures++
			}
		}
	}
	saturdays, sundays := weekend[time.Saturday], weekend[time.Sunday]
	if saturdays > 0 && sundays > 0 && (saturdays+sundays)*5 >= len(ends) {
		return wholeYear
	}
	usual, years := float64(weekdayYear), Years(dates)
	if closures > 0 && closures >= int(years) || chineseLunch(dates) {
		usual = chineseYear
	}
	possible := weekdays(dates[0], dates[len(dates)-1])
	seen := math.Round(daysOfYear * 5 / 7 * float64(len(ends)) / float64(possible))
	if (years >= 1 || len(ends) == possible && possible > 70) && math.Abs(seen-usual) > 4 {
		return seen
	}
	return usual
}

// chineseLunch reports whether there are bars until 11:30 and from 13:00 on, none between them, and
// none that begin between 15:00 and the night session.
func chineseLunch(dates []time.Time) bool {
	before, after := false, false
	for _, d := range dates {
		switch m := d.Hour()*60 + d.Minute(); {
		case m > 11*60+30 && m < 13*60 || m > 15*60 && m < 21*60:
			return false
		case m > 11*60 && m <= 11*60+30:
			before = true
		case m >= 13*60 && m <= 13*60+30:
			after = true
		}
	}
	return before && after
}

// weekdays counts the days from Monday to Friday between two times, both included.
func weekdays(from, to time.Time) int {
	n := 0
	for d := calendarDay(from); !d.After(calendarDay(to)); d = d.AddDate(0, 0, 1) {
		if w := d.Weekday(); w != time.Saturday && w != time.Sunday {
			n++
		}
	}
	return n
}

// DayEnds gives the positions of the last bar of every trading day. A day is one of the calendar of
// the dates' zone; in a market without weekends, what a night session has after Friday's midnight
// belongs to Friday, and what opens on Sunday evening to Monday.
func DayEnds(dates []time.Time) []int {
	all := lastOfEach(dates, calendarDay)
	counts := make([]int, len(all))
	for i, end := range all {
		if counts[i] = end + 1; i > 0 {
			counts[i] -= all[i-1] + 1
		}
	}
	few := slices.Sorted(slices.Values(counts))[len(counts)/2] / 2
	thin := map[time.Time]bool{}
	for i, end := range all {
		if counts[i] < few {
			thin[calendarDay(dates[end])] = true
		}
	}
	return lastOfEach(dates, func(t time.Time) time.Time {
		day := calendarDay(t)
		switch {
		case thin[day] && day.Weekday() == time.Saturday:
			return day.AddDate(0, 0, -1)
		case thin[day] && day.Weekday() == time.Sunday:
			return day.AddDate(0, 0, 1)
		}
		return day
	})
}

func calendarDay(t time.Time) time.Time {
	y, m, d := t.Date()
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

func lastOfEach(dates []time.Time, day func(time.Time) time.Time) []int {
	var ends []int
	for i := range dates {
		if i+1 == len(dates) || !day(dates[i+1]).Equal(day(dates[i])) {
			ends = append(ends, i)
		}
	}
	return ends
}

// DailyReturns gives the returns of trading days, from the values at their ends, where bars are
// shorter than a day, else the returns between the values. Where the first date is not the last of
// its day, the rest of that day is a return, too.
func DailyReturns(dates []time.Time, value []float64) []float64 {
	ends := DayEnds(dates)
	if len(ends)*3 >= len(dates)*2 {
		return Returns(value)
	}
	daily := []float64{value[0]}
	for _, end := range ends {
		if end > 0 {
			daily = append(daily, value[end])
		}
	}
	return Returns(daily)
}

// String says what the number of returns is made of.
func (f Frequency) String() string {
	switch {
	case f.DaysPerYear == 0:
		return fmt.Sprintf("bars of %.4g days", daysOfYear/f.PeriodsPerYear)
	case f.PerDay == 1:
		return fmt.Sprintf("%.0f trading days a year", f.DaysPerYear)
	}
	return fmt.Sprintf("%.5g bars a day on %.0f trading days a year", f.PerDay, f.DaysPerYear)
}
