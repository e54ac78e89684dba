package onnx

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// svgStyle follows the reader's light or dark setting.
const svgStyle = `
  svg { background: #ffffff; }
  text { font-family: system-ui, sans-serif; fill: #1f2933; text-anchor: middle; font-size: 11px; }
  text.op { font-weight: 600; font-size: 12px; }
  text.dim { fill: #5b6875; font-size: 10px; }
  rect { stroke: #9aa7b5; fill: #eef2f7; }
  rect.in { fill: #dcefdd; }
  rect.out { fill: #fbe4d5; }
  path.edge { fill: none; stroke: #9aa7b5; stroke-width: 1.2; }
  path.tip { fill: #9aa7b5; stroke: none; }
  @media (prefers-color-scheme: dark) {
    svg { background: #14181d; }
    text { fill: #e4e9ee; }
    text.dim { fill: #9aa7b5; }
    rect { stroke: #5d6b7a; fill: #242c35; }
    rect.in { fill: #20402b; }
    rect.out { fill: #4d3323; }
    path.edge { stroke: #5d6b7a; }
    path.tip { fill: #5d6b7a; }
  }
`

// SVG writes a picture of the main graph that needs nothing else to be looked at. Layers go from
// the inputs down to the outputs, with one box per node with the initializers it reads. Edges have
// the value and its type as a tooltip and, where there is room, the type as a label. Colours follow
// the viewer's light or dark setting. It stays readable up to some 300 nodes; [Extract] gives parts
// of larger graphs.
func SVG(w io.Writer, m *Model, types Types) error {
	d := newDrawing(m, types)
	const lineHeight, padX, padY, margin = 14.0, 10.0, 6.0, 20.0
	l := arrange(d, func(i int) (float64, float64) {
		most := 0.0
		for k, s := range d.boxes[i].lines {
			most = max(most, textWidth(s, k == 0))
		}
		return max(most+2*padX, 60), float64(len(d.boxes[i].lines))*lineHeight + 2*padY
	})
	b := bufio.NewWriter(w)
	width, height := l.width+2*margin, l.height+2*margin
	fmt.Fprintf(b, "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"%.0f %.0f %.0f %.0f\" role=\"img\">\n", width, height, -margin, -margin, width, height)
	fmt.Fprintf(b, "<title>%s</title>\n<style>%s</style>\n", xmlText(m.GetGraph().GetName()), svgStyle)
	for i, e := range d.edges {
		drawEdge(b, l, l.paths[i], e)
	}
	for i, n := range d.boxes {
		s := l.spots[i]
		class := map[boxKind]string{inputBox: ` class="in"`, outputBox: ` class="out"`}[n.kind]
		fmt.Fprintf(b, "<g><title>%s</title><rect%s rx=\"6\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>", xmlText(n.title), class, s.x-s.w/2, s.y-s.h/2, s.w, s.h)
		for k, line := range n.lines {
			style := "dim"
			if k == 0 {
				style = "op"
			}
			fmt.Fprintf(b, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">%s</text>", style, s.x, s.y-s.h/2+padY+lineHeight*(float64(k)+0.8), xmlText(line))
		}
		b.WriteString("</g>\n")
	}
	b.WriteString("</svg>\n")
	if err := b.Flush(); err != nil {
		return fmt.Errorf("write svg: %w", err)
	}
	return nil
}

// drawEdge draws a curve that leaves and enters boxes vertically and passes the bends.
func drawEdge(b *bufio.Writer, l *layout, path []int, e edge) {
	from, to := l.spots[path[0]], l.spots[path[len(path)-1]]
	x, y := from.x, from.y+from.h/2
	fmt.Fprintf(b, "<g><title>%s</title><path class=\"edge\" d=\"M%.1f %.1f", xmlText(e.label), x, y)
	for _, id := range path[1:] {
		s := l.spots[id]
		ty := s.y - s.h/2
		if id == path[len(path)-1] {
			ty -= 5
		}
		mid := (y + ty) / 2
		fmt.Fprintf(b, " C%.1f %.1f %.1f %.1f %.1f %.1f", x, mid, s.x, mid, s.x, ty)
		x, y = s.x, ty
	}
	b.WriteString("\"/>")
	top := to.y - to.h/2
	fmt.Fprintf(b, "<path class=\"tip\" d=\"M%.1f %.1f l-3.5 -6 h7 z\"/>", to.x, top)
	// Labels are drawn only on edges between neighbouring layers that have the gap for themselves.
	if len(path) == 2 && len(from.dn) == 1 && len(to.up) == 1 && e.label != "" {
		fmt.Fprintf(b, "<text class=\"dim\" style=\"text-anchor:start\" x=\"%.1f\" y=\"%.1f\">%s</text>", (from.x+to.x)/2+6, (from.y+from.h/2+top)/2+3, xmlText(e.label))
	}
	b.WriteString("</g>\n")
}

// textWidth estimates the width of a line in pixels: what the fonts of browsers need on average,
// with some to spare.
func textWidth(s string, bold bool) float64 {
	per := 5.7
	if bold {
		per = 7
	}
	return per * float64(utf8.RuneCountInString(s))
}

func xmlText(s string) string {
	var b strings.Builder
	// A strings.Builder does not fail. Characters that XML cannot hold are replaced.
	_ = xml.EscapeText(&b, []byte(s))
	return b.String()
}
