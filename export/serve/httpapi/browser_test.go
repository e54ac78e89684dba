package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Requests that a page of another site can send reach nothing that changes or tells
// something; the server's own page, curl and Triton's clients are answered.
func TestBrowsers(t *testing.T) {
	s := &oiptest.Service{}
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write([]byte("page")) })
	ts := start(t, s, Options{Guard: guard.New(guard.Tokens{}, "models.example"), Page: page})
	own := ts.URL
	const load, unload, infer = "/v2/repository/models/m/load", "/v2/repository/models/add/unload", "/v2/models/seq/infer"
	const step = `{"inputs":[],"parameters":{"sequence_id":3,"sequence_start":true}}`
	from := func(origin, site, mode string, more ...string) []string {
		return append([]string{"Origin", origin, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", mode}, more...)
	}
	json, text, form := []string{"Content-Type", "application/json; charset=utf-8"}, []string{"Content-Type", "text/plain"}, []string{"Content-Type", "application/x-www-form-urlencoded"}
	cases := []struct {
		method, path, body string
		header             []string
		status             int
	}{
		// Another site's page: by fetch without a preflight, by a form, by a preflight, and by what
		// only reads.
		{"POST", load, "{}", from("https://evil.example", "cross-site", "no-cors", text...), 403},
		{"POST", load, "{}", from("https://evil.example", "cross-site", "no-cors"), 403},
		{"POST", load, "a=b", from("https://evil.example", "cross-site", "navigate", form...), 403},
		{"POST", unload, "", from("http://localhost:3000", "same-site", "cors", json...), 403},
		{"POST", unload, "", from("null", "cross-site", "cors", json...), 403},
		{"POST", infer, step, from("https://evil.example", "cross-site", "no-cors", text...), 403},
		{"POST", "/v2/models/one/infer", one, from("https://evil.example", "cross-site", "no-cors", text...), 403},
		{"OPTIONS", load, "", from("https://evil.example", "cross-site", "cors", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "content-type"), 403},
		{"GET", "/v2/models/add", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}, 403},
		{"GET", "/metrics", "", from("https://evil.example", "cross-site", "cors"), 403},
		{"POST", load, "{}", []string{"Origin", "https://evil.example", "Content-Type", "application/json"}, 403},
		// DNS rebinding.
		{"POST", load, "{}", from("http://evil.example", "same-origin", "cors", "Content-Type", "application/json", "Host", "evil.example"), 403},
		{"GET", "/v2", "", []string{"Host", "evil.example:8000"}, 403},
		{"GET", "/", "", []string{"Host", "evil.example:8000"}, 403},
		{"GET", "/v2/health/ready", "", []string{"Host", "evil.example"}, 403},
		// The media type.
		{"POST", load, "{}", text, 415}, {"POST", load, "{}", form, 415}, {"POST", load, "{}", []string{"Content-Type", "application/octet-stream"}, 415}, {"POST", unload, "{}", []string{"Content-Type", "multipart/form-data; boundary=x"}, 415},
		{"POST", infer, step, text, 415}, {"POST", infer, step, form, 415},
		{"POST", load, "{}", from(own, "same-origin", "cors"), 415}, // a blob without a type
		// The server's own page, and a link to it.
		{"POST", "/v2/models/one/infer", one, from(own, "same-origin", "cors", json...), 200},
		{"POST", infer, step, from(own, "same-origin", "cors", json...), 200},
		{"POST", load, "{}", from(own, "same-origin", "cors", json...), 200},
		{"GET", "/", "", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, 200},
		{"GET", "/v2", "", []string{"Sec-Fetch-Site", "none", "Sec-Fetch-Mode", "navigate"}, 200},
		// The page behind a proxy.
		{"POST", infer, step, []string{"Origin", "https://models.example", "Content-Type", "application/json"}, 200},
		{"POST", infer, step, from("https://models.example", "same-origin", "cors", "Content-Type", "application/json", "Host", "models.example"), 200},
		// curl -X POST, curl -d for what changes nothing, curl -H; Triton's clients give no media
		// type.
		{"POST", load, "", nil, 200}, {"POST", "/v2/models/one/infer", one, form, 200}, {"POST", load, "{}", json, 200}, {"POST", unload, `{"parameters":{"unload_dependents":false}}`, nil, 200}, {"POST", infer, step, nil, 200},
		{"POST", infer, step, []string{"Content-Type", "application/octet-stream", oip.HeaderLength, itoa(len(step))}, 200},
	}
	for i, c := range cases {
		resp, body := do(t, ts, c.method, c.path, c.body, c.header...)
		if resp.StatusCode != c.status || c.status >= 400 && !strings.HasPrefix(body, `{"error":`) {
			t.Errorf("%d: %s %s %v: %d %s, expected %d", i, c.method, c.path, c.header, resp.StatusCode, body, c.status)
		}
		for name := range sorted.All(resp.Header) {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%d: header %s lets other sites' pages in", i, name)
			}
		}
	}
	if len(cases) != 35 {
		t.Error(len(cases))
	}
	if got := strings.Join(s.Loaded(), "; "); got != "load m  0; load m  0; load m  0; unload add" {
		t.Errorf("loads %q", got)
	}
}

// Administration has a token of its own, and new ones count at once.
func TestAdministration(t *testing.T) {
	g := guard.New(guard.Tokens{Use: []string{"use"}, Admin: []string{"admin"}})
	ts := start(t, &oiptest.Service{}, Options{Guard: g})
	n := 0
	check := func(token string, use, admin int) {
		t.Helper()
		for _, path := range []string{"/v2/repository/models/m/load", "/v2/repository/models/add/unload"} {
			if resp, answer := do(t, ts, "POST", path, "", "Authorization", "Bearer "+token); resp.StatusCode != admin || (admin == 401) != (resp.Header.Get("WWW-Authenticate") == "Bearer") {
				t.Errorf("%s with %q: %d %s, expected %d", path, token, resp.StatusCode, answer, admin)
			}
			n++
		}
		for _, path := range []string{"/v2/repository/index", "/v2/models/one/infer"} {
			if resp, answer := do(t, ts, "POST", path, one, "Authorization", "Bearer "+token); resp.StatusCode != use {
				t.Errorf("%s with %q: %d %s, expected %d", path, token, resp.StatusCode, answer, use)
			}
			n++
		}
	}
	check("use", 200, 403)
	check("admin", 200, 200)
	check("", 401, 401)
	g.Set(guard.Tokens{Use: []string{"new"}, Admin: []string{"newer"}})
	check("use", 401, 401)
	check("admin", 401, 401)
	check("new", 200, 403)
	check("newer", 200, 200)
	if n != 28 {
		t.Error(n)
	}
}
