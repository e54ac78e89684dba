package performance_test

import (
	"math"
	"testing"
	"time"

	p "github.com/onnxrl/onnxrl/export/report/performance"
)

// calendar gives dates of days that are open, at the given minutes of the day.
func calendar(first, last string, open func(time.Time) bool, minutes ...int) []time.Time {
	d, _ := time.Parse(time.DateOnly, first)
	end, _ := time.Parse(time.DateOnly, last)
	var all []time.Time
	for ; !d.After(end); d = d.AddDate(0, 0, 1) {
		for _, m := range minutes {
			if at := d.Add(time.Duration(m) * time.Minute); open(at) {
				all = append(all, at)
			}
		}
	}
	return all
}

func weekday(t time.Time) bool { return t.Weekday() != time.Saturday && t.Weekday() != time.Sunday }

// american is closed on nine weekdays a year.
func american(t time.Time) bool {
	d := t.YearDay()
	return weekday(t) && !(t.Day() <= 7 && t.Weekday() == time.Monday && (t.Month() == 1 || t.Month() == 2 || t.Month() == 5 || t.Month() == 9)) && d%74 != 1
}

// chinese is closed in the first week of October and for a week in February, and on nine other
// weekdays.
func chinese(t time.Time) bool {
	d := t.Day()
	return weekday(t) && !(t.Month() == 10 && d <= 8) && !(t.Month() == 2 && d >= 10 && d <= 17) && !((t.Month() == 4 || t.Month() == 5 || t.Month() == 6) && d >= 2 && d <= 4)
}

func always(time.Time) bool { return true }

func every(from, to, step int) []int {
	var all []int
	for m := from; m <= to; m += step {
		all = append(all, m)
	}
	return all
}

func TestFrequency(t *testing.T) {
	sessions := append(every(9*60+45, 11*60+30, 15), every(13*60+15, 15*60, 15)...)
	var night []time.Time // 21:00 to 02:30 besides the day, as of Chinese futures
	for _, at := range calendar("2022-07-13", "2023-03-28", always, append(append(every(0, 150, 5), every(9*60, 15*60, 5)...), every(21*60, 24*60-5, 5)...)...) {
		evening := at.Add(-3 * time.Hour)
		if day := at.Hour() >= 9; day && weekday(at) || !day && weekday(evening) {
			night = append(night, at)
		}
	}
	forex := calendar("2023-01-01", "2023-03-31", func(t time.Time) bool {
		return t.Weekday() >= time.Monday && t.Weekday() <= time.Thursday || t.Weekday() == time.Sunday && t.Hour() >= 22 || t.Weekday() == time.Friday && t.Hour() < 22
	}, every(0, 24*60-60, 60)...)
	cases := 0
	for _, c := range []struct {
		name      string
		dates     []time.Time
		periods   float64
		perDay    float64
		tolerance float64
	}{
		{"weekdays, ten years", calendar("2010-01-04", "2019-12-31", american, 0), 252, 1, 0},
		{"weekdays, four months", calendar("2010-01-04", "2010-05-04", american, 0), 252, 1, 0},
		{"Chinese days, ten years", calendar("2010-01-04", "2019-12-31", chinese, 0), 243, 1, 0},
		{"Chinese days, four months", calendar("2010-01-04", "2010-05-04", chinese, 0), 243, 1, 0},
		{"24/7, days", calendar("2020-01-01", "2020-02-28", always, 0), 365, 1, 0},
		{"24/7, 15 minutes", calendar("2020-01-01", "2020-04-30", always, every(0, 24*60-15, 15)...), 365 * 96, 96, 0},
		{"24/7, ten hours of minutes", calendar("2021-04-17", "2021-04-18", func(t time.Time) bool { return t.Day() == 17 && t.Hour() >= 18 || t.Day() == 18 && t.Hour() < 4 }, every(0, 24*60-1, 1)...), 365 * 1440, 1440, 1e-6},
		{"Chinese 15 minutes, 15 months", calendar("2025-01-02", "2026-04-01", chinese, sessions...), 243 * 16, 16, 0},
		{"Chinese 15 minutes, four months", calendar("2025-09-02", "2025-12-31", chinese, sessions...), 243 * 16, 16, 0},
		{"weekdays, hours, some days short", calendar("2010-01-04", "2013-12-31", func(t time.Time) bool { return american(t) && (t.Day() != 24 || t.Hour() < 13) }, every(9*60+30, 15*60+30, 60)...), 252 * 7, 7, 0.02},
		{"Chinese minutes, six weeks", calendar("2018-12-03", "2019-01-18", weekday, append(every(9*60+31, 11*60+30, 1), every(13*60+1, 15*60, 1)...)...), 243 * 240, 240, 0},
		{"Japanese minutes, six weeks", calendar("2018-12-03", "2019-01-18", weekday, append(every(9*60+1, 11*60+30, 1), every(12*60+31, 15*60, 1)...)...), 252 * 300, 300, 0},
		{"two weeks, years apart", append(calendar("2013-10-04", "2013-10-11", weekday, every(9*60+30, 15*60+59, 1)...), calendar("2014-06-05", "2014-06-09", weekday, every(9*60+30, 15*60+59, 1)...)...), 252 * 390, 390, 0},
		{"weekdays with nights", night, 261 * (31 + 73 + 36), 31 + 73 + 36, 0.01},
		{"currencies, from Sunday evening", forex, 252 * 24, 24, 0.01},
		{"weeks", calendar("2010-01-04", "2012-12-31", func(t time.Time) bool { return t.Weekday() == time.Friday }, 0), 52, 0, 0},
		{"months", calendar("2010-01-04", "2012-12-31", func(t time.Time) bool { return t.Day() == 28 }, 0), 12, 0, 0},
		{"quarters", calendar("2010-01-04", "2014-12-31", func(t time.Time) bool { return t.Day() == 28 && t.Month()%3 == 0 }, 0), 4, 0, 0},
		{"years", calendar("2000-01-04", "2014-12-31", func(t time.Time) bool { return t.Day() == 28 && t.Month() == 12 }, 0), 1, 0, 0},
		{"a market of 200 days a year", calendar("2010-01-04", "2014-12-31", func(t time.Time) bool { return weekday(t) && t.Weekday() != time.Monday && t.YearDay()%26 != 0 }, 0), 201, 1, 0.01},
		{"every weekday", calendar("2001-01-04", "2002-02-10", weekday, 0), 261, 1, 0},
		{"every weekday of five months", calendar("2001-01-04", "2001-06-10", weekday, 0), 261, 1, 0},
		{"one date", calendar("2010-01-04", "2010-01-04", always, 0), 252, 1, 0},
	} {
		f := p.FrequencyOf(c.dates)
		if math.Abs(f.PeriodsPerYear/c.periods-1) > c.tolerance || math.Abs(f.PerDay-c.perDay) > c.tolerance*max(c.perDay, 1) || f.String() == "" {
			t.Errorf("%s: %+v, want %g returns a year and %g a day", c.name, f, c.periods, c.perDay)
		}
		cases++
	}
	if cases != 23 {
		t.Errorf("%d cases, expected 23", cases)
	}
}

// Bars of a quarter of an hour and the days that they compound to have the same daily risk and the
// same CAGR, and volatilities and Sharpe ratios of a year that agree up to noise.
func TestIntradayIsMeasuredInDays(t *testing.T) {
	dates := calendar("2025-09-02", "2025-12-31", chinese, append(every(9*60+45, 11*60+30, 15), every(13*60+15, 15*60, 15)...)...)
	r := autoregressive(len(dates)-1, 0, 7)
	for i := range r {
		r[i] = r[i]/4 - 0.00002
	}
	value := p.Growth(r)
	var days []time.Time
	var atClose []float64
	for _, end := range p.DayEnds(dates) {
		days, atClose = append(days, dates[end]), append(atClose, value[end])
	}
	bars, err := p.Measure(p.Input{Dates: dates, Value: value, PeriodsPerYear: p.FrequencyOf(dates).PeriodsPerYear})
	if err != nil {
		t.Fatal(err)
	}
	// The start is a day of its own, so that the first day has a return in both records.
	daily, err := p.Measure(p.Input{Dates: append([]time.Time{dates[0]}, days...), Value: append([]float64{value[0]}, atClose...), PeriodsPerYear: 243})
	if err != nil {
		t.Fatal(err)
	}
	equal := 0
	for _, key := range []string{"total_return", "cagr", "best_day", "worst_day", "expected_daily", "volatility_daily", "var_95", "cvar_95", "var_95_normal", "cvar_95_normal", "skew", "kurtosis", "tail_ratio", "win_rate", "payoff", "kelly", "longest_losses", "best_month"} {
		if a, b := bars.Get(key), daily.Get(key); !(math.Abs(a-b) <= 1e-12*max(1, math.Abs(b))) {
			t.Errorf("%s = %g from bars, %g from days", key, a, b)
		}
		equal++
	}
	if equal != 18 {
		t.Errorf("%d metrics compared, expected 18", equal)
	}
	for _, key := range []string{"volatility", "sharpe_daily", "sharpe"} {
		if q := bars.Get(key) / daily.Get(key); !(q > 0.8 && q < 1.25) {
			t.Errorf("%s = %g from bars, %g from days", key, bars.Get(key), daily.Get(key))
		}
	}
	total, years := bars.Get("total_return"), p.Years(dates)
	if want := math.Pow(1+total, 1/years) - 1; math.Abs(bars.Get("cagr")-want) > 1e-12 || years > 0.34 {
		t.Errorf("total return %g in %g years, CAGR %g, want %g", total, years, bars.Get("cagr"), want)
	}
}
