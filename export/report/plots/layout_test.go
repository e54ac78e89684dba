package plots

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

func labelsOf(ticks []tick) string {
	var all []string
	for _, t := range ticks {
		all = append(all, t.label)
	}
	return strings.Join(all, " ")
}

func TestTicks(t *testing.T) {
	cases := 0
	check := func(name, got, want string) {
		t.Helper()
		if cases++; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	for _, c := range []struct {
		lo, hi float64
		n      int
		format func(v, step float64) string
		want   string
	}{
		{0.31, 2.62, 7, plain, "0.0 0.5 1.0 1.5 2.0 2.5 3.0"},
		{-0.158, 0, 7, percentage, "−17.5% −15.0% −12.5% −10.0% −7.5% −5.0% −2.5% 0.0%"},
		{-1, 2.4, 4, plain, "−1 0 1 2 3"},
		{0, 0, 5, plain, "−0.010 −0.005 0.000 0.005 0.010"},
		{12345, 67890, 5, plain, "0 20000 40000 60000 80000"},
	} {
		_, _, ticks := linear(c.lo, c.hi, c.n, c.format)
		check("linear", labelsOf(ticks), c.want)
	}
	for _, c := range []struct {
		lo, hi float64
		want   string
	}{{0.8, 1.5, "0.8 0.9 1.0 1.1 1.2 1.3 1.4 1.5"}, {0.3, 7, "0.2 0.5 1 2 5 10"}, {0.002, 300, "0.001 0.01 0.1 1 10 100 1000"}, {1e-9, 2, "1e-10 1e-08 1e-06 0.0001 0.01 1 100"}} {
		_, _, ticks := logarithmic(c.lo, c.hi, 7, plain)
		check("logarithmic", labelsOf(ticks), c.want)
	}
	for _, c := range []struct {
		first, last string
		n           int
		want        string
	}{
		{"2019-01-02", "2019-01-20", 10, "2 Jan 4 Jan 6 Jan 8 Jan 10 Jan 12 Jan 14 Jan 16 Jan 18 Jan 20 Jan"},
		{"2019-01-02", "2019-06-20", 10, "2019 Feb Mar Apr May Jun"},
		{"2019-02-20", "2021-11-17", 12, "Apr 2019 Jul Oct 2020 Apr Jul Oct 2021 Apr Jul Oct"},
		{"2000-01-03", "2021-12-31", 12, "2000 2002 2004 2006 2008 2010 2012 2014 2016 2018 2020"},
		{"1960-01-03", "2021-12-31", 12, "1960 1970 1980 1990 2000 2010 2020"},
	} {
		first, _ := time.Parse(time.DateOnly, c.first)
		last, _ := time.Parse(time.DateOnly, c.last)
		check("dates", labelsOf(dates(first, last, c.n)), c.want)
	}
	if cases != 14 {
		t.Errorf("%d cases", cases)
	}
}

// Scales hold what they are made for, with ascending ticks.
func TestScalesHoldTheirValues(t *testing.T) {
	s := rng.New(3).Stream()
	for range 2000 {
		a, b := s.Normal()*math.Exp(8*s.Normal()), s.Normal()*math.Exp(8*s.Normal())
		lo, hi := min(a, b), max(a, b)
		from, to, ticks := linear(lo, hi, 2+s.IntN(8), plain)
		// An end that lies beyond a tick by a millionth of a step is drawn at it.
		slack := 1e-6 * (ticks[1].at - ticks[0].at)
		if !(from <= lo+slack && hi-slack <= to) || len(ticks) < 2 || len(ticks) > 12 || !ascending(ticks) {
			t.Fatalf("%g..%g: %g..%g with %d ticks", lo, hi, from, to, len(ticks))
		}
		lo, hi = math.Abs(a)+1e-9, math.Abs(a)+1e-9+math.Abs(b)
		from, to, ticks = logarithmic(lo, hi, 7, plain)
		if !(from > 0 && from <= lo*(1+1e-6) && hi <= to*(1+1e-6)) || len(ticks) < 1 || len(ticks) > 14 || !ascending(ticks) {
			t.Fatalf("log %g..%g: %g..%g with %d ticks", lo, hi, from, to, len(ticks))
		}
	}
}

func ascending(ticks []tick) bool {
	return slices.IsSortedFunc(ticks, func(a, b tick) int {
		if a.at < b.at {
			return -1
		}
		return 1
	})
}

// Labels keep their order and their distance, stay within the panel while there is room, and do not
// move without need.
func TestLabelsAreApart(t *testing.T) {
	s := rng.New(4).Stream()
	const gap, bottom, top = 14, 30, 310
	moved := 0
	for range 2000 {
		all := make([]label, 1+s.IntN(20))
		for i := range all {
			all[i].y = bottom + (top-bottom)*vg.Length(s.Float64())
		}
		slices.SortFunc(all, func(a, b label) int {
			if a.y < b.y {
				return -1
			}
			return 1
		})
		y := apart(all, gap, bottom, top)
		free := true
		for i := range y {
			if i > 0 {
				if y[i]-y[i-1] < gap-1e-9 {
					t.Fatalf("labels at %v", y)
				}
				free = free && all[i].y-all[i-1].y >= gap
			}
			if y[i] < bottom-1e-9 || y[i] > top+1e-9 {
				t.Fatalf("%d labels at %v are outside of the panel", len(y), y)
			}
		}
		for i := range y {
			if free && y[i] != all[i].y {
				t.Fatalf("label %d moved from %g to %g without need", i, all[i].y, y[i])
			}
		}
		if !free {
			moved++
		}
	}
	if moved < 500 {
		t.Errorf("only %d cases had labels too close", moved)
	}
}

// Thinning keeps the ends and the extremes of a line.
func TestThin(t *testing.T) {
	for _, n := range []int{2, 100, 5000, 100000} {
		y := walk(9, n)
		points := make([]vg.Point, n)
		for i := range points {
			points[i] = vg.Point{X: 600 * vg.Length(i) / vg.Length(n), Y: vg.Length(y[i])}
		}
		kept := thin(points)
		byY := func(a, b vg.Point) int {
			if a.Y < b.Y {
				return -1
			} else if a.Y > b.Y {
				return 1
			}
			return 0
		}
		if kept[0] != points[0] || kept[len(kept)-1] != points[n-1] || slices.MinFunc(kept, byY).Y != slices.MinFunc(points, byY).Y || slices.MaxFunc(kept, byY).Y != slices.MaxFunc(points, byY).Y {
			t.Errorf("%d points: an end or an extreme is gone", n)
		}
		if len(kept) > 4900 || n <= 100 && len(kept) != n {
			t.Errorf("%d of %d points kept", len(kept), n)
		}
	}
}
