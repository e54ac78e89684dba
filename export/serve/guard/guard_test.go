package guard_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/guard"
)

func code(err error) serve.Code {
	if err == nil {
		return -1
	}
	return serve.CodeOf(err)
}

const ok serve.Code = -1

func TestAuthorize(t *testing.T) {
	both, use, admin, none := guard.Tokens{Use: []string{"u"}, Admin: []string{"a"}}, guard.Tokens{Use: []string{"u"}}, guard.Tokens{Admin: []string{"a"}}, guard.Tokens{}
	cases := []struct {
		tokens guard.Tokens
		right  guard.Right
		header string
		want   serve.Code
	}{
		{both, guard.Open, "", ok}, {both, guard.Open, "Bearer x", ok},
		{both, guard.Use, "", serve.Unauthenticated}, {both, guard.Use, "u", serve.Unauthenticated}, {both, guard.Use, "Basic u", serve.Unauthenticated}, {both, guard.Use, "Bearer uu", serve.Unauthenticated}, {both, guard.Use, "Bearer ", serve.Unauthenticated},
		{both, guard.Use, "Bearer u", ok}, {both, guard.Use, "bearer  u", ok}, {both, guard.Use, "Bearer a", ok},
		{both, guard.Administer, "Bearer a", ok}, {both, guard.Administer, "Bearer u", serve.PermissionDenied}, {both, guard.Administer, "", serve.Unauthenticated}, {both, guard.Administer, "Bearer ", serve.Unauthenticated},
		{use, guard.Administer, "Bearer u", ok}, {use, guard.Administer, "", serve.Unauthenticated}, {use, guard.Administer, "Bearer ", serve.Unauthenticated},
		{admin, guard.Use, "", ok}, {admin, guard.Administer, "", serve.Unauthenticated}, {admin, guard.Administer, "Bearer ", serve.Unauthenticated}, {admin, guard.Administer, "Bearer a", ok},
		{none, guard.Use, "", ok}, {none, guard.Administer, "", ok},
	}
	for _, c := range cases {
		g := guard.New(none)
		g.Set(c.tokens)
		if got := code(g.Authorize(c.right, c.header)); got != c.want {
			t.Errorf("%+v, right %d, %q: %v, expected %v", c.tokens, c.right, c.header, got, c.want)
		}
	}
	if len(cases) != 23 {
		t.Error(len(cases))
	}
}

func TestSender(t *testing.T) {
	local, lan := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 8000}
	local6 := &net.TCPAddr{IP: net.IPv6loopback, Port: 8000}
	g := guard.New(guard.Tokens{}, "Models.example.", "box")
	cases := []struct {
		s  guard.Sender
		ok bool
	}{
		// Programs.
		{guard.Sender{Host: "127.0.0.1:8000", Local: local}, true}, {guard.Sender{Host: "localhost:8000", Local: local}, true}, {guard.Sender{Host: "LOCALHOST.", Local: local}, true}, {guard.Sender{Host: "a.localhost", Local: local}, true},
		{guard.Sender{Host: "[::1]:8000", Local: local6}, true}, {guard.Sender{Host: "[::1]", Local: local6}, true}, {guard.Sender{Host: "127.1.2.3", Local: local}, true}, {guard.Sender{Host: "192.0.2.1:8000", Local: local}, true}, {guard.Sender{Host: "0.0.0.0:8000", Local: local}, true}, {guard.Sender{Host: "[::2]:8000", Local: local}, true}, {guard.Sender{Local: local}, true},
		{guard.Sender{Host: "box:8000", Local: local}, true}, {guard.Sender{Host: "models.example", Local: local}, true},
		{guard.Sender{Host: "anything.example", Local: lan}, true}, {guard.Sender{Host: "anything.example"}, true},
		// DNS rebinding: a foreign name on loopback, whatever the page says of itself.
		{guard.Sender{Host: "evil.example:8000", Local: local}, false}, {guard.Sender{Host: "evil.example", Local: local6}, false}, {guard.Sender{Host: "127.0.0.1.evil.example", Local: local}, false}, {guard.Sender{Host: "localhost.evil.example", Local: local}, false},
		{guard.Sender{Host: "evillocalhost", Local: local}, false}, {guard.Sender{Host: "192.0.2.1.evil.example:8000", Local: local}, false},
		{guard.Sender{Host: "evil.example:8000", Local: local, Origin: "http://evil.example:8000", Site: "same-origin"}, false},
		// The server's own page, and its address typed in.
		{guard.Sender{Host: "localhost:8000", Local: local, Origin: "http://localhost:8000", Site: "same-origin"}, true}, {guard.Sender{Host: "localhost:8000", Local: local, Site: "none", Mode: "navigate", Reads: true}, true},
		{guard.Sender{Host: "192.0.2.1:8000", Local: lan, Origin: "http://192.0.2.1:8000"}, true}, // no Fetch Metadata on a network that is not trusted
		// Other sites' pages.
		{guard.Sender{Host: "localhost:8000", Local: local, Origin: "https://evil.example", Site: "cross-site", Mode: "no-cors"}, false}, {guard.Sender{Host: "localhost:8000", Local: local, Origin: "https://evil.example"}, false}, {guard.Sender{Host: "localhost:8000", Local: local, Origin: "null"}, false},
		{guard.Sender{Host: "localhost:8000", Local: local, Site: "cross-site", Mode: "no-cors", Reads: true}, false}, {guard.Sender{Host: "localhost:8000", Local: local, Site: "cross-site", Mode: "cors", Origin: "https://evil.example", Reads: true}, false},
		{guard.Sender{Host: "localhost:8000", Local: local, Site: "cross-site", Mode: "navigate", Origin: "https://evil.example"}, false}, // a form
		{guard.Sender{Host: "localhost:8000", Local: local, Site: "same-site", Origin: "http://localhost:3000"}, false},                   // another program's page on this machine
		{guard.Sender{Host: "localhost:8000", Local: local, Site: "cross-site", Origin: "http://localhost:8000"}, false},                  // the browser knows it better
		{guard.Sender{Host: "192.0.2.1:8000", Local: lan, Origin: "http://192.0.2.1:9000"}, false},
		{guard.Sender{Host: "localhost:8000", Local: local, Site: "cross-site", Mode: "navigate", Reads: true}, true}, // a link to the page
		// Behind a proxy that does not keep the name.
		{guard.Sender{Host: "127.0.0.1:8000", Local: local, Origin: "https://models.example"}, true}, {guard.Sender{Host: "127.0.0.1:8000", Local: local, Origin: "https://models.example.evil"}, false}, {guard.Sender{Host: "x", Origin: "https://models.example:444", Site: "same-site"}, true},
	}
	for _, c := range cases {
		if got := code(g.Sender(c.s)); (got == ok) != c.ok || !c.ok && got != serve.PermissionDenied {
			t.Errorf("%+v: %v, expected to be let in: %t", c.s, got, c.ok)
		}
	}
	if len(cases) != 38 {
		t.Error(len(cases))
	}
	program := guard.Sender{Host: "127.0.0.1:8000", Local: local}
	page := guard.Sender{Host: "localhost:8000", Local: local, Origin: "http://localhost:8000", Site: "same-origin"}
	if n := testing.AllocsPerRun(100, func() {
		if g.Sender(program) != nil || g.Sender(page) != nil || g.Authorize(guard.Use, "") != nil {
			t.Error("refused")
		}
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// A handler behind a guard answers who may ask, and tells the others why not.
func TestHandler(t *testing.T) {
	g := guard.New(guard.Tokens{Use: []string{"u"}}).Advise("--metrics-allow-host")
	h := g.Handler(guard.Use, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "metrics") }))
	local := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8000}
	cases := []struct {
		host, token, site string
		status            int
		says              string
	}{
		{"localhost:8000", "Bearer u", "", 200, "metrics"}, {"localhost:8000", "", "", 401, "a bearer token is needed"}, {"localhost:8000", "Bearer v", "", 401, "a bearer token is needed"},
		{"evil.example", "Bearer u", "", 403, "keeps the name needs --metrics-allow-host"}, {"localhost:8000", "Bearer u", "cross-site", 403, "its name needs --metrics-allow-host"},
	}
	for _, c := range cases {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r = r.WithContext(context.WithValue(r.Context(), http.LocalAddrContextKey, local))
		r.Host = c.host
		r.Header.Set("Authorization", c.token)
		r.Header.Set("Sec-Fetch-Site", c.site)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || (w.Header().Get("WWW-Authenticate") != "") != (c.status == 401) {
			t.Errorf("%+v: %d %v %s", c, w.Code, w.Header(), w.Body)
		}
	}
	if len(cases) != 5 {
		t.Error(len(cases))
	}
}
