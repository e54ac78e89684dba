package page_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve/page"
)

func get(t *testing.T, h http.Handler, path string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Result(), w.Body.String()
}

type source struct{ bad bool }

func (s source) Snapshot() page.Snapshot {
	up := 1.5
	if s.bad {
		up /= 0
		up -= up // not a number
	}
	return page.Snapshot{Server: "onnxrl", UptimeSeconds: up, BoundsUS: []float64{10, 20}, Models: []page.Model{{Name: "<b>", Versions: []page.Version{{Version: "1", Aliases: []string{"prod"}, State: "READY", Stats: page.Stats{Requests: 3, Latency: []uint64{1, 2, 0}}}}}}}
}

func (s source) Describe(model, version string) (page.Description, error) {
	if model != "<b>" || version != "1" {
		return page.Description{}, errors.New("no such version")
	}
	low := -1.0
	return page.Description{Inputs: []page.Port{{Name: "x", Datatype: "FP32", Shape: []int{-1, 2}, Low: []*float64{&low, nil}}}, Sample: map[string]page.Tensor{"x": {Shape: []int{1, 2}, Data: []float32{1, 2}}}}, nil
}

func TestData(t *testing.T) {
	h := page.Handler(source{})
	r, text := get(t, h, "/page/data")
	var snapshot page.Snapshot
	if err := json.Unmarshal([]byte(text), &snapshot); err != nil || r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v: %v", r.StatusCode, r.Header, err)
	}
	if snapshot.Models[0].Versions[0].Stats.Requests != 3 || strings.Contains(text, "<b>") {
		t.Errorf("got %s", text)
	}
	if r, text := get(t, h, "/page/model?name=%3Cb%3E&version=1"); r.StatusCode != 200 || !strings.Contains(text, `"low":[-1,null]`) {
		t.Errorf("%d %s", r.StatusCode, text)
	}
	if r, text := get(t, h, "/page/model?name=x"); r.StatusCode != 404 || text != `{"error":"no such version"}` {
		t.Errorf("%d %s", r.StatusCode, text)
	}
	if r, text := get(t, page.Handler(source{bad: true}), "/page/data"); r.StatusCode != 500 || !strings.Contains(text, "error") {
		t.Errorf("%d %s", r.StatusCode, text)
	}
}

// Checks without a browser: that long names and reasons cannot take the columns' room, and that
// nothing counts the columns by itself. cmd/peers/serve_page.sh looks at the page with ten models
// in a browser.
func TestTableKeepsItsColumns(t *testing.T) {
	h := page.Handler(source{})
	_, markup := get(t, h, "/")
	_, style := get(t, h, "/page/page.css")
	_, kit := get(t, h, "/page/kit.css")
	_, script := get(t, h, "/page/page.js")
	if n := strings.Count(markup, "<th>"); n != 11 {
		t.Errorf("%d headings", n)
	}
	if regexp.MustCompile(`colspan: *[0-9]`).MatchString(script) || strings.Count(script, "colspan: columns()") != 2 {
		t.Error("the script counts columns by itself")
	}
	for _, want := range []string{"title: m.name }, clip(m.name, 30)", "title: a }, clip(a, 16)", "class: m.name === chosen ? 'why chosen' : 'why'", "models.find(ready)"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script does not have %s", want)
		}
	}
	for _, want := range []string{"td button.name{display:inline-block;max-width:24em;", ".tag{max-width:10em;overflow:hidden;text-overflow:ellipsis", "tr.why td{white-space:normal;overflow-wrap:anywhere", "h2,h3,legend,#about,#problem,fieldset p{overflow-wrap:anywhere}"} {
		if !strings.Contains(kit+style, want) {
			t.Errorf("the style does not have %s", want)
		}
	}
}
