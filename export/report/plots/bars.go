package plots

import (
	"fmt"
	"math"

	"gonum.org/v1/plot/vg"
)

// Bars draws a group of bars for each category, one bar for each line, up or down from 0. Y of a
// line has a value for each category; NaN leaves its bar out. Values stand at the bars where they
// fit.
func Bars(name, alt, title string, unit Unit, categories []string, all []Line) (*Figure, error) {
	if len(categories) == 0 || len(all) == 0 {
		return nil, fmt.Errorf("draw %s: expected a category and a line", name)
	}
	lo, hi := 0.0, 0.0
	for _, l := range all {
		if len(l.Y) != len(categories) {
			return nil, fmt.Errorf("draw %s: line %q has %d values for %d categories", name, l.Name, len(l.Y), len(categories))
		}
		for _, v := range l.Y {
			if isFinite(v) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if lo == hi {
		hi = 1
	}
	// Values stand beyond the ends of the bars.
	margin := 0.09 * (hi - lo)
	if hi > 0 {
		hi += margin
	}
	if lo < 0 {
		lo -= margin
	}
	pens := pensOf(all)
	return &Figure{Name: name, Alt: alt, Width: width, Height: 290, draw: func(c *canvas) {
		f := frame{x0: tickRoom + 4, y0: 30, y1: 290 - 34, x1: width - c.room(named(all)) - 6}
		n := vg.Length(len(categories))
		f.x.lo, f.x.hi = 0, float64(len(categories))
		for i, label := range categories {
			f.x.ticks = append(f.x.ticks, tick{float64(i) + 0.5, short(label)})
		}
		f.y.lo, f.y.hi, f.y.ticks = linear(lo, hi, 6, unit.format())
		f.axes(c, title, "")
		group := min(0.8*(f.x1-f.x0)/n, 46*vg.Length(len(all)))
		each := group / vg.Length(len(all))
		zero := f.y.at(0)
		for k := range all {
			for i, v := range all[k].Y {
				if !isFinite(v) {
					continue
				}
				x := f.x.at(float64(i)+0.5) - group/2 + each*vg.Length(k)
				y := f.y.at(v)
				c.box(pens[k].role, 0.85, x+0.75, min(zero, y), x+each-0.75, max(zero, y))
				text := unit.short(v)
				if c.width(text, false) > each+2 {
					continue
				}
				at := y + 8
				if v < 0 {
					at = y - 8
				}
				c.text(pens[k].role, centreMiddle, x+each/2, at, text)
			}
			y := f.y1 - 14 - vg.Length(k)*(small+5)
			c.box(pens[k].role, 0.85, f.x1+12, y-4, f.x1+20, y+4)
			if all[k].Kind == Agent {
				c.bold(pens[k].role, leftMiddle, f.x1+27, y, short(all[k].Name))
			} else {
				c.text(pens[k].role, leftMiddle, f.x1+27, y, short(all[k].Name))
			}
		}
		f.zero(c, 0)
	}}, nil
}

// short is a value in few characters.
func (u Unit) short(v float64) string {
	if u == Percent {
		if math.Abs(v) >= 0.0995 {
			return percentage(v, 0.01)
		}
		return percentage(v, 0.001)
	}
	return plain(v, max(math.Pow(10, math.Floor(math.Log10(math.Max(math.Abs(v), 1e-12)))-1), 1))
}
