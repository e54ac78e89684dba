package page_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/onnxrl/onnxrl/export/serve/page"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// void elements have no end tag.
var void = []string{"meta", "link", "input", "br"}

func get(t *testing.T, h http.Handler, path string) (*http.Response, string) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Result(), w.Body.String()
}

// The markup is well formed, has each id once, no inline script or style, and refers to nothing but
// what the page serves.
func TestMarkup(t *testing.T) {
	h := page.Files()
	r, text := get(t, h, "/")
	if r.StatusCode != 200 || r.Header.Get("Content-Type") != "text/html; charset=utf-8" || !strings.HasPrefix(text, "<!DOCTYPE html>") {
		t.Fatalf("%d %v", r.StatusCode, r.Header)
	}
	if r.Header.Get("Content-Security-Policy") != page.Policy || strings.Contains(page.Policy, "unsafe") || !strings.HasPrefix(page.Policy, "default-src 'none'") {
		t.Errorf("content security policy %q", r.Header.Get("Content-Security-Policy"))
	}
	var open, ids []string
	linked, elements := 0, 0
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		kind := z.Next()
		if kind == html.ErrorToken {
			if !errors.Is(z.Err(), io.EOF) {
				t.Error(z.Err())
			}
			break
		}
		token := z.Token()
		switch kind {
		case html.StartTagToken, html.SelfClosingTagToken:
			elements++
			for _, a := range token.Attr {
				switch {
				case a.Key == "style" || strings.HasPrefix(a.Key, "on"):
					t.Errorf("<%s> has the inline attribute %s", token.Data, a.Key)
				case a.Key == "id" && slices.Contains(ids, a.Val):
					t.Errorf("the id %q is there twice", a.Val)
				case a.Key == "id":
					ids = append(ids, a.Val)
				case a.Key == "href" && token.Data == "a":
				case a.Key == "href" || a.Key == "src":
					linked++
					if r, _ := get(t, h, "/"+a.Val); r.StatusCode != 200 {
						t.Errorf("<%s> refers to %q: status %d", token.Data, a.Val, r.StatusCode)
					}
				}
			}
			if kind == html.StartTagToken && !slices.Contains(void, token.Data) {
				open = append(open, token.Data)
			}
			if token.Data == "style" {
				t.Error("there is a <style> element")
			}
		case html.EndTagToken:
			if len(open) == 0 || open[len(open)-1] != token.Data {
				t.Fatalf("</%s> ends %v", token.Data, open)
			}
			open = open[:len(open)-1]
		case html.TextToken:
			if len(open) > 0 && open[len(open)-1] == "script" {
				t.Error("there is an inline script")
			}
		}
	}
	if len(open) > 0 || linked != 3 || elements < 40 {
		t.Errorf("open at the end: %v; %d links, %d elements", open, linked, elements)
	}
	// The script finds every element that it asks for.
	_, script := get(t, h, "/page/page.js")
	asked := regexp.MustCompile(`\$\('([a-z-]+)'\)`).FindAllStringSubmatch(script, -1)
	for _, m := range asked {
		if !slices.Contains(ids, m[1]) {
			t.Errorf("the script asks for #%s, which is not on the page", m[1])
		}
	}
	if len(asked) < 20 {
		t.Errorf("the script asks for %d elements", len(asked))
	}
}

// Nothing is fetched from elsewhere, nothing is set as markup, and both colour schemes are there.
func TestFilesAreSelfContained(t *testing.T) {
	h := page.Files()
	media := map[string]string{"/": "text/html", "/page/page.css": "text/css", "/page/page.js": "text/javascript", "/page/icon.svg": "image/svg+xml"}
	for path, want := range sorted.All(media) {
		r, text := get(t, h, path)
		if r.StatusCode != 200 || !strings.HasPrefix(r.Header.Get("Content-Type"), want) || r.Header.Get("X-Content-Type-Options") != "nosniff" || len(text) == 0 {
			t.Errorf("%s: %d %v", path, r.StatusCode, r.Header)
		}
		text = strings.ReplaceAll(text, "http://www.w3.org/2000/svg", "")
		for _, bad := range []string{"http:", "https:", "@import", "url(", "innerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "src=\"//", "href=\"//"} {
			if strings.Contains(text, bad) {
				t.Errorf("%s contains %q", path, bad)
			}
		}
	}
	if _, style := get(t, h, "/page/page.css"); !strings.Contains(style, "prefers-color-scheme:dark") {
		t.Error("there is no dark scheme")
	}
	for _, path := range []string{"/page/", "/page/../page.go", "/page/assets/page.js", "/index.html", "/page/data"} {
		if r, _ := get(t, h, path); r.StatusCode == 200 {
			t.Errorf("%s is served", path)
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("POST /: status %d", w.Code)
	}
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
	h := page.Data(source{})
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
	if r, text := get(t, page.Data(source{bad: true}), "/page/data"); r.StatusCode != 500 || !strings.Contains(text, "error") {
		t.Errorf("%d %s", r.StatusCode, text)
	}
}

// What a browser is not needed for: that long names and reasons cannot take the columns' room, and
// that nothing counts the columns by itself. cmd/peers/serve_page.sh looks at the page with ten
// models in a browser.
func TestTableKeepsItsColumns(t *testing.T) {
	h := page.Files()
	_, markup := get(t, h, "/")
	_, style := get(t, h, "/page/page.css")
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
	for _, want := range []string{"td button,.tag{display:inline-block;max-width:23em;overflow:hidden;text-overflow:ellipsis", "tr.why td{white-space:normal;overflow-wrap:anywhere", "h2,h3,legend,#about,#problem,fieldset p{overflow-wrap:anywhere}"} {
		if !strings.Contains(style, want) {
			t.Errorf("the style does not have %s", want)
		}
	}
}
