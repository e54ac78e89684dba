package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"github.com/onnxrl/onnxrl/export/pages/theme"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

//go:embed page.html.tmpl
var pageText string

var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"percent": func(n performance.Number) string { return percent(float64(n)) },
	"level":   func(n performance.Number) string { return percent0(float64(n)) },
	"chance":  func(n performance.Number) string { return Chance(float64(n)) },
	"number":  func(n performance.Number) string { return number(float64(n)) },
	"fine":    func(n performance.Number) string { return fixed(float64(n), 4) },
	"money":   func(x float64) string { return fixed(x, 2) },
	"count":   func(n int) string { return fixed(float64(n), 0) },
	"short":   trimZeros,
	"rate":    percent,
	"show":    show,
	"ratios":  func(v performance.Interval) string { return interval(v, number) },
	"shares":  func(v performance.Interval) string { return interval(v, percent) },
	"join":    func(x []string) string { return strings.Join(x, ", ") },
	"recovery": func(s string) string {
		if s == "" {
			return "not recovered"
		}
		return s
	},
}).Parse(pageText))

// pageData is what the template sees.
type pageData struct {
	*Summary
	Style   template.CSS
	Tone    string // of the verdict: good, plain or bad
	Figures []pageFigure
	Main    [][]string
	Groups  []pageGroup
	Agent   *Result
	Falls   *Result // the benchmark, for its drawdowns
	Seeded  bool
}

type pageFigure struct {
	ID, Heading, Caption string
	SVG                  template.HTML
}

// pageGroup is a part of the table of all metrics: a row for each metric, a column for each
// strategy.
type pageGroup struct {
	Name performance.Group
	Rows []pageRow
}

type pageRow struct {
	performance.Definition
	Values []string
}

// page writes the report as one HTML file without any reference to another.
func page(s *Summary, figures []figure, drawn []drawing) ([]byte, error) {
	d := pageData{Summary: s, Style: template.CSS(theme.Style() + plots.Style()), Main: s.mainTable(), Agent: &s.Strategies[0], Tone: "bad", Seeded: s.Seeds != nil}
	switch {
	case s.Verdict.Evidence:
		d.Tone = "good"
	case s.Verdict.Beats:
		d.Tone = "plain"
	}
	for i := range s.Strategies {
		if s.Strategies[i].Name == s.Benchmark {
			d.Falls = &s.Strategies[i]
		}
	}
	for i, f := range figures {
		// The drawing is made by package plots, which escapes every name that it writes.
		d.Figures = append(d.Figures, pageFigure{f.Name, f.Heading, f.Caption, template.HTML(drawn[i].inline)})
	}
	for k, def := range s.Conventions {
		if len(d.Groups) == 0 || d.Groups[len(d.Groups)-1].Name != def.Group {
			d.Groups = append(d.Groups, pageGroup{Name: def.Group})
		}
		row := pageRow{Definition: def}
		for _, r := range s.Strategies {
			row.Values = append(row.Values, show(r.Metrics[k].Value, def.Unit))
		}
		g := &d.Groups[len(d.Groups)-1]
		g.Rows = append(g.Rows, row)
	}
	var out bytes.Buffer
	if err := pageTemplate.Execute(&out, d); err != nil {
		return nil, fmt.Errorf("report: %s: %w", PageName, err)
	}
	return out.Bytes(), nil
}
