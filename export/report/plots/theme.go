package plots

import (
	"fmt"
	"image/color"
	"strings"

	"github.com/onnxrl/onnxrl/export/pages/theme"
)

// Scheme is a set of colours.
type Scheme int

// The schemes.
const (
	Light Scheme = iota
	Dark
)

// role is what a colour is for. The layers of stacked shares follow after the named roles.
type role int

const (
	background role = iota
	ink             // text
	muted           // text of axes
	grid
	axis
	agent
	benchmark
	gain
	loss
	rest // cash, hold
	line0
	line1
	line2
	line3
	line4
	line5
	line6
	line7
	layer0
)

const (
	lines  = int(layer0 - line0)
	layers = 18
)

// palette has a light and a dark colour for each role, most of them the theme's: text and lines
// have a contrast of at least 4.5 to their background. Layers are evenly spaced hues of equal chroma
// in three lightnesses (OKLCH).
var palette = func() [int(layer0) + layers][2]color.NRGBA {
	all := append([]theme.Colour{theme.Paper, theme.Ink, theme.Soft, theme.Rule, {Light: "#AAB2BD", Dark: "#4D5665"}, theme.Link, {Light: "#31373F", Dark: "#D3D8E0"}, theme.Good, theme.Bad, {Light: "#CBD1D9", Dark: "#3D4551"}}, theme.Series[:]...)
	for pair := range strings.FieldsSeq(`
		#6AAAEA/#528AC3 #BB6359/#964941 #6ED5AB/#5DB994 #B393E0/#9276BA #A4771C/#825B00 #56D0EE/#48B4D0 #DD85A8/#B76A89 #658E43/#4B6F2C #A1BAFF/#8BA1E7
		#DF8D63/#B9714C #009689/#00766B #E1A5E9/#C48ECB #B5A649/#958733 #2C89BC/#106B97 #FF9EA6/#DE898F #68B981/#509867 #8073C0/#63579A #EFAF69/#D09859`) {
		light, dark, _ := strings.Cut(pair, "/")
		all = append(all, theme.Colour{Light: light, Dark: dark})
	}
	var p [int(layer0) + layers][2]color.NRGBA
	if len(all) != len(p) {
		panic("plots: the palette does not fit the roles")
	}
	for i, pair := range all {
		for s, hex := range []string{pair.Light, pair.Dark} {
			c := color.NRGBA{A: 255}
			if _, err := fmt.Sscanf(hex, "#%02X%02X%02X", &c.R, &c.G, &c.B); err != nil {
				panic(err)
			}
			p[i][s] = c
		}
	}
	return p
}()

// paint gives roles their colours while a figure is drawn.
type paint struct {
	scheme Scheme
	tokens bool // SVG: colours are marks that are replaced in the text
}

func (p paint) of(r role) color.Color { return p.faint(r, 1) }

// faint is a role's colour with an opacity in [0, 1].
func (p paint) faint(r role, opacity float64) color.Color {
	a := uint8(255*min(max(opacity, 0), 1) + 0.5)
	if p.tokens {
		return token{r, a}
	}
	c := palette[r][p.scheme]
	c.A = a
	return c
}

// token stands for a role in the text of an SVG. The canvas writes its opacity separately and
// divides it out of the colour, rounding down; the 1 keeps what comes out exact.
type token struct {
	role  role
	alpha uint8
}

// RGBA implements color.Color.
func (t token) RGBA() (r, g, b, a uint32) {
	a = uint32(t.alpha) * 0x101
	part := func(v uint32) uint32 { return min(v*a/255+1, max(a, 1)) }
	return part(0xF0), part(0xE0), part(uint32(t.role)), a
}

func (t token) mark() string { return fmt.Sprintf("#F0E0%02X", int(t.role)) }

func hex(c color.NRGBA) string { return fmt.Sprintf("#%02X%02X%02X", c.R, c.G, c.B) }

// variable is the name of a role in CSS.
func variable(r role) string { return fmt.Sprintf("--plot-%d", int(r)) }

// inlineColours replaces marks by variables, and fileColours by the light colours.
var inlineColours, fileColours = func() (*strings.Replacer, *strings.Replacer) {
	var inline, file []string
	for r := range palette {
		mark := token{role: role(r)}.mark()
		inline = append(inline, mark, "var("+variable(role(r))+")")
		file = append(file, mark, hex(palette[r][Light]))
	}
	return strings.NewReplacer(inline...), strings.NewReplacer(file...)
}()

// Style is the CSS that inline figures need: a variable for each role, with other values where the
// reader prefers dark.
func Style() string {
	var b strings.Builder
	for s, open := range []string{":root{", "@media(prefers-color-scheme:dark){:root{"} {
		b.WriteString(open)
		for r := range palette {
			fmt.Fprintf(&b, "%s:%s;", variable(role(r)), hex(palette[r][s]))
		}
		b.WriteString("}")
	}
	b.WriteString("}")
	return b.String()
}

// fileStyle overrides the light colours of a file where the reader prefers dark. Light colours are
// unique.
var fileStyle = func() string {
	var b strings.Builder
	b.WriteString("@media(prefers-color-scheme:dark){")
	for r := range palette {
		light, dark := hex(palette[r][Light]), hex(palette[r][Dark])
		for _, property := range []string{"fill", "stroke"} {
			fmt.Fprintf(&b, `[style*="%s:%s"]{%s:%s!important}`, property, light, property, dark)
		}
	}
	b.WriteString("}")
	return b.String()
}()
