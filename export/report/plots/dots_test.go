package plots

import (
	"bytes"
	"math"
	"strings"
	"testing"
)

func TestDots(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		name  string
		dots  []Dot
		marks []Mark
		// says are texts of the drawing.
		says []string
	}{
		{"a level", []Dot{{Name: "30", Kind: Agent, Value: 0.5, Low: 0.4, High: 0.6, Each: []float64{0.4, 0.5, 0.6}}}, []Mark{{"buy-and-hold", 0.45}}, []string{">30<", ">buy-and-hold<", ">0.400<"}},
		{"with a base", []Dot{{Name: "20", Kind: Benchmark, Value: 1, Low: nan, High: nan}, {Name: "30", Value: -2, Low: -3, High: -1, Signed: true}}, nil, []string{">−3.0<"}},
		{"nothing known", []Dot{{Name: "a", Value: nan, Low: nan, High: nan, Each: []float64{nan}}}, []Mark{{"m", nan}}, []string{">a<"}},
		{"one value", []Dot{{Name: "a", Value: 0, Low: 0, High: 0}}, []Mark{{"none", 0}}, []string{">none<"}},
		{"far apart", []Dot{{Name: "a", Value: 1e12, Low: math.Inf(-1), High: math.Inf(1)}, {Name: "b", Value: -1e-12}}, nil, []string{">b<"}},
		{"long names", []Dot{{Name: strings.Repeat("name ", 20), Value: 1}}, []Mark{{strings.Repeat("mark ", 6), 1}}, []string{"…"}},
	}
	for _, c := range cases {
		f, err := Dots("dots", c.name, "title", "unit", Plain, c.dots, c.marks)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		svg, err := f.SVG()
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, s := range append(c.says, ">title<", ">unit<") {
			if !bytes.Contains(svg, []byte(s)) {
				t.Errorf("%s: the drawing does not contain %q:\n%s", c.name, s, svg)
			}
		}
		if bytes.Contains(svg, []byte("NaN")) || bytes.Contains(svg, []byte("Inf")) {
			t.Errorf("%s: not a number in\n%s", c.name, svg)
		}
		again, err := f.SVG()
		if err != nil || !bytes.Equal(svg, again) {
			t.Errorf("%s: drawn again, other bytes (%v)", c.name, err)
		}
		for _, s := range []Scheme{Light, Dark} {
			if image, err := f.PNG(s, 72); err != nil || !bytes.HasPrefix(image, []byte("\x89PNG")) {
				t.Errorf("%s: %v", c.name, err)
			}
		}
	}
	if len(cases) != 6 {
		t.Errorf("%d cases", len(cases))
	}
	if _, err := Dots("dots", "", "", "", Plain, nil, nil); err == nil {
		t.Error("no values: no error")
	}
}
