package plots

import (
	"math"
	"slices"

	"gonum.org/v1/plot/vg"
)

// scale maps values of an axis to points.
type scale struct {
	lo, hi float64
	log    bool
	ticks  []tick
	a, b   vg.Length // where lo and hi are
}

func (s *scale) at(v float64) vg.Length {
	lo, hi := s.lo, s.hi
	if s.log {
		v, lo, hi = math.Log(v), math.Log(lo), math.Log(hi)
	}
	return s.a + vg.Length((v-lo)/(hi-lo))*(s.b-s.a)
}

// frame is a panel with axes.
type frame struct {
	x, y           scale
	x0, y0, x1, y1 vg.Length // the panel
}

// tickRoom is the space for the labels of an axis to the left of a panel.
const tickRoom = 50

// axes draws grid, axes and labels: title above the vertical axis, unit below the horizontal one.
func (f *frame) axes(c *canvas, title, unit string) {
	f.x.a, f.x.b, f.y.a, f.y.b = f.x0, f.x1, f.y0, f.y1
	for _, t := range f.y.ticks {
		y := f.y.at(t.at)
		if y < f.y0-0.01 || y > f.y1+0.01 {
			continue
		}
		c.segment(pen{role: grid, width: 0.75}, f.x0, y, f.x1, y)
		c.text(muted, rightMiddle, f.x0-6, y, t.label)
	}
	c.segment(pen{role: axis, width: 1}, f.x0, f.y0, f.x1, f.y0)
	free := vg.Length(math.Inf(-1))
	for _, t := range f.x.ticks {
		x := f.x.at(t.at)
		c.segment(pen{role: axis, width: 1}, x, f.y0, x, f.y0-4)
		half := c.width(t.label, false) / 2
		if x-half < free+6 {
			continue
		}
		free = x + half
		c.text(muted, centreTop, x, f.y0-7, t.label)
	}
	c.bold(ink, leftBottom, f.x0-tickRoom, f.y1+10, title)
	if unit != "" {
		c.text(muted, centreTop, (f.x0+f.x1)/2, f.y0-22, unit)
	}
}

// zero draws a line at a value within the panel.
func (f *frame) zero(c *canvas, v float64) {
	if y := f.y.at(v); y >= f.y0 && y <= f.y1 {
		c.segment(pen{role: axis, width: 1}, f.x0, y, f.x1, y)
	}
}

// curve draws the defined parts of a line.
func (f *frame) curve(c *canvas, p pen, x, y []float64) {
	var part []vg.Point
	flush := func() {
		if len(part) > 1 {
			c.stroke(p, thin(part))
		}
		part = part[:0]
	}
	for i, v := range y {
		if math.IsNaN(v) || math.IsInf(v, 0) || f.y.log && v <= 0 {
			flush()
			continue
		}
		part = append(part, vg.Point{X: f.x.at(x[i]), Y: min(max(f.y.at(v), f.y0), f.y1)})
	}
	flush()
}

// thin keeps the first, lowest, highest and last point of each half point of width, which is all
// that can be seen of a long line.
func thin(points []vg.Point) []vg.Point {
	const column = 0.5
	width := points[len(points)-1].X - points[0].X
	if float64(len(points)) <= 3*float64(width/column) {
		return slices.Clone(points)
	}
	var kept []vg.Point
	for i := 0; i < len(points); {
		lo, hi, end := i, i, i
		for end+1 < len(points) && points[end+1].X < points[i].X+column {
			end++
			if points[end].Y < points[lo].Y {
				lo = end
			}
			if points[end].Y > points[hi].Y {
				hi = end
			}
		}
		keep := []int{i, lo, hi, end}
		slices.Sort(keep)
		for _, k := range slices.Compact(keep) {
			kept = append(kept, points[k])
		}
		i = end + 1
	}
	return kept
}

// label is a name that stands beside the end of a line.
type label struct {
	text string
	role role
	bold bool
	y    vg.Length // where the line ends
}

// labels writes names to the right of a panel, apart from each other and in the order of their
// lines, with a leader where one had to move.
func (c *canvas) labels(all []label, x, bottom, top vg.Length) {
	const gap = small + 3
	slices.SortStableFunc(all, func(a, b label) int {
		switch {
		case a.y < b.y:
			return -1
		case a.y > b.y:
			return 1
		}
		return 0
	})
	spread := apart(all, gap, bottom, top)
	for i, l := range all {
		c.stroke(pen{role: l.role, width: 0.75, opacity: 0.6}, []vg.Point{{X: x + 2, Y: l.y}, {X: x + 12, Y: spread[i]}})
		if l.bold {
			c.bold(l.role, leftMiddle, x+15, spread[i], short(l.text))
		} else {
			c.text(l.role, leftMiddle, x+15, spread[i], short(l.text))
		}
	}
}

// apart gives ascending labels places with at least a gap between them, as near to their lines as
// that allows: labels that would collide form a run that is centred on the mean of their lines. All
// stay between bottom and top while there is room.
func apart(all []label, gap, bottom, top vg.Length) []vg.Length {
	type run struct {
		first, n int
		sum      vg.Length // of what the first label's place would be for each of them
	}
	place := func(r run) vg.Length {
		return max(min(r.sum/vg.Length(r.n), top-gap*vg.Length(r.n-1)), bottom)
	}
	var runs []run
	for i, l := range all {
		runs = append(runs, run{i, 1, l.y})
		for len(runs) > 1 {
			a, b := runs[len(runs)-2], runs[len(runs)-1]
			if place(a)+gap*vg.Length(a.n) <= place(b) {
				break
			}
			runs = append(runs[:len(runs)-2], run{a.first, a.n + b.n, a.sum + b.sum - gap*vg.Length(a.n*b.n)})
		}
	}
	places := make([]vg.Length, len(all))
	for _, r := range runs {
		for k := range r.n {
			places[r.first+k] = place(r) + gap*vg.Length(k)
		}
	}
	return places
}

// room is the space that names need to the right of a panel, with some to spare for readers whose
// font is wider.
func (c *canvas) room(names []string) vg.Length {
	var w vg.Length
	for _, n := range names {
		w = max(w, c.width(short(n), true))
	}
	return 1.12*w + 24
}
