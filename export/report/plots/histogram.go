package plots

import (
	"errors"
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
)

// Mark is a named place on the horizontal axis.
type Mark struct {
	Name string
	At   float64
}

// Histogram draws how often values fall into equal bins, as filled steps for the first line and
// outlines for the others, and marks; u is how values are labelled. Values outside of lo..hi are
// counted in the outer bins.
func Histogram(name, alt, title, unit string, u Unit, all []Line, lo, hi float64, marks []Mark) (*Figure, error) {
	const bins = 60
	if len(all) == 0 || !(hi > lo) {
		return nil, errors.New("draw " + name + ": expected a line and a range")
	}
	shares := make([][]float64, len(all))
	top := 0.0
	for i, l := range all {
		if len(l.Y) == 0 {
			return nil, fmt.Errorf("draw %s: line %q has no values", name, l.Name)
		}
		shares[i] = make([]float64, bins)
		for _, v := range l.Y {
			if math.IsNaN(v) {
				continue
			}
			k := min(max(int(math.Floor((v-lo)/(hi-lo)*bins)), 0), bins-1)
			shares[i][k] += 1 / float64(len(l.Y))
		}
		for _, s := range shares[i] {
			top = max(top, s)
		}
	}
	pens := pensOf(all)
	return &Figure{Name: name, Alt: alt, Width: width, Height: 290, draw: func(c *canvas) {
		f := frame{x0: tickRoom + 4, y0: 46, y1: 290 - 30, x1: width - c.room(named(all)) - 6}
		f.x.lo, f.x.hi = lo, hi
		_, _, ticks := linear(lo, hi, 10, u.format())
		for _, t := range ticks {
			if t.at >= lo && t.at <= hi {
				f.x.ticks = append(f.x.ticks, t)
			}
		}
		f.y.lo, f.y.hi, f.y.ticks = linear(0, top, 5, percentage)
		f.axes(c, title, unit)
		for i := len(all) - 1; i >= 0; i-- {
			var steps []vg.Point
			for k, s := range shares[i] {
				x0, x1 := f.x.at(lo+(hi-lo)*float64(k)/bins), f.x.at(lo+(hi-lo)*float64(k+1)/bins)
				steps = append(steps, vg.Point{X: x0, Y: f.y.at(s)}, vg.Point{X: x1, Y: f.y.at(s)})
			}
			if i == 0 {
				area := append([]vg.Point{{X: f.x0, Y: f.y0}}, steps...)
				c.fill(pens[i].role, 0.22, append(area, vg.Point{X: f.x1, Y: f.y0}))
			}
			pens[i].width = 1.2
			c.stroke(pens[i], steps)
			y := f.y1 - 14 - vg.Length(i)*(small+5)
			c.segment(pens[i], f.x1+8, y, f.x1+22, y)
			if all[i].Kind == Agent {
				c.bold(pens[i].role, leftMiddle, f.x1+27, y, short(all[i].Name))
			} else {
				c.text(pens[i].role, leftMiddle, f.x1+27, y, short(all[i].Name))
			}
		}
		for k, m := range marks {
			if m.At < lo || m.At > hi {
				continue
			}
			x := f.x.at(m.At)
			c.segment(pen{role: loss, width: 1.2, dashes: []vg.Length{3, 2}}, x, f.y0, x, f.y1)
			c.text(loss, rightMiddle, x-4, f.y1-8-vg.Length(k)*(small+5), m.Name)
		}
	}}, nil
}
