package httpapi

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func itoa(n int) string { return strconv.Itoa(n) }

func atoi(t *testing.T, s string) int {
	t.Helper()
	n, err := strconv.Atoi(s)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

const one = `{"inputs":[{"name":"x","shape":[1,3],"datatype":"FP32","data":[1,2,3]}]}`

func pack(t *testing.T, encoding, text string) string {
	t.Helper()
	var b bytes.Buffer
	var z io.WriteCloser
	switch encoding {
	case "gzip":
		z = gzip.NewWriter(&b)
	case "zlib":
		z = zlib.NewWriter(&b)
	default:
		var err error
		if z, err = flate.NewWriter(&b, 9); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := io.WriteString(z, text); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestCompression(t *testing.T) {
	ts := start(t, &oiptest.Service{}, Options{MaxBody: 10000})
	bomb := strings.Repeat(" ", 1<<20) + one
	cases := []struct {
		encoding, body string
		status         int
	}{
		{"gzip", pack(t, "gzip", one), 200}, {"deflate", pack(t, "zlib", one), 200}, {"deflate", pack(t, "flate", one), 200}, {"identity", one, 200},
		{"gzip", pack(t, "gzip", bomb), 413}, {"deflate", pack(t, "zlib", bomb), 413}, {"deflate", pack(t, "flate", bomb), 413},
		{"gzip", pack(t, "gzip", one)[:20], 400}, {"gzip", "not gzip", 400}, {"deflate", "", 400}, {"deflate", "\xff\xff\xff", 400}, {"gzip", "", 400}, {"br", one, 415},
	}
	for i, c := range cases {
		if resp, answer := do(t, ts, "POST", "/v2/models/one/infer", c.body, "Content-Encoding", c.encoding); resp.StatusCode != c.status {
			t.Errorf("%d: %d %s, expected %d", i, resp.StatusCode, answer, c.status)
		}
	}
	if len(cases) != 13 {
		t.Error(len(cases))
	}
	// Large answers are compressed when that is asked for.
	long := `{"inputs":[{"name":"x","shape":[1000],"datatype":"UINT8","data":[` + strings.Repeat("7,", 999) + `7]}]}`
	for accept, want := range sorted.All(map[string]string{"gzip": "gzip", "deflate": "deflate", "br, gzip;q=0.5": "gzip", "gzip;q=0": "", "identity": ""}) {
		resp, answer := do(t, ts, "POST", "/v2/models/echo/infer", long, "Accept-Encoding", accept)
		if resp.Header.Get("Content-Encoding") != want || resp.ContentLength != int64(len(answer)) {
			t.Errorf("%s: %v", accept, resp.Header)
		}
		var z io.Reader = strings.NewReader(answer)
		var err error
		switch want {
		case "gzip":
			z, err = gzip.NewReader(z)
		case "deflate":
			z, err = zlib.NewReader(z)
		}
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(z); err != nil || !strings.HasPrefix(string(b), `{"model_name":"echo"`) || !strings.HasSuffix(string(b), `7]}]}`) {
			t.Errorf("%s: %v", accept, err)
		}
	}
}

func TestToken(t *testing.T) {
	ts := start(t, &oiptest.Service{}, Options{Guard: guard.New(guard.Tokens{Use: []string{"secret"}})})
	for _, c := range []struct {
		path, header string
		status       int
	}{
		{"/v2", "", 401}, {"/v2", "Bearer secre", 401}, {"/v2", "Bearer secret2", 401}, {"/v2", "Basic secret", 401}, {"/v2", "secret", 401},
		{"/v2", "Bearer secret", 200}, {"/v2", "bearer  secret", 200}, {"/v2/health/live", "", 200}, {"/v2/health/ready", "", 200}, {"/v2/models/add", "", 401}, {"/metrics", "", 401}, {"/", "", 401}, {"/v2/models/..%2f", "", 401},
	} {
		resp, answer := do(t, ts, "GET", c.path, "", "Authorization", c.header)
		if resp.StatusCode != c.status || (c.status == 401) != (resp.Header.Get("WWW-Authenticate") == "Bearer") {
			t.Errorf("%s %q: %d %s", c.path, c.header, resp.StatusCode, answer)
		}
	}
}

// While one inference runs that may run alone, the next is refused at once, and everything else is
// answered.
func TestConcurrency(t *testing.T) {
	s := &oiptest.Service{Slow: make(chan struct{})}
	ts := start(t, s, Options{MaxConcurrent: 1})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		r, err := http.NewRequestWithContext(ctx, "POST", ts.URL+"/v2/models/slow/infer", strings.NewReader(`{"inputs":[]}`))
		if err == nil {
			_, err = ts.Client().Do(r) //nolint:bodyclose // it fails
		}
		done <- err
	}()
	<-s.Slow
	if resp, answer := do(t, ts, "POST", "/v2/models/one/infer", one); resp.StatusCode != 429 || answer != `{"error":"1 inferences are running or waiting; try again later"}` {
		t.Error(resp.StatusCode, answer)
	}
	if resp, _ := do(t, ts, "GET", "/v2/models/one", ""); resp.StatusCode != 200 {
		t.Error(resp.StatusCode)
	}
	// The client goes away, which cancels its inference, which frees the place.
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for {
		resp, _ := do(t, ts, "POST", "/v2/models/one/infer", one)
		if resp.StatusCode == 200 {
			break
		}
		if resp.StatusCode != 429 {
			t.Fatal(resp.StatusCode)
		}
	}
}

func TestBuffered(t *testing.T) {
	ts := start(t, &oiptest.Service{}, Options{MaxBuffered: 100 << 10})
	if resp, answer := do(t, ts, "POST", "/v2/models/one/infer", one+strings.Repeat(" ", 200<<10)); resp.StatusCode != 429 || !strings.Contains(answer, "the bodies of all requests") {
		t.Error(resp.StatusCode, answer)
	}
	for range 10 { // what was counted is given back
		if resp, answer := do(t, ts, "POST", "/v2/models/one/infer", one+strings.Repeat(" ", 50<<10)); resp.StatusCode != 200 {
			t.Fatal(resp.StatusCode, answer)
		}
	}
}

// Clients that send half a header, half a body, or less than they announce are cut off; others are
// answered meanwhile.
func TestSlowClients(t *testing.T) {
	longtest.Nightly(t)
	t.Parallel() // It waits for these limits.
	// Limits that a busy machine keeps, for the request that is not slow.
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = NewServer(New(&oiptest.Service{}, Options{MaxConcurrent: 1}), ServerOptions{ReadHeader: 2 * time.Second, Read: 4 * time.Second})
	ts.Start()
	defer ts.Close()
	n := 0
	var conns []net.Conn
	for _, half := range []string{"GET /v2 HT", "GET /v2 HTTP/1.1\r\nHost: localhost\r\nA:", "POST /v2/models/one/infer HTTP/1.1\r\nHost: localhost\r\nContent-Length: 60000000\r\n\r\n{\"inputs\"", "POST /v2/models/one/infer HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"inp\r\n"} {
		for range 8 {
			c, err := net.Dial("tcp", ts.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, half); err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
		}
	}
	if resp, answer := do(t, ts, "POST", "/v2/models/one/infer", one); resp.StatusCode != 200 {
		t.Error(resp.StatusCode, answer)
	}
	for i, c := range conns {
		b, err := io.ReadAll(c) // ends when the server closes
		if err != nil && !strings.Contains(err.Error(), "reset") {
			t.Fatal(err)
		}
		if i >= 16 && !strings.HasPrefix(string(b), "HTTP/1.1 408") {
			t.Errorf("%d: %q", i, b)
		}
		n++
	}
	if n != 32 {
		t.Error(n)
	}
}

func TestTLS(t *testing.T) {
	cert, key := keyPair(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{Certificates: []tls.Certificate{pair}}
	ts := httptest.NewUnstartedServer(nil)
	ts.Config = NewServer(New(&oiptest.Service{}, Options{}), ServerOptions{TLS: c})
	ts.TLS = c
	ts.StartTLS()
	defer ts.Close()
	ts.Client().Transport.(*http.Transport).TLSClientConfig.InsecureSkipVerify = true
	if resp, answer := do(t, ts, "POST", "/v2/models/one/infer", one); resp.StatusCode != 200 || resp.TLS == nil {
		t.Error(resp.StatusCode, answer)
	}
}
