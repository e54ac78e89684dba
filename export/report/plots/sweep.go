package plots

import (
	"fmt"
	"math"
	"slices"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// Panel is one half of a sweep.
type Panel struct {
	Title string
	Unit  Unit
	Lines []Line // values at the X of the sweep, NaN where there is none
}

// Sweep draws measures against an assumption, in panels side by side with the same horizontal axis.
// X ascends; xUnit names it. Lines are those of the first panel, in all panels.
func Sweep(name, alt, xUnit string, x []float64, panels []Panel) (*Figure, error) {
	if len(x) < 2 || !slices.IsSorted(x) || x[0] == x[len(x)-1] || len(panels) == 0 {
		return nil, fmt.Errorf("draw %s: expected ascending values of %s and a panel", name, xUnit)
	}
	for _, p := range panels {
		if len(p.Lines) != len(panels[0].Lines) {
			return nil, fmt.Errorf("draw %s: panel %q has %d lines, expected %d", name, p.Title, len(p.Lines), len(panels[0].Lines))
		}
		for _, l := range p.Lines {
			if len(l.Y) != len(x) {
				return nil, fmt.Errorf("draw %s: line %q has %d values, expected %d", name, l.Name, len(l.Y), len(x))
			}
		}
	}
	return &Figure{Name: name, Alt: alt, Width: width, Height: 290, draw: func(c *canvas) {
		names := c.room(named(panels[0].Lines))
		each := (width - names - vg.Length(len(panels))*(tickRoom+4)) / vg.Length(len(panels))
		left := vg.Length(tickRoom + 4)
		for k, p := range panels {
			lo, hi := 0.0, 0.0
			for _, l := range p.Lines {
				for _, v := range l.Y {
					if !math.IsNaN(v) && !math.IsInf(v, 0) {
						lo, hi = min(lo, v), max(hi, v)
					}
				}
			}
			f := frame{x0: left, x1: left + each - 10, y0: 46, y1: 290 - 30}
			f.x.lo, f.x.hi = x[0], x[len(x)-1]
			for _, v := range x {
				f.x.ticks = append(f.x.ticks, tick{v, signed(strconv.FormatFloat(v, 'g', 6, 64))})
			}
			f.y.lo, f.y.hi, f.y.ticks = linear(lo, hi, 6, p.Unit.format())
			f.axes(c, p.Title, xUnit)
			f.zero(c, 0)
			var ends []label
			for i, l := range p.Lines {
				own := pensOf(p.Lines)[i]
				f.curve(c, own, x, l.Y)
				own.dashes = nil
				for j, v := range l.Y {
					if !math.IsNaN(v) {
						c.dot(own.role, f.x.at(x[j]), f.y.at(v), own.width+1)
					}
				}
				if end, ok := last(l.Y, false); ok && l.Kind != Seed {
					ends = append(ends, label{l.Name, own.role, l.Kind == Agent, f.y.at(end)})
				}
			}
			if k == len(panels)-1 {
				c.labels(ends, f.x1, f.y0, f.y1)
			}
			left += each + tickRoom + 4
		}
	}}, nil
}

// dot is a filled circle.
func (c *canvas) dot(r role, x, y, radius vg.Length) {
	var p vg.Path
	p.Move(vg.Point{X: x + radius, Y: y})
	p.Arc(vg.Point{X: x, Y: y}, radius, 0, 2*math.Pi)
	p.Close()
	c.SetColor(c.of(r))
	c.Fill(p)
}
