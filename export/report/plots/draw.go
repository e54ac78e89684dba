package plots

import (
	stdfont "golang.org/x/image/font"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// small is the size of all text but headings, in points.
const small = 11

// anchor places text relative to its point.
type anchor struct {
	x text.XAlignment
	y text.YAlignment
}

var (
	leftMiddle   = anchor{text.XLeft, text.YCenter}
	rightMiddle  = anchor{text.XRight, text.YCenter}
	centreMiddle = anchor{text.XCenter, text.YCenter}
	centreTop    = anchor{text.XCenter, text.YTop}
	leftBottom   = anchor{text.XLeft, text.YBottom}
)

// lift centres text on its digits: the box that it is placed by has room for descenders.
const lift = 1

func (c *canvas) style(r role, a anchor, bold bool) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: small}
	if bold {
		f.Weight = stdfont.WeightBold
	}
	return text.Style{Color: c.of(r), Font: f, XAlign: a.x, YAlign: a.y, Handler: c.fonts}
}

// text writes a line of text at a point.
func (c *canvas) text(r role, a anchor, x, y vg.Length, s string) {
	if a.y == text.YCenter {
		y += lift
	}
	c.FillText(c.style(r, a, false), vg.Point{X: x, Y: y}, s)
}

func (c *canvas) bold(r role, a anchor, x, y vg.Length, s string) {
	if a.y == text.YCenter {
		y += lift
	}
	c.FillText(c.style(r, a, true), vg.Point{X: x, Y: y}, s)
}

// width is that of a text.
func (c *canvas) width(s string, bold bool) vg.Length {
	return c.style(ink, leftMiddle, bold).Width(s)
}

// pen is how a line is drawn.
type pen struct {
	role    role
	width   vg.Length
	dashes  []vg.Length
	opacity float64
}

func (c *canvas) stroke(p pen, points []vg.Point) {
	if p.opacity == 0 {
		p.opacity = 1
	}
	c.StrokeLines(draw.LineStyle{Color: c.faint(p.role, p.opacity), Width: p.width, Dashes: p.dashes}, points)
}

func (c *canvas) segment(p pen, x0, y0, x1, y1 vg.Length) {
	c.stroke(p, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y1}})
}

func (c *canvas) fill(r role, opacity float64, points []vg.Point) {
	c.FillPolygon(c.faint(r, opacity), points)
}

func (c *canvas) box(r role, opacity float64, x0, y0, x1, y1 vg.Length) {
	c.fill(r, opacity, []vg.Point{{X: x0, Y: y0}, {X: x1, Y: y0}, {X: x1, Y: y1}, {X: x0, Y: y1}})
}

// short keeps a name from taking the place of the data.
func short(name string) string {
	const most = 34
	if r := []rune(name); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return name
}
