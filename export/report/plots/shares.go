package plots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/plot/vg"
)

// Layer is a named part of a whole over time.
type Layer struct {
	Name string
	Rest bool // what is left, such as cash: grey and at the bottom
	Y    []float64
}

// columns is the number of stretches of time that a stack of shares shows; more values are
// averaged.
const columns = 240

// Weights draws parts of a whole over dates, stacked, each a share in [0, 1]. Beyond 17 parts the
// smallest are drawn as one.
func Weights(name, alt string, days []time.Time, all []Layer) (*Figure, error) {
	if len(days) < 2 || len(all) == 0 {
		return nil, fmt.Errorf("draw %s: expected two dates and a layer", name)
	}
	for _, l := range all {
		if len(l.Y) != len(days) {
			return nil, fmt.Errorf("draw %s: layer %q has %d values for %d dates", name, l.Name, len(l.Y), len(days))
		}
	}
	stack := gather(all, layers-1)
	n := min(columns, len(days))
	x := make([]float64, n)
	sums := make([][]float64, len(stack)) // of layer i and all below it
	for i := range sums {
		sums[i] = make([]float64, n)
	}
	for k := range n {
		lo, hi := k*len(days)/n, (k+1)*len(days)/n
		x[k] = (seconds(days[lo]) + seconds(days[hi-1])) / 2
		below := 0.0
		for i, l := range stack {
			var sum float64
			for _, v := range l.Y[lo:hi] {
				sum += v
			}
			below += sum / float64(hi-lo)
			sums[i][k] = below
		}
	}
	x[0], x[n-1] = seconds(days[0]), seconds(days[len(days)-1])
	return &Figure{Name: name, Alt: alt, Width: width, Height: height, draw: func(c *canvas) {
		var names []string
		for _, l := range stack {
			names = append(names, l.Name)
		}
		f := frame{x0: tickRoom + 4, y0: 28, y1: height - 30, x1: width - c.room(names) - 12}
		f.x = scale{lo: x[0], hi: x[n-1], ticks: dates(days[0], days[len(days)-1], int((f.x1-f.x0)/58))}
		f.y.lo, f.y.hi, f.y.ticks = linear(0, 1, 5, percentage)
		f.axes(c, "Share of the portfolio's value", "")
		// From the top down, so that each part covers what lies below the one above it.
		gap := min(small+4, (f.y1-f.y0)/vg.Length(len(stack)))
		for i := len(stack) - 1; i >= 0; i-- {
			r := c.layer(stack, i)
			points := []vg.Point{{X: f.x0, Y: f.y0}}
			for k := range x {
				points = append(points, vg.Point{X: f.x.at(x[k]), Y: min(f.y.at(sums[i][k]), f.y1)})
			}
			c.fill(r, 1, append(points, vg.Point{X: f.x1, Y: f.y0}))
			y := f.y0 + gap*(vg.Length(i)+0.5)
			c.box(r, 1, f.x1+14, y-4, f.x1+22, y+4)
			c.text(ink, leftMiddle, f.x1+27, y, short(stack[i].Name))
		}
		c.segment(pen{role: axis, width: 1}, f.x0, f.y0, f.x1, f.y0)
	}}, nil
}

// layer is the colour of a layer.
func (c *canvas) layer(stack []Layer, i int) role {
	if stack[i].Rest {
		return rest
	}
	n := 0
	for _, l := range stack[:i] {
		if !l.Rest {
			n++
		}
	}
	return layer0 + role(n%layers)
}

// gather puts what is left first and, beyond limit other layers, the smallest together into one.
func gather(all []Layer, limit int) []Layer {
	var bottom, others []Layer
	for _, l := range all {
		if l.Rest {
			bottom = append(bottom, l)
		} else {
			others = append(others, l)
		}
	}
	if len(others) <= limit {
		return append(bottom, others...)
	}
	size := func(l Layer) (sum float64) {
		for _, v := range l.Y {
			sum += v
		}
		return sum
	}
	bySize := slices.Clone(others)
	slices.SortStableFunc(bySize, func(a, b Layer) int { return -cmp.Compare(size(a), size(b)) })
	small := Layer{Name: fmt.Sprintf("%d others", len(others)-limit+1), Y: make([]float64, len(all[0].Y))}
	for _, l := range bySize[limit-1:] {
		for t, v := range l.Y {
			small.Y[t] += v
		}
	}
	return append(append(bottom, bySize[:limit-1]...), small)
}

// Actions draws how often each action was taken, by day, month, quarter or year. Counts holds a row
// for each date and a column for each name.
func Actions(name, alt string, days []time.Time, names []string, counts [][]int) (*Figure, error) {
	if len(days) == 0 || len(counts) != len(days) || len(names) == 0 {
		return nil, fmt.Errorf("draw %s: %d rows of counts for %d dates", name, len(counts), len(days))
	}
	months, span := 0, daysBetween(days[0], days[len(days)-1])
	if span > 60 { // else by day, which is 0
		for _, months = range []int{1, 3, 12} {
			if span/30.4/float64(months) <= 60 {
				break
			}
		}
	}
	type bin struct {
		from, to float64
		counts   []float64
		total    float64
	}
	var bins []bin
	start := func(t time.Time) time.Time {
		if months == 0 {
			return time.Date(t.Year(), t.Month(), t.Day(), 0, 0, 0, 0, t.Location())
		}
		return time.Date(t.Year(), (t.Month()-1)/time.Month(months)*time.Month(months)+1, 1, 0, 0, 0, 0, t.Location())
	}
	for i, d := range days {
		if len(counts[i]) != len(names) {
			return nil, fmt.Errorf("draw %s: %d counts on %s for %d actions", name, len(counts[i]), d.Format(time.DateOnly), len(names))
		}
		if from := start(d); i == 0 || !from.Equal(start(days[i-1])) {
			to := from.AddDate(0, months, 0)
			if months == 0 {
				to = from.AddDate(0, 0, 1)
			}
			bins = append(bins, bin{from: seconds(from), to: seconds(to), counts: make([]float64, len(names))})
		}
		b := &bins[len(bins)-1]
		for a, n := range counts[i] {
			b.counts[a] += float64(n)
			b.total += float64(n)
		}
	}
	part := map[int]string{0: "day", 1: "month", 3: "quarter", 12: "year"}[months]
	return &Figure{Name: name, Alt: alt, Width: width, Height: 270, draw: func(c *canvas) {
		f := frame{x0: tickRoom + 4, y0: 28, y1: 270 - 30, x1: width - c.room(names) - 12}
		f.x = scale{lo: bins[0].from, hi: bins[len(bins)-1].to}
		f.x.ticks = dates(start(days[0]), days[len(days)-1], int((f.x1-f.x0)/58))
		f.x.ticks = slices.DeleteFunc(f.x.ticks, func(t tick) bool { return t.at < f.x.lo })
		f.y.lo, f.y.hi, f.y.ticks = linear(0, 1, 5, percentage)
		f.axes(c, "Share of decisions by "+part, "")
		for _, b := range bins {
			below := 0.0
			if b.total == 0 {
				continue
			}
			x0, x1 := f.x.at(b.from)+0.75, f.x.at(b.to)-0.75
			for a, n := range b.counts {
				c.box(actionRole(names, a), 0.9, x0, f.y.at(below/b.total), x1, f.y.at((below+n)/b.total))
				below += n
			}
		}
		for a, n := range names {
			y := f.y0 + (f.y1-f.y0)*(vg.Length(a)+0.5)/vg.Length(len(names))
			c.box(actionRole(names, a), 0.9, f.x1+14, y-4, f.x1+22, y+4)
			c.text(ink, leftMiddle, f.x1+27, y, short(n))
		}
		c.segment(pen{role: axis, width: 1}, f.x0, f.y0, f.x1, f.y0)
	}}, nil
}

// actionRole gives buying, selling and holding their colours, and other actions those of layers.
func actionRole(names []string, a int) role {
	switch strings.ToLower(names[a]) {
	case "buy":
		return gain
	case "sell":
		return loss
	case "hold":
		return rest
	}
	return layer0 + role(a%layers)
}
