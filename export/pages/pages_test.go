package pages_test

import (
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"golang.org/x/net/html"

	"github.com/onnxrl/onnxrl/export/pages"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// folders have the assets of the pages, and what their markup has at least.
var folders = map[string]struct{ elements, asked int }{
	"../dashboard":  {20, 10},
	"../serve/page": {40, 20},
}

// void elements have no end tag.
var void = []string{"meta", "link", "input", "br"}

// served are the files of a page behind their addresses.
func served(page fs.FS) http.Handler {
	mux := http.NewServeMux()
	pages.Of(page).Handle(mux)
	return mux
}

func get(h http.Handler, path string) (*http.Response, string) {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
	return w.Result(), w.Body.String()
}

// The markup of each page is well formed, has each id once, no inline script or style, and refers to
// nothing but what the page serves; the scripts find every element that they ask for.
func TestMarkup(t *testing.T) {
	for folder, least := range sorted.All(folders) {
		h := served(os.DirFS(folder))
		_, text := get(h, "/")
		if !strings.HasPrefix(text, "<!DOCTYPE html>") {
			t.Fatalf("%s begins with %.20q", folder, text)
		}
		var open, ids, linked []string
		elements := 0
		for z := html.NewTokenizer(strings.NewReader(text)); ; {
			kind := z.Next()
			if kind == html.ErrorToken {
				if !errors.Is(z.Err(), io.EOF) {
					t.Error(folder, z.Err())
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
						t.Errorf("%s: <%s> has the inline attribute %s", folder, token.Data, a.Key)
					case a.Key == "id" && slices.Contains(ids, a.Val):
						t.Errorf("%s: the id %q is there twice", folder, a.Val)
					case a.Key == "id":
						ids = append(ids, a.Val)
					case a.Key == "href" && token.Data == "a":
					case a.Key == "href" || a.Key == "src":
						linked = append(linked, a.Val)
						if r, _ := get(h, "/"+a.Val); r.StatusCode != 200 {
							t.Errorf("%s: <%s> refers to %q: status %d", folder, token.Data, a.Val, r.StatusCode)
						}
					}
				}
				if kind == html.StartTagToken && !slices.Contains(void, token.Data) {
					open = append(open, token.Data)
				}
				if token.Data == "style" {
					t.Errorf("%s: there is a <style> element", folder)
				}
			case html.EndTagToken:
				if len(open) == 0 || open[len(open)-1] != token.Data {
					t.Fatalf("%s: </%s> ends %v", folder, token.Data, open)
				}
				open = open[:len(open)-1]
			case html.TextToken:
				if len(open) > 0 && open[len(open)-1] == "script" {
					t.Errorf("%s: there is an inline script", folder)
				}
			}
		}
		if want := []string{"page/icon.svg", "page/theme.css", "page/kit.css", "page/page.css", "page/page.js"}; !slices.Equal(linked, want) {
			t.Errorf("%s links %v, expected %v", folder, linked, want)
		}
		if len(open) > 0 || elements < least.elements {
			t.Errorf("%s: open at the end: %v; %d elements", folder, open, elements)
		}
		_, script := get(h, "/page/page.js")
		_, kit := get(h, "/page/kit.js")
		for _, m := range regexp.MustCompile(`import \{ (.*) \} from './kit.js'`).FindAllStringSubmatch(script, -1) {
			for _, name := range strings.Split(m[1], ", ") {
				name, _, _ = strings.Cut(name, " as ")
				if !regexp.MustCompile(`export (const|class|function|async function) ` + regexp.QuoteMeta(name) + `\b| ` + regexp.QuoteMeta(name) + ` `).MatchString(kit) {
					t.Errorf("%s imports %s, which the kit does not export", folder, name)
				}
				if strings.Count(script, name) < 2 {
					t.Errorf("%s imports %s and does not use it", folder, name)
				}
			}
		}
		asked := regexp.MustCompile(`\$\('([a-z-]+)'\)`).FindAllStringSubmatch(script+kit, -1)
		for _, m := range asked {
			// The dashboard makes the field of its first view itself.
			if !slices.Contains(ids, m[1]) && m[1] != "filter" {
				t.Errorf("%s: the script asks for #%s, which is not on the page", folder, m[1])
			}
		}
		if len(asked) < least.asked {
			t.Errorf("%s: the scripts ask for %d elements", folder, len(asked))
		}
	}
}

// Every file is served with its type and the headers of security; nothing is fetched from
// elsewhere, nothing is set as markup, and both colour schemes are there.
func TestFilesAreSelfContained(t *testing.T) {
	if !strings.HasPrefix(pages.Policy, "default-src 'none'") || strings.Contains(pages.Policy, "unsafe") {
		t.Error(pages.Policy)
	}
	media := map[string]string{"/": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for folder := range sorted.All(folders) {
		files := pages.Of(os.DirFS(folder))
		h := served(os.DirFS(folder))
		if len(files) != 7 {
			t.Errorf("%s: %d files are served", folder, len(files))
		}
		for at := range sorted.All(files) {
			want, known := media[path.Ext(at)]
			if !known {
				want = media[at]
			}
			r, text := get(h, at)
			if r.StatusCode != 200 || r.Header.Get("Content-Type") != want || r.Header.Get("Content-Security-Policy") != pages.Policy || r.Header.Get("X-Content-Type-Options") != "nosniff" || len(text) < 50 || !files.Has(at) {
				t.Errorf("%s: %s: %d %v", folder, at, r.StatusCode, r.Header)
			}
			text = strings.NewReplacer("http://www.w3.org/2000/svg", "", "http://127.0.0.1:8080", "").Replace(text)
			for _, bad := range []string{"http:", "https:", "@import", "url(", "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "style=", "onclick=\"", "srcdoc", "DOMParser", "createContextualFragment", "src=\"//", "href=\"//"} {
				if strings.Contains(text, bad) {
					t.Errorf("%s: %s contains %q", folder, at, bad)
				}
			}
		}
		for _, at := range []string{"/page/", "/page/../page.go", "/page/assets/page.js", "/index.html", "/page/index.html", "/page/none.js"} {
			if r, _ := get(h, at); r.StatusCode == 200 || files.Has(at) {
				t.Errorf("%s: %s is served", folder, at)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s: POST /: status %d", folder, w.Code)
		}
	}
	if _, style := get(served(os.DirFS("../dashboard")), "/page/theme.css"); !strings.Contains(style, "prefers-color-scheme:dark") || !strings.Contains(style, "[data-theme=dark]") {
		t.Error("there is no dark scheme")
	}
}

// TestFilesRefused: a page that has a file of the kit, or one without a known type, is a mistake.
func TestFilesRefused(t *testing.T) {
	for _, name := range []string{"assets/kit.js", "assets/theme.css", "assets/note.txt"} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, path.Base(name)) {
					t.Errorf("%s: %q", name, said)
				}
			}()
			pages.Of(fstest.MapFS{name: {Data: []byte("x")}})
		}()
	}
}

func TestAnswer(t *testing.T) {
	w := httptest.NewRecorder()
	if err := pages.Answer(w, http.StatusTeapot, map[string]string{"a": "<b>"}); err != nil || w.Code != http.StatusTeapot || strings.Contains(w.Body.String(), "<b>") || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Cache-Control") != "no-store" || w.Header().Get("Content-Security-Policy") != pages.Policy {
		t.Errorf("%v: %d %v %s", err, w.Code, w.Header(), w.Body)
	}
	w = httptest.NewRecorder()
	if err := pages.Answer(w, http.StatusOK, math.NaN()); err == nil || w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "error") {
		t.Errorf("%v: %d %s", err, w.Code, w.Body)
	}
}
