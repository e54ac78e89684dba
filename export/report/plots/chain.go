package plots

import (
	"fmt"
	"strconv"

	"gonum.org/v1/plot/vg"
)

// Chain describes a supply chain over time: curves of its products and its members, and what flowed
// from stage to stage.
type Chain struct {
	Name, Alt string
	// Panels have one value of each line for each day; the last one names its lines.
	Panels []Panel
	// Stages are the names of the members of each stage, the sources first.
	Stages [][]string
	Flows  []Flow
	// FlowTitle says what flowed, with its unit.
	FlowTitle string
}

// Flow is what went from a member of a stage to one of the next.
type Flow struct {
	Stage, From, To int
	Amount          float64
}

// Draw draws the panels side by side, and the flows below them as bands as wide as they are large.
func (o Chain) Draw() (*Figure, error) {
	days := 0
	for _, p := range o.Panels {
		for _, l := range p.Lines {
			if days == 0 {
				days = len(l.Y)
			}
			if len(l.Y) != days {
				return nil, fmt.Errorf("draw %s: line %q has %d values, expected %d", o.Name, l.Name, len(l.Y), days)
			}
		}
	}
	if days == 0 || len(o.Stages) < 2 {
		return nil, fmt.Errorf("draw %s: expected a line and two stages", o.Name)
	}
	in, out, total := o.loads()
	most := 1
	for s := range o.Stages {
		most = max(most, len(o.Stages[s]))
		for i, name := range o.Stages[s] {
			if in[s][i] < 0 || out[s][i] < 0 {
				return nil, fmt.Errorf("draw %s: the flows of %s are negative", o.Name, name)
			}
		}
	}
	const panels = 270
	below := vg.Length(most)*34 + 60
	return &Figure{Name: o.Name, Alt: o.Alt, Width: width, Height: panels + below, draw: func(c *canvas) {
		o.curves(c, days, below)
		o.bands(c, in, out, total, below)
	}}, nil
}

// loads adds up what goes into each member and out of it. total is the largest sum of a stage.
func (o Chain) loads() (in, out [][]float64, total float64) {
	for _, members := range o.Stages {
		in, out = append(in, make([]float64, len(members))), append(out, make([]float64, len(members)))
	}
	for _, f := range o.Flows {
		out[f.Stage][f.From] += f.Amount
		in[f.Stage+1][f.To] += f.Amount
	}
	for s := range o.Stages {
		sum := 0.0
		for i := range o.Stages[s] {
			sum += max(in[s][i], out[s][i])
		}
		total = max(total, sum)
	}
	return in, out, max(total, 1)
}

func (o Chain) curves(c *canvas, days int, below vg.Length) {
	x := make([]float64, days)
	for i := range x {
		x[i] = float64(i)
	}
	room := make([]vg.Length, len(o.Panels))
	free := vg.Length(width)
	for i, p := range o.Panels {
		room[i] = tickRoom + 14
		if i == 0 || i == len(o.Panels)-1 {
			room[i] += c.room(named(p.Lines))
		}
		free -= room[i]
	}
	left := vg.Length(tickRoom + 4)
	for k, p := range o.Panels {
		lo, hi := 0.0, 0.0
		for i, l := range p.Lines {
			for j, v := range l.Y {
				if i == 0 && j == 0 {
					lo, hi = v, v
				}
				lo, hi = min(lo, v), max(hi, v)
			}
		}
		f := frame{x0: left, x1: left + free/vg.Length(len(o.Panels)), y0: below + 40, y1: below + 240}
		f.x.lo, f.x.hi = 0, float64(max(days-1, 1))
		step := max(1, (days+4)/5)
		for d := 0; d < days; d += step {
			f.x.ticks = append(f.x.ticks, tick{float64(d), strconv.Itoa(d)})
		}
		f.y.lo, f.y.hi, f.y.ticks = linear(lo, hi, 6, p.Unit.format())
		f.axes(c, p.Title, "day")
		var ends []label
		for i, l := range p.Lines {
			own := pensOf(p.Lines)[i]
			f.curve(c, own, x, l.Y)
			if end, ok := last(l.Y, false); ok {
				ends = append(ends, label{l.Name, own.role, l.Kind == Agent, f.y.at(end)})
			}
		}
		if k == 0 || k == len(o.Panels)-1 {
			c.labels(ends, f.x1, f.y0, f.y1)
		}
		left = f.x1 + room[k]
	}
}

// bands draws a box for each member, as high as what it passes on, and a band for each flow.
func (o Chain) bands(c *canvas, in, out [][]float64, total float64, below vg.Length) {
	const gap, thick, margin = 14, 12, 8
	most := 1
	for _, members := range o.Stages {
		most = max(most, len(members))
	}
	high := below - 50 - gap*vg.Length(most)
	unit := high / vg.Length(total)
	c.bold(ink, leftBottom, 4, below-22, o.FlowTitle)
	names := vg.Length(0)
	for _, members := range o.Stages {
		for _, name := range members {
			names = max(names, c.width(short(name), false))
		}
	}
	at := func(s int) vg.Length {
		return margin + vg.Length(s)*(width-2*margin-thick-names-6)/vg.Length(len(o.Stages)-1)
	}
	top := make([][]vg.Length, len(o.Stages))
	for s, members := range o.Stages {
		y := below - 40
		for i := range members {
			top[s] = append(top[s], y)
			y -= vg.Length(max(in[s][i], out[s][i]))*unit + gap
		}
	}
	left, right := make([][]vg.Length, len(top)), make([][]vg.Length, len(top))
	for s := range top {
		left[s], right[s] = append([]vg.Length(nil), top[s]...), append([]vg.Length(nil), top[s]...)
	}
	for _, f := range o.Flows {
		h := vg.Length(f.Amount) * unit
		x0, x1 := at(f.Stage)+thick, at(f.Stage+1)
		y0, y1 := right[f.Stage][f.From], left[f.Stage+1][f.To]
		right[f.Stage][f.From] -= h
		left[f.Stage+1][f.To] -= h
		c.fill(line0+role(f.From%lines), 0.35, band(x0, y0, x1, y1, h))
	}
	for s, members := range o.Stages {
		for i, name := range members {
			h := max(vg.Length(max(in[s][i], out[s][i]))*unit, 1)
			c.box(ink, 1, at(s), top[s][i]-h, at(s)+thick, top[s][i])
			c.text(ink, leftMiddle, at(s)+thick+4, top[s][i]-h/2, short(name))
		}
	}
}

// band is an area of height h that goes from (x0, y0) to (x1, y1), its upper corners, in an S.
func band(x0, y0, x1, y1, h vg.Length) []vg.Point {
	const steps = 24
	var upper, points []vg.Point
	for i := range steps + 1 {
		t := vg.Length(i) / steps
		upper = append(upper, vg.Point{X: x0 + (x1-x0)*t, Y: y0 + (y1-y0)*t*t*(3-2*t)})
	}
	points = append(points, upper...)
	for i := steps; i >= 0; i-- {
		points = append(points, vg.Point{X: upper[i].X, Y: upper[i].Y - h})
	}
	return points
}
