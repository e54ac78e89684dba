package plots

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/plot/vg"
)

// Kind says how prominent a line is.
type Kind int

// The kinds of lines.
const (
	Other     Kind = iota // a baseline
	Agent                 // what the report is about
	Benchmark             // what it is measured against
	Seed                  // the agent with another seed
	Crowd                 // one of many that are alike, which share their pen and the name of the first
)

// Line is a named curve. NaN leaves a gap.
type Line struct {
	Name string
	Kind Kind
	Y    []float64
}

// Unit says how values are labelled.
type Unit int

// The units of values.
const (
	Plain   Unit = iota
	Percent      // fractions
)

func (u Unit) format() func(v, step float64) string {
	if u == Percent {
		return percentage
	}
	return plain
}

// Chart describes curves over dates.
type Chart struct {
	Name, Alt string
	Title     string // what is measured, with its unit
	Dates     []time.Time
	Lines     []Line
	Unit      Unit
	Log       bool // only for positive values; others leave gaps
	Zero      bool // 0 is marked and always in view
	Fill      bool // the area between the agent's line and 0 is filled
	Stretches []Stretch
}

// Stretch is a part of a chart that is shaded, with its name above.
type Stretch struct {
	Name     string
	From, To time.Time // To is not before From
}

// Size of most figures, in points.
const (
	width  = 860
	height = 340
)

// maxNamed is the number of lines that fit beside a chart.
const maxNamed = 18

// Curves draws lines over dates.
func Curves(o Chart) (*Figure, error) {
	if len(o.Dates) < 2 || len(o.Lines) == 0 {
		return nil, fmt.Errorf("draw %s: expected two dates and a line", o.Name)
	}
	x := make([]float64, len(o.Dates))
	for i, d := range o.Dates {
		x[i] = seconds(d)
	}
	lo, hi := math.Inf(1), math.Inf(-1)
	for _, l := range o.Lines {
		if len(l.Y) != len(x) {
			return nil, fmt.Errorf("draw %s: line %q has %d values for %d dates", o.Name, l.Name, len(l.Y), len(x))
		}
		for _, v := range l.Y {
			if !math.IsNaN(v) && !math.IsInf(v, 0) && (!o.Log || v > 0) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	if !(x[len(x)-1] > x[0]) {
		return nil, errors.New("draw " + o.Name + ": the dates do not ascend")
	}
	if math.IsInf(lo, 0) {
		lo, hi = 0, 1
		if o.Log {
			lo = 0.5
		}
	}
	if o.Zero && !o.Log {
		lo, hi = min(lo, 0), max(hi, 0)
	}
	pens := pensOf(o.Lines)
	if len(x) > 1500 {
		for i := range pens {
			pens[i].width *= 0.6
		}
	}
	return &Figure{Name: o.Name, Alt: o.Alt, Width: width, Height: height, draw: func(c *canvas) {
		f := frame{x0: tickRoom + 4, y0: 28, y1: height - 30, x1: width - c.room(named(o.Lines))}
		f.x = scale{lo: x[0], hi: x[len(x)-1], ticks: dates(o.Dates[0], o.Dates[len(x)-1], int((f.x1-f.x0)/58))}
		f.y.log = o.Log
		if o.Log {
			f.y.lo, f.y.hi, f.y.ticks = logarithmic(lo, hi, 7, o.Unit.format())
		} else {
			f.y.lo, f.y.hi, f.y.ticks = linear(lo, hi, 7, o.Unit.format())
		}
		f.axes(c, o.Title, "")
		for _, s := range o.Stretches {
			from, to := f.x.at(seconds(s.From)), f.x.at(seconds(s.To))
			from, to = max(from, f.x0), min(max(to, from+1), f.x1)
			c.box(loss, 0.15, from, f.y0, to, f.y1)
			for _, x := range []vg.Length{from, to} {
				c.segment(pen{role: loss, width: 0.75, opacity: 0.5}, x, f.y0, x, f.y1)
			}
			c.text(loss, centreMiddle, (from+to)/2, f.y1-7, s.Name)
		}
		if o.Zero {
			f.zero(c, 0)
		}
		var names []label
		room := maxNamed
		for _, l := range o.Lines {
			if l.Kind == Agent || l.Kind == Benchmark {
				room--
			}
		}
		if ends := crowdEnds(o.Lines, o.Log); len(ends) > 0 {
			i := slices.IndexFunc(o.Lines, func(l Line) bool { return l.Kind == Crowd })
			names = append(names, label{o.Lines[i].Name, pens[i].role, false, f.y.at(stat.Mean(ends, nil))})
			room--
		}
		for _, pass := range []Kind{Crowd, Other, Seed, Benchmark, Agent} {
			for i, l := range o.Lines {
				if l.Kind != pass {
					continue
				}
				if o.Fill && pass == Agent {
					f.area(c, pens[i].role, x, l.Y)
				}
				f.curve(c, pens[i], x, l.Y)
				if pass == Other {
					room--
				}
				if end, ok := last(l.Y, o.Log); ok && pass != Seed && pass != Crowd && (pass != Other || room >= 0) {
					names = append(names, label{l.Name, pens[i].role, pass == Agent, f.y.at(end)})
				}
			}
		}
		c.labels(names, f.x1, f.y0, f.y1)
	}}, nil
}

// area fills between a line and 0.
func (f *frame) area(c *canvas, r role, x, y []float64) {
	points := []vg.Point{{X: f.x.at(x[0]), Y: f.y.at(0)}}
	for i, v := range y {
		if !math.IsNaN(v) {
			points = append(points, vg.Point{X: f.x.at(x[i]), Y: f.y.at(v)})
		}
	}
	points = append(thin(points), vg.Point{X: f.x.at(x[len(x)-1]), Y: f.y.at(0)})
	c.fill(r, 0.16, points)
}

// last is the last value that can be drawn.
func last(y []float64, log bool) (float64, bool) {
	for i := len(y) - 1; i >= 0; i-- {
		if v := y[i]; !math.IsNaN(v) && !math.IsInf(v, 0) && (!log || v > 0) {
			return v, true
		}
	}
	return 0, false
}

// crowdEnds are the last values of a crowd.
func crowdEnds(all []Line, log bool) (ends []float64) {
	for _, l := range all {
		if end, ok := last(l.Y, log); ok && l.Kind == Crowd {
			ends = append(ends, end)
		}
	}
	return ends
}

// dashes tell baselines apart for whom colours do not.
var dashes = [][]vg.Length{nil, {8, 2}, {5, 2, 1, 2}, {2, 1.5}, {1, 2}}

// pensOf gives every line its pen. Baselines differ in colour and in dashes: there are as many of
// the one as of the other that no two share both.
func pensOf(all []Line) []pen {
	pens := make([]pen, len(all))
	others := 0
	for i, l := range all {
		switch l.Kind {
		case Agent:
			pens[i] = pen{role: agent, width: 2.2}
		case Benchmark:
			pens[i] = pen{role: benchmark, width: 1.6, dashes: []vg.Length{6, 3}}
		case Seed:
			pens[i] = pen{role: agent, width: 0.9, opacity: 0.45}
		case Crowd:
			pens[i] = pen{role: muted, width: 0.5}
		default:
			pens[i] = pen{role: line0 + role(others%lines), width: 1.2, dashes: dashes[others%len(dashes)]}
			others++
		}
	}
	return pens
}

func named(all []Line) []string {
	var names []string
	for _, l := range all {
		if l.Kind != Seed {
			names = append(names, l.Name)
		}
	}
	return names
}
