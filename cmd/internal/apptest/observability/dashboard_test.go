package observability

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"

	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// board is a dashboard.
type board struct {
	name, title, about string
	part               metrics.Part
	variables          []variable
	rows               []row
}

// variable is a choice at the top of a dashboard: all values of a label.
type variable struct{ name, label, metric, of string }

type row struct {
	title  string
	panels []panel
}

// panel is a picture. The kind is that of Grafana: timeseries or stat.
type panel struct {
	kind, title, about, unit string
	width                    int
	queries                  []query
	// red is from which value on a stat is red; 0 for never.
	red float64
	// stacked says that series are areas upon each other, log that the axis is logarithmic.
	stacked, log bool
}

type query struct{ expr, legend string }

func one(expr, legend string) []query { return []query{{expr, legend}} }

// boards are all dashboards.
func boards() []board {
	return []board{trainingBoard(), populationBoard(), servingBoard(), tradingBoard()}
}

const columns, height, small = 24, 8, 4

var source = map[string]any{"type": "prometheus", "uid": "${datasource}"}

// encode writes the dashboard as Grafana reads it.
func (b board) encode() ([]byte, error) {
	list := []any{map[string]any{"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus", "hide": 0, "multi": false, "includeAll": false, "refresh": 1, "regex": "", "options": []any{}}}
	for _, v := range b.variables {
		list = append(list, map[string]any{
			"name": v.name, "label": v.label, "type": "query", "datasource": source, "query": map[string]any{"query": v.query(), "refId": "variable"}, "definition": v.query(),
			"multi": true, "includeAll": true, "allValue": ".*", "current": map[string]any{"selected": true, "text": []string{"All"}, "value": []string{"$__all"}}, "refresh": 2, "sort": 1, "regex": "", "hide": 0, "options": []any{},
		})
	}
	panels, id, y := []any{}, 0, 0
	for _, r := range b.rows {
		id++
		panels = append(panels, map[string]any{"id": id, "type": "row", "title": r.title, "collapsed": false, "gridPos": place(0, y, columns, 1), "panels": []any{}})
		x, high := 0, 0
		y++
		for _, p := range r.panels {
			h := height
			if p.kind == "stat" {
				h = small
			}
			if x+p.width > columns {
				x, y, high = 0, y+high, 0
			}
			id++
			panels = append(panels, p.encode(id, place(x, y, p.width, h)))
			x, high = x+p.width, max(high, h)
		}
		y += high
	}
	doc := map[string]any{
		"uid": "onnxrl-" + b.name, "title": b.title, "description": b.about, "tags": []string{"onnxrl"}, "timezone": "browser", "editable": true, "graphTooltip": 1, "schemaVersion": 39, "version": 1, "fiscalYearStartMonth": 0,
		"refresh": "10s", "time": map[string]any{"from": "now-1h", "to": "now"}, "templating": map[string]any{"list": list}, "annotations": map[string]any{"list": []any{}}, "panels": panels,
		"links": []any{map[string]any{"title": "onnxrl", "type": "dashboards", "icon": "external link", "tooltip": "", "url": "", "tags": []string{"onnxrl"}, "asDropdown": true, "targetBlank": false, "includeVars": false, "keepTime": true}},
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	err := enc.Encode(doc)
	return out.Bytes(), err
}

func (v variable) query() string { return fmt.Sprintf("label_values(%s, %s)", v.metric, v.of) }

func place(x, y, w, h int) map[string]any { return map[string]any{"x": x, "y": y, "w": w, "h": h} }

func (p panel) encode(id int, at map[string]any) map[string]any {
	var targets []any
	for i, q := range p.queries {
		targets = append(targets, map[string]any{
			"refId": string(rune('A' + i)), "datasource": source, "expr": q.expr, "legendFormat": q.legend, "editorMode": "code", "range": p.kind != "stat", "instant": p.kind == "stat",
		})
	}
	steps := []any{map[string]any{"color": "green", "value": nil}}
	if p.red != 0 {
		steps = append(steps, map[string]any{"color": "red", "value": p.red})
	}
	mode := "palette-classic"
	if p.kind == "stat" {
		mode = "thresholds"
	}
	defaults := map[string]any{"unit": p.unit, "color": map[string]any{"mode": mode}, "thresholds": map[string]any{"mode": "absolute", "steps": steps}}
	options := map[string]any{
		"reduceOptions": map[string]any{"calcs": []string{"lastNotNull"}, "fields": "", "values": false}, "orientation": "auto", "textMode": "auto", "colorMode": "value", "graphMode": "area", "justifyMode": "auto", "wideLayout": true, "showPercentChange": false, "percentChangeColorMode": "standard",
	}
	if p.kind == "timeseries" {
		custom := map[string]any{"lineWidth": 1, "fillOpacity": 0, "showPoints": "never", "spanNulls": true}
		if p.stacked {
			custom["fillOpacity"], custom["stacking"] = 40, map[string]any{"mode": "normal", "group": "A"}
		}
		if p.log {
			custom["scaleDistribution"] = map[string]any{"type": "log", "log": 10}
		}
		defaults["custom"] = custom
		options = map[string]any{"legend": map[string]any{"displayMode": "list", "placement": "bottom", "showLegend": true, "calcs": []string{}}, "tooltip": map[string]any{"mode": "multi", "sort": "desc"}}
	}
	return map[string]any{"id": id, "type": p.kind, "title": p.title, "description": p.about, "datasource": source, "gridPos": at, "targets": targets, "fieldConfig": map[string]any{"defaults": defaults, "overrides": []any{}}, "options": options}
}

// TestDashboards compares the dashboards with their tables, and checks them against Grafana's
// schema, as its Foundation SDK has it: unknown keys, wrong types and missing fields of dashboard,
// panels, queries and options are errors.
func TestDashboards(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	n := 0
	for _, b := range boards() {
		text, err := b.encode()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(watched, "grafana/dashboards", b.name+".json")
		if *update {
			if err := os.WriteFile(path, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what its table says (%v): go test ./cmd/internal/apptest/observability -run Dashboards -update", path, err)
		}
		var doc classic
		if err := problems(doc.UnmarshalJSONStrict(got)); err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		if err := problems(doc.Validate()); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		n += len(doc.Panels)
	}
	if n < 60 {
		t.Errorf("%d panels and rows", n)
	}
	files, err := filepath.Glob(filepath.Join(watched, "grafana/dashboards/*.json"))
	if err != nil || len(files) != len(boards()) {
		t.Errorf("%d files, %v", len(files), err)
	}
	// The texts that the schema refuses.
	text, _ := boards()[0].encode()
	for _, change := range [][2]string{{`"expr"`, `"expression"`}, {`"refId": "A"`, `"refId": 1`}, {`"gridPos"`, `"gridPosition"`}, {`"legend": {`, `"legends": {`}} {
		var doc classic
		if problems(doc.UnmarshalJSONStrict([]byte(strings.Replace(string(text), change[0], change[1], 1)))) == nil {
			t.Errorf("a dashboard with %s passes", change[1])
		}
	}
}

// classic is the form of dashboards that Grafana provisions from files; the SDK wants new code to
// write its second form, which needs Grafana's API.
//
//lint:ignore SA1019 see above
type classic = dashboard.Dashboard

// problems is nil for an empty list of errors, which is what the SDK returns where there are none.
func problems(err error) error {
	if list := (cog.BuildErrors)(nil); errors.As(err, &list) && len(list) == 0 {
		return nil
	}
	return err
}

// metricName finds metrics in a query.
var metricName = regexp.MustCompile(`\b(onnxrl|nv)_[a-z0-9_]+\b`)

// metricsOf lists the metrics of a query by their names in the table; a histogram's series are it.
func metricsOf(t *testing.T, expr string) (list []metrics.Metric) {
	t.Helper()
	table := metrics.All()
	for _, name := range metricName.FindAllString(expr, -1) {
		i := slices.IndexFunc(table, func(m metrics.Metric) bool {
			if m.Type == metrics.Histogram {
				return name == m.Name+"_bucket" || name == m.Name+"_sum" || name == m.Name+"_count"
			}
			return name == m.Name
		})
		if i < 0 {
			t.Errorf("%s: there is no metric %s", expr, name)
			continue
		}
		list = append(list, table[i])
	}
	return list
}

// selector finds the labels that a query selects or groups by.
var (
	selector = regexp.MustCompile(`([a-z0-9_]+)\{([^}]*)\}`)
	matcher  = regexp.MustCompile(`([a-z_]+)(?:=~|!~|!=|=)"`)
)

// Queries name metrics and labels of the table only, and every metric is on some dashboard.
func TestQueries(t *testing.T) {
	shown, queries := map[string]bool{}, 0
	for _, b := range boards() {
		for _, v := range b.variables {
			for _, m := range metricsOf(t, v.metric) {
				if !slices.Contains(m.Labels, v.of) && v.of != "instance" {
					t.Errorf("%s: %s has no label %s", b.name, m.Name, v.of)
				}
			}
		}
		for _, r := range b.rows {
			for _, p := range r.panels {
				if p.about == "" || p.title == "" || p.unit == "" || p.width == 0 || len(p.queries) == 0 {
					t.Errorf("%s: %s lacks something: %+v", b.name, p.title, p)
				}
				for _, q := range p.queries {
					queries++
					for _, m := range metricsOf(t, q.expr) {
						shown[m.Name] = true
					}
					for _, s := range selector.FindAllStringSubmatch(q.expr, -1) {
						list := metricsOf(t, s[1])
						for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
							if len(list) == 1 && !slices.Contains(list[0].Labels, l[1]) && l[1] != "job" && l[1] != "instance" {
								t.Errorf("%s: %s: %s has no label %s", b.name, p.title, s[1], l[1])
							}
						}
					}
				}
			}
		}
	}
	for _, m := range metrics.All() {
		if !shown[m.Name] {
			t.Errorf("%s is on no dashboard", m.Name)
		}
	}
	if queries < 70 {
		t.Errorf("%d queries", queries)
	}
}
