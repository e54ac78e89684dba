package plots

import (
	"bytes"
	"fmt"
	"html"
	"image/png"
	"strings"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansbold"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	stdfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Figure is a drawing. It may be used by several goroutines.
type Figure struct {
	Name          string    // of its files
	Alt           string    // what it shows, for those who do not see it
	Width, Height vg.Length // points
	draw          func(c *canvas)
}

// canvas is what a figure is drawn on: points from the lower left corner.
type canvas struct {
	draw.Canvas
	paint
	fonts text.Handler
}

// collection holds the two faces in use. A cache grows while text is measured, so that every
// drawing has one of its own.
var collection = sync.OnceValue(func() font.Collection {
	var all font.Collection
	for _, f := range []struct {
		weight stdfont.Weight
		data   []byte
	}{{stdfont.WeightNormal, liberationsansregular.TTF}, {stdfont.WeightBold, liberationsansbold.TTF}} {
		face, err := opentype.Parse(f.data)
		if err != nil {
			panic(fmt.Errorf("plots: built-in font: %w", err))
		}
		all = append(all, font.Face{Font: font.Font{Typeface: "Liberation", Variant: "Sans", Weight: f.weight}, Face: face})
	}
	return all
})

func (f *Figure) render(c vg.Canvas, p paint) {
	f.draw(&canvas{draw.NewCanvas(c, f.Width, f.Height), p, text.Plain{Fonts: font.NewCache(collection())}})
}

// fallback is what a browser uses where the measured font is not installed; the first two have the
// same widths.
const fallback = "'Liberation Sans',Arimo,Arial,Helvetica,sans-serif"

// svg returns the drawing with marks for colours, from <svg to </svg>, with extra content at its
// start.
func (f *Figure) svg(head string) (string, error) {
	c := vgsvg.New(f.Width, f.Height)
	f.render(c, paint{tokens: true})
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return "", fmt.Errorf("draw %s: %w", f.Name, err)
	}
	s := b.String()
	start, open := strings.Index(s, "<svg"), strings.Index(s, ">\n<g")
	if start < 0 || open < start {
		return "", fmt.Errorf("draw %s: the canvas wrote no SVG", f.Name)
	}
	s = fmt.Sprintf(`<svg viewBox="0 0 %g %g" width="%g" height="%g" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="%s">`, f.Width.Points(), f.Height.Points(), f.Width.Points(), f.Height.Points(), html.EscapeString(f.Alt)) +
		head + s[open+1:]
	return compact.Replace(s), nil
}

// compact shortens what the canvas writes for every element.
var compact = strings.NewReplacer("font-family:Liberation Sans;font-variant:normal;font-weight:normal;font-style:normal;", "", "font-family:Liberation Sans;font-variant:normal;font-weight:bold;font-style:normal;", "font-weight:bold;", "\n\tstyle", " style")

// Inline returns the figure as an element of a page that has Style in its head.
func (f *Figure) Inline() (string, error) {
	s, err := f.svg("")
	return inlineColours.Replace(s), err
}

// SVG returns the figure as a file.
func (f *Figure) SVG() ([]byte, error) {
	s, err := f.svg("<style>text{font-family:" + fallback + "}" + fileStyle + `</style><rect width="100%" height="100%" style="fill:` + token{role: background}.mark() + `"/>` + "\n")
	return []byte(`<?xml version="1.0" encoding="UTF-8"?>` + "\n" + fileColours.Replace(s)), err
}

// PNG returns the figure as pixels, dpi of them to an inch of 72 points.
func (f *Figure) PNG(s Scheme, dpi int) ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(f.Width, f.Height), vgimg.UseDPI(dpi), vgimg.UseBackgroundColor(palette[background][s]))
	f.render(c, paint{scheme: s})
	var b bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestSpeed}
	if err := encoder.Encode(&b, c.Image()); err != nil {
		return nil, fmt.Errorf("draw %s: %w", f.Name, err)
	}
	return b.Bytes(), nil
}
