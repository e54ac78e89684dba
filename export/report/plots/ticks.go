package plots

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// tick is a place on an axis with its label; a tick without one has a shorter mark and no grid
// line.
type tick struct {
	at    float64
	label string
}

// step is the smallest of 1, 2, 2.5 and 5 times a power of ten that covers a span in at most n
// parts.
func step(span float64, n int) float64 {
	unit := math.Pow(10, math.Floor(math.Log10(span/float64(n))))
	for _, m := range []float64{1, 2, 2.5, 5, 10} {
		if s := m * unit; span/s <= float64(n)+1e-9 {
			return s
		}
	}
	return 10 * unit
}

// linear widens a range to whole steps and puts a tick on each. format writes the label with enough
// decimals for the step.
func linear(lo, hi float64, n int, format func(v, step float64) string) (float64, float64, []tick) {
	if !(hi-lo > 1e-12*math.Max(math.Abs(lo), math.Abs(hi))) {
		pad := math.Max(math.Abs(lo)*0.05, 0.01)
		lo, hi = lo-pad, hi+pad
	}
	s := step(hi-lo, n)
	first, last := math.Floor(lo/s+1e-9), math.Ceil(hi/s-1e-9)
	var ticks []tick
	for k := first; k <= last; k++ {
		ticks = append(ticks, tick{k * s, format(k*s, s)})
	}
	return first * s, last * s, ticks
}

// logarithmic places ticks between two positive ends: on whole steps where the ends are close, else
// on 1, 2 and 5 times powers of ten, or on powers of ten alone.
func logarithmic(lo, hi float64, n int, format func(v, step float64) string) (float64, float64, []tick) {
	if hi/lo < 5 {
		a, b, ticks := linear(lo, hi, n, format)
		if a > 0 {
			return a, b, ticks
		}
		return lo, b, ticks[1:]
	}
	var ticks []tick
	decades := math.Log10(hi / lo)
	every, parts := 1.0, []float64{1, 2, 5}
	if decades > 2 {
		every, parts = max(1, math.Ceil(decades/float64(n))), parts[:1]
	}
	for e := math.Floor(math.Log10(lo)/every) * every; e <= math.Ceil(math.Log10(hi)/every)*every; e += every {
		for _, m := range parts {
			v := m * math.Pow(10, e)
			label := format(v, math.Pow(10, e))
			if e < -4 || e > 6 {
				label = strconv.FormatFloat(v, 'e', 0, 64)
			}
			ticks = append(ticks, tick{v, label})
		}
	}
	first, last := 0, len(ticks)-1
	for first < last && ticks[first+1].at <= lo {
		first++
	}
	for last > first && ticks[last-1].at >= hi {
		last--
	}
	ticks = ticks[first : last+1]
	return ticks[0].at, ticks[len(ticks)-1].at, ticks
}

// decimals is the number that a step needs.
func decimals(step float64) int {
	for d := range 6 {
		if x := step * math.Pow(10, float64(d)); math.Abs(x-math.Round(x)) < 1e-6 {
			return d
		}
	}
	return 6
}

// plain writes a number, and percentage a fraction.
func plain(v, step float64) string { return signed(strconv.FormatFloat(v, 'f', decimals(step), 64)) }

func percentage(v, step float64) string {
	return signed(strconv.FormatFloat(100*v, 'f', decimals(100*step), 64)) + "%"
}

// signed has a proper minus and no −0.
func signed(s string) string {
	if rest, negative := strings.CutPrefix(s, "-"); negative {
		if strings.Trim(rest, "0.") == "" {
			return rest
		}
		return "−" + rest
	}
	return s
}

// daysBetween are the days from one time to a later one. A time.Duration ends after 292 years.
func daysBetween(from, to time.Time) float64 { return float64(to.Unix()-from.Unix()) / 86400 }

// dates places ticks on the calendar so that about n have labels. Values are seconds since 1970.
func dates(first, last time.Time, n int) []tick {
	loc := first.Location()
	days := daysBetween(first, last)
	var ticks []tick
	add := func(t time.Time, label string) {
		// A month whose first days have no data begins where they do.
		if near := last.Sub(first) / 50; t.Before(first) && first.Sub(t) <= near {
			t = first
		}
		if !t.Before(first) && !t.After(last) {
			ticks = append(ticks, tick{seconds(t), label})
		}
	}
	if days <= 60 {
		every := max(1, int(math.Ceil(days/float64(n))))
		y, m, d := first.Date()
		for t, k := time.Date(y, m, d, 0, 0, 0, 0, loc), 0; !t.After(last); t, k = t.AddDate(0, 0, every), k+1 {
			add(t, t.Format("2 Jan"))
		}
		return ticks
	}
	months := 1
	for _, months = range []int{1, 2, 3, 6, 12, 24, 60, 120, 240} {
		if days/30.4/float64(months) <= float64(n) {
			break
		}
	}
	for y := first.Year() / 20 * 20; y <= last.Year(); {
		for m := 0; m < 12; m += months {
			label := strconv.Itoa(y)
			if m > 0 {
				label = time.Month(m + 1).String()[:3]
			}
			add(time.Date(y, time.Month(m+1), 1, 0, 0, 0, 0, loc), label)
		}
		y += max(1, months/12)
	}
	// The year of the first label must be known.
	if len(ticks) > 0 && len(ticks[0].label) == 3 {
		t := time.Unix(int64(ticks[0].at), 0).In(loc)
		ticks[0].label = fmt.Sprintf("%s %d", ticks[0].label, t.Year())
	}
	return ticks
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }
