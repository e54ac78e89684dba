package plots

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
)

// Dot is one line of a dot plot: a name with a value, a range around it, and the values that it is
// the mean of.
type Dot struct {
	Name string
	// Kind is Agent for a value of interest and Benchmark for the one that the others are compared
	// with.
	Kind Kind
	// Value, and Low to High around it; NaN where there is none.
	Value, Low, High float64
	// Each are drawn small; NaN is left out.
	Each []float64
	// Signed colours the range as a gain where it does not reach below 0, as a loss where it does
	// not reach above, and as neither where 0 is inside of it.
	Signed bool
}

// Dots draws values one below the other over a common horizontal axis in the unit u, and marks on
// it; unit is what stands below the axis.
func Dots(name, alt, title, unit string, u Unit, all []Dot, marks []Mark) (*Figure, error) {
	lo, hi := math.Inf(1), math.Inf(-1)
	see := func(list ...float64) {
		for _, v := range list {
			if isFinite(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	for _, d := range all {
		see(d.Value, d.Low, d.High)
		see(d.Each...)
	}
	for _, m := range marks {
		see(m.At)
	}
	switch {
	case len(all) == 0:
		return nil, fmt.Errorf("draw %s: expected values", name)
	case lo > hi:
		lo, hi = 0, 1
	}
	const line, below, above = 26, 46, 44
	height := vg.Length(below + above + line*len(all))
	return &Figure{Name: name, Alt: alt, Width: width, Height: height, draw: func(c *canvas) {
		names := vg.Length(0)
		for _, d := range all {
			names = max(names, c.width(short(d.Name), true))
		}
		f := frame{x0: names + 20, x1: width - 24, y0: below, y1: height - above}
		f.x.lo, f.x.hi, f.x.ticks = linear(lo, hi, 8, u.format())
		f.y.lo, f.y.hi = 0, 1
		f.axes(c, "", unit)
		c.bold(ink, leftBottom, 6, f.y1+24, title)
		for _, t := range f.x.ticks {
			x := f.x.at(t.at)
			c.segment(pen{role: grid, width: 0.75}, x, f.y0, x, f.y1)
		}
		for k, m := range marks {
			if !isFinite(m.At) {
				continue
			}
			x := f.x.at(m.At)
			c.segment(pen{role: line0, width: 1.2, dashes: []vg.Length{3, 2}}, x, f.y0, x, f.y1+3)
			at, place := x, centreMiddle
			if half := c.width(m.Name, false) / 2; x+half > width-6 {
				at, place = width-6, rightMiddle
			} else if x-half < 6 {
				at, place = 6, leftMiddle
			}
			c.text(line0, place, at, f.y1+11+vg.Length(k)*(small+3), m.Name)
		}
		for i, d := range all {
			d.drawn(c, &f, f.y1-line*(vg.Length(i)+0.5))
		}
	}}, nil
}

// drawn draws a line of the plot at a height.
func (d *Dot) drawn(c *canvas, f *frame, y vg.Length) {
	r := agent
	switch {
	case d.Kind == Benchmark:
		r = benchmark
	case d.Signed && d.Low >= 0 && d.High > 0:
		r = gain
	case d.Signed && d.High <= 0 && d.Low < 0:
		r = loss
	case d.Kind != Agent:
		r = muted
	}
	if d.Kind == Benchmark {
		c.bold(ink, rightMiddle, f.x0-10, y, short(d.Name))
	} else {
		c.text(ink, rightMiddle, f.x0-10, y, short(d.Name))
	}
	if isFinite(d.Low) && isFinite(d.High) {
		c.segment(pen{role: r, width: 2}, f.x.at(d.Low), y, f.x.at(d.High), y)
	}
	for _, v := range d.Each {
		if isFinite(v) {
			x := f.x.at(v)
			c.segment(pen{role: muted, width: 1.5}, x, y-5, x, y+5)
		}
	}
	if isFinite(d.Value) {
		c.dot(r, f.x.at(d.Value), y, 4)
	}
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
