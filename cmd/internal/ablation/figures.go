package ablation

import (
	"fmt"
	"image/color"
	"io"
	"math"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// theme is the colours of a figure.
type theme struct {
	name                                string
	background, ink, muted, grid        color.Color
	seeds, mean, base, clear, reference color.Color
}

var themes = []theme{
	{"light", rgb(0xffffff), rgb(0x1f2328), rgb(0x656d76), rgb(0xe4e8ec), rgb(0x8c959f), rgb(0x0969da), rgb(0x57606a), rgb(0xbc4c00), rgb(0x8250df)},
	{"dark", rgb(0x0d1117), rgb(0xe6edf3), rgb(0x9198a1), rgb(0x262c36), rgb(0x6e7681), rgb(0x58a6ff), rgb(0xb1bac4), rgb(0xf0883e), rgb(0xbc8cff)},
}

func rgb(v uint32) color.Color {
	return color.NRGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

// figure is a file to be written.
type figure struct {
	name  string
	write func(io.Writer) error
}

// mark is one line of a figure: a level with its values.
type mark struct {
	label            string
	points           []float64
	center, low, upp float64
	color            func(t theme) color.Color
}

// figures are one dot plot for each factor, and one of all differences to the base, in both themes as SVG and PNG.
func (s *Summary) figures() ([]figure, error) {
	var list []figure
	add := func(name string, make func(t theme) (*plot.Plot, vg.Length, error)) error {
		for _, t := range themes {
			p, height, err := make(t)
			if err != nil {
				return fmt.Errorf("plot %s: %w", name, err)
			}
			for _, format := range []string{"svg", "png"} {
				list = append(list, figure{name + "-" + t.name + "." + format, func(w io.Writer) error { return render(w, p, format, height) }})
			}
		}
		return nil
	}
	metric := s.Metrics[0]
	for _, name := range s.Factors {
		var marks []mark
		for _, e := range s.Effects {
			if e.Factor != name {
				continue
			}
			m := mark{label: e.Level, center: float64(e.Stats[0].Mean), low: float64(e.Stats[0].Mean - e.Stats[0].Std), upp: float64(e.Stats[0].Mean + e.Stats[0].Std), color: func(t theme) color.Color { return t.mean }}
			if e.Base {
				m.color = func(t theme) color.Color { return t.base }
				m.label += " (base)"
			}
			for _, v := range e.Values {
				m.points = append(m.points, float64(v))
			}
			marks = append(marks, m)
		}
		err := add(slug(name), func(t theme) (*plot.Plot, vg.Length, error) {
			reference := math.NaN()
			if s.Reference != nil {
				reference = float64(s.Reference[0])
			}
			return dots(t, name, metric+" on the validation range: seeds, mean ± standard deviation", marks, reference, s.ReferenceName)
		})
		if err != nil {
			return nil, err
		}
	}
	var marks []mark
	for _, e := range s.Effects {
		if e.Base {
			continue
		}
		v := e.Stats[0]
		m := mark{label: e.Factor + ": " + e.Level, center: float64(v.Diff), low: float64(v.Low), upp: float64(v.High), color: func(t theme) color.Color { return t.mean }}
		if v.Clear() {
			m.color = func(t theme) color.Color { return t.clear }
		}
		marks = append(marks, m)
	}
	err := add("differences", func(t theme) (*plot.Plot, vg.Length, error) {
		return dots(t, "Differences to the base", fmt.Sprintf("%s minus the base's, paired by seed, with %.0f %% intervals", metric, 100*Confidence), marks, 0, "no difference")
	})
	return list, err
}

// dots draws marks from top to bottom over a common axis, and a vertical line at the reference.
func dots(t theme, title, axis string, marks []mark, reference float64, name string) (*plot.Plot, vg.Length, error) {
	p := plot.New()
	p.BackgroundColor = t.background
	style := func(s *text.Style, size vg.Length, c color.Color) {
		s.Font = font.Font{Typeface: "Liberation", Variant: "Sans", Size: size}
		s.Color = c
	}
	p.Title.Text, p.X.Label.Text = title, axis
	p.Title.Padding = vg.Points(8)
	style(&p.Title.TextStyle, 14, t.ink)
	style(&p.X.Label.TextStyle, 10, t.muted)
	style(&p.X.Tick.Label, 10, t.muted)
	style(&p.Y.Tick.Label, 11, t.ink)
	style(&p.Legend.TextStyle, 10, t.muted)
	p.X.Color, p.X.Tick.Color, p.Y.Color = t.muted, t.muted, color.Transparent
	p.Y.Tick.LineStyle.Color = color.Transparent
	p.X.Padding, p.Y.Padding = vg.Points(6), vg.Points(4)
	p.Legend.Top, p.Legend.YOffs = true, vg.Points(15)

	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = t.grid, t.grid
	grid.Vertical.Dashes = nil
	p.Add(grid)
	lo, hi := math.Inf(1), math.Inf(-1)
	see := func(v float64) {
		if isFinite(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	see(reference)
	ticks := make([]plot.Tick, len(marks))
	for i, m := range marks {
		y := float64(len(marks) - 1 - i)
		ticks[i] = plot.Tick{Value: y, Label: m.label}
		see(m.center)
		see(m.low)
		see(m.upp)
		for _, v := range m.points {
			see(v)
		}
	}
	if lo > hi {
		lo, hi = 0, 1
	}
	margin := 0.06 * (hi - lo)
	if margin == 0 {
		margin = max(1e-3, 0.1*math.Abs(hi))
	}
	p.X.Min, p.X.Max = lo-margin, hi+margin
	p.Y.Min, p.Y.Max = -0.6, float64(len(marks))-0.4
	p.Y.Tick.Marker = plot.ConstantTicks(ticks)

	if isFinite(reference) {
		line, err := plotter.NewLine(plotter.XYs{{X: reference, Y: p.Y.Min}, {X: reference, Y: p.Y.Max}})
		if err != nil {
			return nil, 0, err
		}
		line.Color, line.Width, line.Dashes = t.reference, vg.Points(1.5), []vg.Length{vg.Points(5), vg.Points(3)}
		p.Add(line)
		p.Legend.Add(name, line)
	}
	for i, m := range marks {
		y := float64(len(marks) - 1 - i)
		if isFinite(m.low) && isFinite(m.upp) {
			line, err := plotter.NewLine(plotter.XYs{{X: m.low, Y: y}, {X: m.upp, Y: y}})
			if err != nil {
				return nil, 0, err
			}
			line.Color, line.Width = m.color(t), vg.Points(2)
			p.Add(line)
		}
		var seeds plotter.XYs
		for _, v := range m.points {
			if isFinite(v) {
				seeds = append(seeds, plotter.XY{X: v, Y: y})
			}
		}
		for _, layer := range []struct {
			at     plotter.XYs
			color  color.Color
			radius vg.Length
			shape  draw.GlyphDrawer
		}{{seeds, t.seeds, vg.Points(2.5), draw.CircleGlyph{}}, {center(m, y), m.color(t), vg.Points(4.5), draw.CircleGlyph{}}} {
			if len(layer.at) == 0 {
				continue
			}
			sc, err := plotter.NewScatter(layer.at)
			if err != nil {
				return nil, 0, err
			}
			sc.GlyphStyle = draw.GlyphStyle{Color: layer.color, Radius: layer.radius, Shape: layer.shape}
			p.Add(sc)
		}
	}
	// Each line has the same height.
	return p, vg.Points(float64(112 + 28*len(marks))), nil
}

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func center(m mark, y float64) plotter.XYs {
	if !isFinite(m.center) {
		return nil
	}
	return plotter.XYs{{X: m.center, Y: y}}
}

const figureWidth = 640 * vg.Length(0.75)

// render draws a plot. PNG has two pixels for each one of SVG, for sharp screens.
func render(w io.Writer, p *plot.Plot, format string, height vg.Length) error {
	var c interface {
		vg.CanvasSizer
		io.WriterTo
	}
	if format == "svg" {
		c = vgsvg.New(figureWidth, height)
	} else {
		c = vgimg.PngCanvas{Canvas: vgimg.NewWith(vgimg.UseWH(figureWidth, height), vgimg.UseDPI(192))}
	}
	all := draw.New(c)
	all.SetColor(p.BackgroundColor)
	all.Fill(all.Rectangle.Path())
	const edge = 10
	p.Draw(draw.Crop(all, edge, -edge, edge, -edge))
	_, err := c.WriteTo(w)
	return err
}
