package dashboard

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/pages"
	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

var guardless guard.Tokens

// TestAddresses asks for everything, as the page does, and compares it with the files.
func TestAddresses(t *testing.T) {
	root := t.TempDir()
	trained(t, filepath.Join(root, "r"), 1, "0.1", course(2, 20))
	reported(t, filepath.Join(root, "report"), 5)
	write(t, filepath.Join(root, "w.json"), world)
	b := watching(t, Options{Paths: []string{root}, Explain: func(_ context.Context, q Question) (*Explanation, error) {
		if q.Row > 3 {
			return nil, errors.New("row 4: expected one of 3")
		}
		return &Explanation{Version: q.Version, Row: q.Row, Head: q.Head}, nil
	}})
	s := page(t, b, guardless)
	o := asked[Overview](t, s, "/data/overview")
	if len(o.Runs) != 1 || o.Runs[0].Steps != 190 || !o.Explains || o.Live || len(o.Items) != 3 {
		t.Fatalf("%+v", o)
	}
	id := url.QueryEscape(o.Runs[0].ID)
	if l := asked[[]SeriesData](t, s, "/data/series?tag=train/loss&tag=none&run="+id); len(l) != 1 || l[0].Mean[19] != 2.05 {
		t.Errorf("%+v", l)
	}
	if l := asked[[]Band](t, s, "/data/bands?tag=rollout/ep_rew_mean&run="+id); len(l) != 1 || l[0].Mean[19] != 38 {
		t.Errorf("%+v", l)
	}
	if l := asked[[]Setting](t, s, "/data/settings?run="+id); len(l) != 8 {
		t.Errorf("%+v", l)
	}
	if l := asked[[]Checkpoint](t, s, "/data/checkpoints?id="+id); len(l) != 0 {
		t.Errorf("%+v", l)
	}
	if l := asked[[]FileInfo](t, s, "/data/files?kind=run&id="+id); len(l) != 3 || l[2].Path != metricsFile {
		t.Errorf("%+v", l)
	}
	if r := asked[ReportData](t, s, "/data/report?id="+url.QueryEscape(only(t, b, Report))); len(r.Curves) != 2 {
		t.Errorf("%+v", r)
	}
	if w := asked[WorldData](t, s, "/data/world?id="+url.QueryEscape(only(t, b, World))); w.Days != 2 {
		t.Errorf("%+v", w)
	}
	refused := 0
	for path, status := range sorted.All(map[string]int{
		"/data/overview?since=x": 400, "/data/overview?since=-1": 400, "/data/explain?row=x": 400, "/data/explain?id=none": 404,
		"/data/series?run=none&tag=x": 404, "/data/bands?run=none": 404, "/data/settings?run=none": 404, "/data/checkpoints?id=none": 404, "/data/report?id=none": 404, "/data/population?id=none": 404, "/data/world?id=none": 404,
		"/data/trading?id=none": 404, "/data/artefacts?id=none": 404, "/data/live": 404, "/data/files?kind=run&id=none": 404, "/data/files?kind=none&id=" + id: 404, "/data/file": 404, "/data/none": 404, "/none": 404, "/page/none.js": 404, "/page/../dashboard.go": 404,
		// An id is one of those that are listed, not a path.
		"/data/report?id=" + url.QueryEscape(root): 404, "/data/files?kind=run&id=" + url.QueryEscape(o.Runs[0].ID+"/.."): 404, "/data/files?kind=run&id=" + url.QueryEscape(o.Runs[0].ID+"/"): 404,
	}) {
		if answer, text := request(t, s.URL+path); answer.StatusCode != status {
			t.Errorf("GET %s: %d, expected %d: %s", path, answer.StatusCode, status, text)
		}
		refused++
	}
	if refused != 24 {
		t.Errorf("%d were refused", refused)
	}
	r, err := http.Post(s.URL+"/data/overview", "application/json", strings.NewReader("{}"))
	if err != nil || r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %v %v", r.StatusCode, err)
	}
	r.Body.Close()
}

// TestFileOfRun saves files of a run, and none beside it.
func TestFileOfRun(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "run")
	trained(t, dir, 1, "0.1", course(1, 3))
	write(t, filepath.Join(root, "secret"), "secret")
	write(t, filepath.Join(dir, "sub", "page.html"), "<script>alert(1)</script>")
	if err := os.Symlink(filepath.Join(root, "secret"), filepath.Join(dir, "link")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "w.json"), world)
	b := watching(t, Options{Paths: []string{root}})
	s := page(t, b, guardless)
	at := func(kind, id, path string) string {
		return s.URL + "/data/file?" + url.Values{"kind": {kind}, "id": {id}, "path": {path}}.Encode()
	}
	id := only(t, b, Training)
	want, err := os.ReadFile(filepath.Join(dir, metricsFile))
	if err != nil {
		t.Fatal(err)
	}
	if answer, text := request(t, at("run", id, metricsFile)); answer.StatusCode != 200 || text != string(want) {
		t.Errorf("%d %q", answer.StatusCode, text)
	}
	// Files of a run are saved, never shown as a page of this origin.
	answer, text := request(t, at("run", id, "sub/page.html"))
	if h := answer.Header; text != "<script>alert(1)</script>" || h.Get("Content-Type") != "application/octet-stream" || !strings.HasPrefix(h.Get("Content-Disposition"), "attachment") || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != pages.Policy {
		t.Errorf("%v", h)
	}
	if answer, text := request(t, at("world", only(t, b, World), "w.json")); answer.StatusCode != 200 || text != world {
		t.Errorf("%d", answer.StatusCode)
	}
	for _, path := range []string{"../secret", "sub/../../secret", "/etc/passwd", filepath.Join(root, "secret"), "link", "sub", "", ".", "none", "..\\secret", "sub/page.html\x00", "%2e%2e/secret"} {
		if answer, text := request(t, at("run", id, path)); answer.StatusCode != 404 || strings.Contains(text, `"secret"`) && !strings.Contains(text, "error") {
			t.Errorf("%q: %d %s", path, answer.StatusCode, text)
		}
	}
	if answer, text := request(t, at("world", only(t, b, World), "secret")); answer.StatusCode != 404 {
		t.Errorf("beside a world: %d %s", answer.StatusCode, text)
	}
}

// TestHostileNames has folders, tags and texts that try to be something else.
func TestHostileNames(t *testing.T) {
	root := t.TempDir()
	name := "<img src=x onerror=alert(1)>'&+;% #"
	if runtime.GOOS == "windows" {
		name = "'&+;% #"
	} else {
		name += "\"\n"
	}
	tag := `</script><b>"\` + "\u2028"
	trained(t, filepath.Join(root, name), 1, `"</textarea>"`, []map[string]float64{{tag: 5}})
	b := watching(t, Options{Paths: []string{root}})
	s := page(t, b, guardless)
	answer, text := request(t, s.URL+"/data/overview")
	if strings.Contains(text, "<img") || strings.Contains(text, "</script") || answer.Header.Get("Content-Type") != "application/json" || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%s", text)
	}
	o := asked[Overview](t, s, "/data/overview")
	if len(o.Runs) != 1 || o.Runs[0].ID != filepath.ToSlash(filepath.Join(root, name)) || o.Runs[0].Tags[0] != tag {
		t.Fatalf("%+v", o.Runs)
	}
	l := asked[[]SeriesData](t, s, "/data/series?"+url.Values{"run": {o.Runs[0].ID}, "tag": {tag}}.Encode())
	if len(l) != 1 || l[0].Mean[0] != 5 {
		t.Errorf("%+v", l)
	}
	// Broken documents beside the metrics say less, and break nothing.
	for _, file := range []string{"lineage.json", "config.yaml", "finished.json"} {
		write(t, filepath.Join(root, name, file), "a: {]")
	}
	refresh(t, b)
	if r := b.Overview(0).Runs; len(r) != 1 || r[0].Steps != 0 || r[0].Points != 1 {
		t.Errorf("%+v", r)
	}
	if answer, text := request(t, s.URL+"/data/settings?"+url.Values{"run": {o.Runs[0].ID}}.Encode()); answer.StatusCode != 500 || !strings.Contains(text, "configuration of") {
		t.Errorf("%d %s", answer.StatusCode, text)
	}
}

// TestRights has the rules of the project's server: tokens, and other sites' pages.
func TestRights(t *testing.T) {
	b := watching(t, Options{Paths: []string{t.TempDir()}})
	s := page(t, b, guard.Tokens{Use: []string{"open"}})
	cases := 0
	for _, c := range []struct {
		path    string
		headers []string
		want    int
	}{
		{"/", nil, 200}, {"/page/page.js", nil, 200}, {"/page/page.css", nil, 200}, {"/page/kit.js", nil, 200}, {"/page/icon.svg", nil, 200},
		{"/data/overview", nil, 401}, {"/data/overview", []string{"Authorization", "Bearer wrong"}, 401}, {"/data/overview", []string{"Authorization", "open"}, 401}, {"/data/overview?token=open", nil, 401}, {"/data/overview", []string{"Authorization", "Bearer open"}, 200},
		{"/data/file", nil, 401}, {"/data/events", nil, 401}, {"/data/none", nil, 401}, {"/none", nil, 401},
		{"/data/overview", []string{"Authorization", "Bearer open", "Origin", "https://evil.example"}, 403},
		{"/data/overview", []string{"Authorization", "Bearer open", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, 403},
		{"/data/overview", []string{"Authorization", "Bearer open", "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"/page/page.js", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"/data/overview", []string{"Authorization", "Bearer open", "Sec-Fetch-Site", "same-origin"}, 200},
		{"/", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"/", []string{"Host", "evil.example"}, 403}, {"/data/overview", []string{"Authorization", "Bearer open", "Host", "evil.example:80"}, 403}, {"/data/overview", []string{"Authorization", "Bearer open", "Host", "localhost"}, 200},
	} {
		answer, text := request(t, s.URL+c.path, c.headers...)
		if answer.StatusCode != c.want {
			t.Errorf("GET %s %v: %d, expected %d: %s", c.path, c.headers, answer.StatusCode, c.want, text)
		}
		if c.want == 401 && answer.Header.Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("GET %s: %v", c.path, answer.Header)
		}
		cases++
	}
	if cases != 23 {
		t.Errorf("%d cases ran", cases)
	}
}

// TestEvents listens as a page does, to the end of the board.
func TestEvents(t *testing.T) {
	root := t.TempDir()
	dir := filepath.Join(root, "r")
	trained(t, dir, 1, "0.1", course(1, 3))
	b := watching(t, Options{Paths: []string{root}, Interval: time.Millisecond})
	s := page(t, b, guardless)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/data/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.Header.Get("Content-Type") != "text/event-stream" {
		t.Error(answer.Header)
	}
	lines := bufio.NewScanner(answer.Body)
	next := func() int {
		for lines.Scan() {
			if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				var e struct{ Version int }
				if err := json.Unmarshal([]byte(text), &e); err != nil {
					t.Fatal(err)
				}
				return e.Version
			}
		}
		t.Fatal(lines.Err())
		return 0
	}
	first := next()
	for i := range 3 {
		extend(t, filepath.Join(dir, metricsFile), "{\"step\":500,\"x\":1}\n")
		refresh(t, b)
		if v := next(); v != first+1+i || v != b.Overview(0).Version {
			t.Errorf("version %d after %d", v, first)
		}
	}
	// The board lets go of a page that has gone.
	stop()
	for n := 1; n > 0; runtime.Gosched() {
		b.mu.RLock()
		n = len(b.listeners)
		b.mu.RUnlock()
	}
}

// TestManyReaders asks while runs are read; the race detector looks on.
func TestManyReaders(t *testing.T) {
	root := t.TempDir()
	for i := range 4 {
		trained(t, filepath.Join(root, string(rune('a'+i))), i, "0.1", course(1, 20))
	}
	b := watching(t, Options{Paths: []string{root}})
	s := page(t, b, guardless)
	ids := append([]string{}, b.order...)
	done := make(chan error)
	for range 4 {
		go func() {
			var err error
			for range 20 {
				for _, path := range []string{"overview", "bands?tag=train/loss", "series?tag=train/loss", "settings"} {
					at := s.URL + "/data/" + path
					if strings.Contains(path, "tag") {
						at += "&" + url.Values{"run": ids}.Encode()
					}
					r, e := http.Get(at)
					if e != nil || r.StatusCode != 200 {
						err = errors.Join(err, errors.New(at), e)
						continue
					}
					r.Body.Close()
				}
			}
			done <- err
		}()
	}
	for i := range 50 {
		extend(t, filepath.Join(root, string(rune('a'+i%4)), metricsFile), "{\"step\":500,\"train/loss\":1}\n")
		refresh(t, b)
	}
	for range 4 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
