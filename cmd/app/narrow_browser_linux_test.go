package app

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/ort"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// tooWide lists the elements of a page that reach beyond the window or have to be scrolled
// sideways, drawings apart.
const tooWide = `[...document.querySelectorAll('body, body *')].filter((e) => !e.closest('svg') && getComputedStyle(e).display !== 'none' && (e.getBoundingClientRect().right > innerWidth + 0.5 || (e.clientWidth > 0 && e.scrollWidth > e.clientWidth + 1 && ['auto', 'scroll'].includes(getComputedStyle(e).overflowX)))).map((e) => e.tagName + ' ' + e.textContent.trim().slice(0, 60))`

// TestPagesOnTelephones visits the pages that are no dashboard in a window of 390 pixels: reports of
// one run, of several seeds and of walk-forward folds, and the page of a server. Nothing is scrolled
// sideways, and no cell of a table has lost what it is. What league, scml tournament and compare say
// is text.
func TestPagesOnTelephones(t *testing.T) {
	longtest.Nightly(t)
	program := os.Getenv(chromiumVar)
	if program == "" {
		t.Skip(chromiumVar + " is not set")
	}
	if !ort.Cgo {
		t.Skip("the pages are the same in every build; they are visited in the one with ONNX Runtime")
	}
	t.Parallel()
	base := strings.NewReplacer("total_env_steps: 400", "total_env_steps: 40", "every_steps: 0}", "every_steps: 20}", "every_steps: 40}", "every_steps: 20}").Replace(apptest.AblationBase)
	// A name and a path that a line cannot hold.
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 30))
	study := apptest.AblationFiles(t, "base: base.yaml\nscheme: {kind: expanding, train: 8m, valid: 2m, test: 3m}\nseeds: [1]\n", base)
	config := filepath.Join(filepath.Dir(study), "base.yaml")
	run := func(args ...string) { apptest.Succeed(t, append(args, "--engine", portable.Name, "-q")...) }
	run("train", config, "--out", filepath.Join(dir, "one"), "--no-publish")
	run("evaluate", filepath.Join(dir, "one"))
	run("train", config, "--seeds", "1,2", "--out", filepath.Join(dir, "seeds"), "--no-publish")
	run("evaluate", filepath.Join(dir, "seeds"))
	run("walkforward", study, "--out", filepath.Join(dir, "walk"))
	files := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer files.Close()
	b := startBrowser(t, program, files.URL)
	b.do(chromedp.EmulateViewport(390, 844))
	visit := func(address, shown string) {
		t.Helper()
		b.do(chromedp.Navigate(address), chromedp.WaitReady(shown, chromedp.ByQuery))
		if list := evaluated[[]string](b, tooWide); len(list) > 0 {
			t.Errorf("%s: %d elements are too wide, such as %q", address, len(list), list[:min(5, len(list))])
		}
		if w := evaluated[int](b, `document.documentElement.scrollWidth`); w > 390 {
			t.Errorf("%s: the page is %d wide", address, w)
		}
	}
	seen := map[string]int{}
	if err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "report.html" {
			return err
		}
		at, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		kind, _, _ := strings.Cut(filepath.ToSlash(at), "/")
		seen[kind]++
		visit(files.URL+(&url.URL{Path: "/" + filepath.ToSlash(at)}).EscapedPath(), "main")
		if n := evaluated[int](b, `[...document.querySelectorAll('thead')].flatMap((h) => [...h.parentElement.querySelectorAll('tbody td:not(:first-child):not(.text)')]).filter((c) => getComputedStyle(c, '::before').content.length < 4).length`); n > 0 {
			t.Errorf("%s: %d cells do not say what they are", at, n)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if len(seen) != 3 {
		t.Errorf("reports %v", seen)
	}
	for _, text := range b.said() {
		if !strings.Contains(text, "favicon") {
			t.Error(text)
		}
	}
	s := apptest.StartServe(t, "--engine", portable.Name, "--model", strings.Repeat("policy", 20)+"="+scaledFile(t, 2))
	b.mu.Lock()
	b.origin = "http://" + s.First.HTTP
	b.mu.Unlock()
	visit("http://"+s.First.HTTP+"/", "#models tbody tr")
}
