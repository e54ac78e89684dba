package plots

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"image/png"
	"io"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func days(first string, n int) []time.Time {
	d, _ := time.Parse(time.DateOnly, first)
	all := make([]time.Time, n)
	for i := range all {
		all[i] = d.AddDate(0, 0, i)
	}
	return all
}

func walk(seed uint64, n int) []float64 {
	s := rng.New(seed).Stream()
	y := make([]float64, n)
	v := 1.0
	for i := range y {
		y[i] = v
		v *= math.Exp(0.02 * s.Normal())
	}
	return y
}

// figures draws one of each kind, with gaps, extremes and names that need escaping.
func figures(t *testing.T) []*Figure {
	t.Helper()
	var all []*Figure
	add := func(f *Figure, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	d := days("2019-11-07", 400)
	lines := []Line{{"agent <1> & \"co\"", Agent, walk(1, 400)}, {"benchmark", Benchmark, walk(2, 400)}, {"other", Other, walk(3, 400)}, {"seed", Seed, walk(4, 400)}}
	lines[2].Y[100], lines[2].Y[399] = math.NaN(), 0
	add(Curves(Chart{Name: "linear", Alt: "a & b", Title: "value", Dates: d, Lines: lines, Zero: true, Fill: true, Unit: Percent}))
	add(Curves(Chart{Name: "log", Title: "value", Dates: d, Lines: lines, Log: true}))
	crowd := append(slices.Clone(lines), Line{"3 × alike", Crowd, walk(5, 400)}, Line{"unnamed", Crowd, walk(6, 400)}, Line{"unnamed", Crowd, walk(7, 400)})
	add(Curves(Chart{Name: "crowd", Title: "value", Dates: d, Lines: crowd}))
	gone := Line{"nothing", Agent, make([]float64, 400)}
	add(Curves(Chart{Name: "nothing", Title: "value", Dates: d, Lines: []Line{gone}, Log: true}))
	add(Curves(Chart{Name: "constant", Title: "value", Dates: d, Lines: []Line{gone}}))
	var months []Month
	for m := range 12 {
		months = append(months, Month{2019, m + 1, 0.01 * float64(m-6)})
	}
	add(Months("months", "", append(months, Month{2021, 0, 0.5})))
	add(Months("still months", "", []Month{{2019, 1, 0}}))
	var layersOf []Layer
	for i := range 30 {
		layersOf = append(layersOf, Layer{Name: fmt.Sprint("asset ", i), Y: slices.Repeat([]float64{1.0 / 31}, 400)})
	}
	add(Weights("weights", "", d, append(layersOf, Layer{Name: "cash", Rest: true, Y: slices.Repeat([]float64{1.0 / 31}, 400)})))
	counts := make([][]int, 400)
	for i := range counts {
		counts[i] = []int{i % 3, 1, 2, 0}
	}
	add(Actions("actions", "", d, []string{"hold", "buy", "sell", "wait"}, counts))
	add(Actions("short actions", "", d[:9], []string{"hold", "buy", "sell", "wait"}, counts[:9]))
	x := []float64{0, 5, 50}
	add(Sweep("sweep", "", "basis points", x, []Panel{{"return", Percent, []Line{{"a", Agent, []float64{1, 0.5, math.NaN()}}}}, {"sharpe", Plain, []Line{{"a", Agent, []float64{1, 0.5, -1}}}}}))
	add(Histogram("histogram", "", "share", "return", Percent, lines[:2], 0.5, 1.5, []Mark{{"VaR", 0.7}, {"outside", 3}}))
	add(Curves(Chart{Name: "stretches", Title: "value", Dates: d, Lines: lines, Stretches: []Stretch{{"1 & <2>", d[10], d[90]}, {"at one date", d[90], d[90]}, {"beyond", d[0].AddDate(-1, 0, 0), d[399].AddDate(1, 0, 0)}}}))
	add(Bars("bars", "", "return", Percent, []string{"2019", "2020 & <more>", "2021"}, []Line{{"agent", Agent, []float64{0.1, -2, math.NaN()}}, {"benchmark", Benchmark, []float64{0, 1e-9, math.Inf(1)}}}))
	add(Bars("many bars", "", "count", Plain, make([]string, 300), []Line{{"agent", Agent, walk(5, 300)}}))
	add(Bars("no bars", "", "count", Plain, []string{"a"}, []Line{{"agent", Agent, []float64{math.NaN()}}}))
	return all
}

// Every figure is well-formed, has the same bytes each time, names no colour but through its role,
// and has the size it says.
func TestFigures(t *testing.T) {
	seen := 0
	again := figures(t)
	for i, f := range figures(t) {
		svg, err := f.SVG()
		if err != nil {
			t.Fatal(err)
		}
		inline, err := f.Inline()
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(svg), inline} {
			for dec := xml.NewDecoder(strings.NewReader(text)); ; {
				if _, err := dec.Token(); err == io.EOF {
					break
				} else if err != nil {
					t.Errorf("%s: %v", f.Name, err)
					break
				}
			}
			if strings.Contains(text, "#F0E0") || strings.Contains(text, "NaN") || strings.Contains(text, "Inf") {
				t.Errorf("%s holds a mark or no number", f.Name)
			}
		}
		if hex := regexp.MustCompile(`#[0-9A-F]{6}`).FindString(inline); hex != "" {
			t.Errorf("%s names the colour %s inline", f.Name, hex)
		}
		if strings.Contains(inline, "<style") || !strings.Contains(inline, "var(--plot-") || !strings.Contains(string(svg), "prefers-color-scheme:dark") {
			t.Errorf("%s: styles are not where they belong", f.Name)
		}
		if other, _ := again[i].SVG(); !bytes.Equal(svg, other) {
			t.Errorf("%s differs when it is drawn again", f.Name)
		}
		for _, s := range []Scheme{Light, Dark} {
			data, err := f.PNG(s, 36)
			if err != nil {
				t.Fatal(err)
			}
			m, err := png.Decode(bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			if b := m.Bounds(); math.Abs(float64(b.Dx())-float64(f.Width)/2) > 1 || math.Abs(float64(b.Dy())-float64(f.Height)/2) > 1 {
				t.Errorf("%s is %v, expected half of %g × %g", f.Name, b, f.Width, f.Height)
			}
			want := palette[background][s]
			if r, g, b, _ := m.At(0, 0).RGBA(); uint8(r>>8) != want.R || uint8(g>>8) != want.G || uint8(b>>8) != want.B {
				t.Errorf("%s: the corner is not the background of scheme %d", f.Name, s)
			}
		}
		seen++
	}
	if seen != 16 {
		t.Errorf("%d figures, expected 16", seen)
	}
}

// Every role and opacity comes out of the SVG canvas as its own mark.
func TestTokens(t *testing.T) {
	checked := 0
	for r := range palette {
		for alpha := 1; alpha < 256; alpha += 6 {
			c := vgsvg.New(10, 10)
			c.SetColor(token{role(r), uint8(alpha)})
			var p vg.Path
			p.Move(vg.Point{})
			p.Line(vg.Point{X: 1, Y: 1})
			c.Fill(p)
			var b bytes.Buffer
			if _, err := c.WriteTo(&b); err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(b.String(), "fill:"+token{role: role(r)}.mark()) {
				t.Fatalf("role %d with opacity %d is not in %s", r, alpha, b.String())
			}
			checked++
		}
	}
	if checked != len(palette)*43 {
		t.Errorf("%d tokens checked", checked)
	}
}

// contrast is the ratio of WCAG 2.
func contrast(a, b role, s Scheme) float64 {
	luminance := func(r role) float64 {
		part := func(v uint8) float64 {
			x := float64(v) / 255
			if x <= 0.03928 {
				return x / 12.92
			}
			return math.Pow((x+0.055)/1.055, 2.4)
		}
		c := palette[r][s]
		return 0.2126*part(c.R) + 0.7152*part(c.G) + 0.0722*part(c.B)
	}
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// Text, and lines whose colour their names have, have a contrast of 4.5 to the background (WCAG 2);
// light colours are unique, as the style of files needs.
func TestContrast(t *testing.T) {
	checked := 0
	for _, s := range []Scheme{Light, Dark} {
		for r := ink; r < layer0; r++ {
			if r == grid || r == axis || r == rest {
				continue
			}
			if got := contrast(r, background, s); got < 4.5 {
				t.Errorf("scheme %d: role %d has a contrast of %.2f, expected 4.5", s, r, got)
			}
			checked++
		}
	}
	if checked != 2*int(layer0-ink-3) {
		t.Errorf("%d roles checked", checked)
	}
	unique := map[string]bool{}
	for r := range palette {
		unique[hex(palette[r][Light])] = true
	}
	if len(unique) != len(palette) {
		t.Errorf("%d light colours for %d roles", len(unique), len(palette))
	}
}

// TestPens: no two baselines share colour and dashes, neighbours share neither, and a crowd has one
// pen and one name.
func TestPens(t *testing.T) {
	var all []Line
	for range lines * len(dashes) {
		all = append(all, Line{Name: "baseline"})
	}
	seen := map[string]bool{}
	pens := pensOf(append(all, Line{Kind: Agent}, Line{Kind: Benchmark}))
	for i, p := range pens {
		key := fmt.Sprint(p.role, p.dashes)
		if seen[key] {
			t.Errorf("line %d has the pen of another: %s", i, key)
		}
		if seen[key] = true; i > 0 && (p.role == pens[i-1].role || i < len(all) && slices.Equal(p.dashes, pens[i-1].dashes)) {
			t.Errorf("line %d shares a part of its pen with the one before: %+v", i, p)
		}
	}
	if len(seen) != len(all)+2 {
		t.Errorf("%d pens", len(seen))
	}
	d := days("2020-01-01", 50)
	f, err := Curves(Chart{Name: "crowd", Title: "value", Dates: d, Lines: []Line{{"A", Agent, walk(1, 50)}, {"3 × alike", Crowd, walk(2, 50)}, {"second", Crowd, walk(3, 50)}, {"third", Crowd, walk(4, 50)}}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := f.SVG()
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range sorted.All(map[string]int{">3 × alike<": 1, ">second<": 0, ">third<": 0, ">A<": 1}) {
		if n := strings.Count(string(text), name); n != want {
			t.Errorf("%s is there %d times, expected %d", name, n, want)
		}
	}
}

func TestRefused(t *testing.T) {
	d := days("2020-01-01", 3)
	cases := 0
	for name, err := range sorted.All(map[string]error{
		"one date":       second(Curves(Chart{Dates: d[:1], Lines: []Line{{Y: []float64{1}}}})),
		"no line":        second(Curves(Chart{Dates: d})),
		"other length":   second(Curves(Chart{Dates: d, Lines: []Line{{Y: []float64{1}}}})),
		"equal dates":    second(Curves(Chart{Dates: []time.Time{d[0], d[0]}, Lines: []Line{{Y: []float64{1, 2}}}})),
		"no month":       second(Months("m", "", nil)),
		"month 13":       second(Months("m", "", []Month{{2020, 13, 0}})),
		"no layer":       second(Weights("w", "", d, nil)),
		"short layer":    second(Weights("w", "", d, []Layer{{Y: []float64{1}}})),
		"no counts":      second(Actions("a", "", d, []string{"x"}, nil)),
		"short counts":   second(Actions("a", "", d, []string{"x"}, [][]int{{1}, {1}, {}})),
		"one x":          second(Sweep("s", "", "", []float64{1}, []Panel{{}})),
		"descending x":   second(Sweep("s", "", "", []float64{2, 1}, []Panel{{}})),
		"short sweep":    second(Sweep("s", "", "", []float64{1, 2}, []Panel{{Lines: []Line{{Y: []float64{1}}}}})),
		"unequal panels": second(Sweep("s", "", "", []float64{1, 2}, []Panel{{}, {Lines: []Line{{}}}})),
		"empty range":    second(Histogram("h", "", "", "", Percent, []Line{{Y: []float64{1}}}, 1, 1, nil)),
		"no category":    second(Bars("b", "", "", Plain, nil, []Line{{}})),
		"no bars":        second(Bars("b", "", "", Plain, []string{"a"}, nil)),
		"short bars":     second(Bars("b", "", "", Plain, []string{"a"}, []Line{{}})),
		"empty line":     second(Histogram("h", "", "", "", Percent, []Line{{}}, 0, 1, nil)),
	}) {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		cases++
	}
	if cases != 19 {
		t.Errorf("%d cases", cases)
	}
}

func second(_ *Figure, err error) error { return err }
