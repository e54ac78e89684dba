package servebench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/benchmark"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi"
	"github.com/onnxrl/onnxrl/export/serve/httpapi"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/portable"
)

// front is the server as the wire has it, without what the program adds around it.
func front(s *serve.Server) (*Front, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	web := httpapi.NewServer(httpapi.New(s, httpapi.Options{}), httpapi.ServerOptions{ReadHeader: 5 * time.Second, Read: 5 * time.Second})
	go web.Serve(l)
	g, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, web.Close())
	}
	rpc := grpcapi.NewServer(s, grpcapi.Options{})
	go rpc.Serve(g)
	return &Front{URL: "http://" + l.Addr().String(), GRPC: g.Addr().String(), Close: func() error {
		rpc.Stop()
		return web.Close()
	}}, nil
}

// brief measures everything for a moment, on the engine that is always there.
func brief() Options {
	return Options{
		Compiler: portable.New(), Listen: front, Callers: []int{1, 3}, Rounds: 2, Round: 20 * time.Millisecond, Requests: 200, Reloads: 20, SwapEvery: 5 * time.Millisecond,
		Neighbour: func(context.Context, int) (func() error, error) { return func() error { return nil }, nil },
	}
}

// TestRun looks at the form of the report and at the counts, never at the speed.
func TestRun(t *testing.T) {
	longtest.Nightly(t)
	o := brief()
	began := 0
	o.Began = func(string) { began++ }
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Loads) != 4*len(o.Callers) || began != len(Names()) {
		t.Errorf("%d loads, %d benchmarks", len(r.Loads), began)
	}
	for _, l := range r.Loads {
		if l.Failures != 0 || l.Requests == 0 || l.PerSec <= 0 || l.P50 <= 0 || l.P50 > l.P99 || l.P99 > l.P999 || l.P999 > l.Max || l.Allocs == nil {
			t.Errorf("load %+v", l)
		}
	}
	seen, missed := map[string]bool{}, 0
	for _, row := range r.Rows {
		seen[row.Name] = true
		if row.Value <= 0 || row.Reference <= 0 || row.Ratio <= 0 || row.Unit == "" || row.Target == nil {
			t.Errorf("row %+v", row)
		}
		if !row.Pass {
			missed++
		}
	}
	for _, name := range []string{"overhead/http-binary", "overhead/in-process", "batching/throughput-4×1024", "batching/p50-4×1024", "batching/throughput-2×64", "batching/p50-2×64", "json/codec", "swap/p99", "neighbour/p99", "memory/requests", "memory/reloads"} {
		if !seen[name] {
			t.Errorf("there is no row %s", name)
		}
	}
	if len(r.Rows) != 11 || missed != r.Missed {
		t.Errorf("%d rows, %d missed, the report says %d", len(r.Rows), missed, r.Missed)
	}
	var text bytes.Buffer
	if err := r.Print(&text); err != nil || strings.Count(text.String(), "\n") != 1+len(r.Loads)+1+1+1+len(r.Rows) {
		t.Errorf("%v\n%s", err, &text)
	}
}

func TestRunSelects(t *testing.T) {
	o := brief()
	o.Rows = []string{"js*"}
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Rows) != 1 || len(r.Loads) != 0 || r.Rows[0].Name != "json/codec" {
		t.Errorf("%+v, %v", r, err)
	}
	for _, rows := range [][]string{{"nothing"}, {"["}} {
		o.Rows = rows
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%q is accepted", rows)
		}
	}
	o = brief()
	o.Callers = nil
	if _, err := Run(t.Context(), o); err == nil {
		t.Error("no callers are accepted")
	}
}

// TestSoak sends every kind of traffic for a moment; what was sent must have been judged right and
// nothing may be left.
func TestSoak(t *testing.T) {
	r, err := Soak(t.Context(), brief(), 800*time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) > 0 {
		t.Errorf("problems: %q", r.Problems)
	}
	if len(r.Good) != 4 || len(r.Bad) != 34 || r.Swaps < 3 || r.Failed != 0 || r.Wrong != 0 {
		t.Errorf("%+v", r)
	}
	var text bytes.Buffer
	if err := r.Print(&text); err != nil || !strings.HasSuffix(text.String(), "passed\n") {
		t.Errorf("%v\n%s", err, &text)
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

// TestSoakSees gives the judge what a bad server would.
func TestSoakSees(t *testing.T) {
	failed := &tally{}
	failed.add(nil)
	failed.add(io.ErrUnexpectedEOF)
	r := &SoakReport{Good: map[string]int{}, Bad: map[string]int{}, HeapBefore: 1 << 20, HeapAfter: 1 << 30, ResidentBefore: 1 << 20, ResidentAfter: 1 << 40, GoroutinesBefore: 3, GoroutinesAfter: 4, FilesBefore: 5, FilesAfter: 6}
	r.judge(map[string]*tally{"a": failed, "b": {}}, map[string]*tally{"c": failed})
	if len(r.Problems) != 8 || r.Failed != 1 || r.Wrong != 1 || r.Good["a"] != 2 {
		t.Errorf("%d problems: %q, %+v", len(r.Problems), r.Problems, r)
	}
}

// fake is a server of the protocol that answers in chunks, as others do.
func fake(t *testing.T) string {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v2/repository/index", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `[{"name":"m","version":"1","state":"READY"}]`)
	})
	mux.HandleFunc("GET /v2/models/m", func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"name":"m","inputs":[{"name":"x","datatype":"FP32","shape":[-1,3]},{"name":"mask","datatype":"BOOL","shape":[-1,2]},{"name":"n","datatype":"INT64","shape":[1]}],"outputs":[]}`)
	})
	mux.HandleFunc("POST /v2/models/m/infer", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if n := r.Header.Get("Inference-Header-Content-Length"); n != "" {
			head := body[:len(body)-2*3*4-2*2-8]
			if n != fmt.Sprint(len(head)) {
				t.Errorf("the header says %s, the JSON has %d bytes", n, len(head))
			}
			body = head
		}
		var doc struct{ Inputs []port }
		if err != nil || json.Unmarshal(body, &doc) != nil || len(doc.Inputs) != 3 || doc.Inputs[0].Shape[0] != 2 || doc.Inputs[0].Shape[1] != 3 {
			t.Errorf("request %s", body)
		}
		io.WriteString(w, `{"outputs":`)
		w.(http.Flusher).Flush()
		io.WriteString(w, `[]}`)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL
}

func TestRemote(t *testing.T) {
	o := Remote{URL: fake(t), Callers: []int{1, 2}, Rows: 2, Transports: []string{httpJSON, httpBinary}, Rounds: 2, Round: 20 * time.Millisecond}
	r, err := RunRemote(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Loads) != 4 || len(r.Rows) != 0 || r.Loads[3].Requests == 0 || r.Loads[3].Allocs != nil {
		t.Errorf("%+v", r)
	}
	o.Against, o.AtLeast, o.Callers = fake(t), 2, []int{1}
	if r, err = RunRemote(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if len(r.Loads) != 4 || len(r.Rows) != 2 || r.Rows[0].Name != "against/http-json-c1" || r.Rows[0].Target.AtLeast != 2 {
		t.Errorf("%+v", r)
	}
	for _, bad := range []Remote{{URL: "nowhere"}, {URL: "http://127.0.0.1:1"}, {URL: o.URL, Model: "other"}, {URL: o.URL, Transports: []string{"post"}, Callers: []int{1}}, {URL: o.URL, Against: "ftp://x"}} {
		if _, err := RunRemote(t.Context(), bad); err == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}

// TestAnswers reads answers of all kinds, and refuses what is none.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		answer, body string
		status       int
		ok           bool
	}{
		{"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", "abc", 200, true},
		{"HTTP/1.1 404 Not Found\r\ncontent-length:  0 \r\n\r\n", "", 404, true},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "abc", 200, true},
		{"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nabc", "", 0, false},
		{"HTTP/1.1 200 OK\r\nContent-Length: -4\r\n\r\nabc", "", 0, false},
		{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "", 0, false},
		{"HTTP/1.1 2x0 OK\r\n\r\n", "", 0, false},
		{"SSH-2.0-x\r\n\r\n", "", 0, false},
		{"", "", 0, false},
	} {
		ours, theirs := net.Pipe()
		go func() {
			io.WriteString(theirs, c.answer)
			theirs.Close()
		}()
		h := &httpCaller{conn: ours, in: newReader(ours)}
		status, err := h.read()
		if (err == nil) != c.ok || c.ok && (status != c.status || string(h.body) != c.body) {
			t.Errorf("%q: %d %q, %v", c.answer, status, h.body, err)
		}
		h.close()
	}
}

func TestFigures(t *testing.T) {
	l := &Load{Transport: "x", Seconds: 2, ns: []float64{3e3, 1e3, 2e3}}
	l.finish()
	if l.P50 != 2 || l.Max != 3 || l.PerSec != 1.5 {
		t.Errorf("%+v", l)
	}
	one, two := 1.0, 4.0
	l.Requests, l.Allocs = 3, &one
	l = l.join(&Load{Requests: 6, Failures: 1, FirstFailure: "why", Seconds: 1, Allocs: &two, ns: []float64{9e3}})
	if l.Requests != 9 || *l.Allocs != 3 || l.Max != 9 || l.failed() == nil || !strings.Contains(l.failed().Error(), "1 of 9") {
		t.Errorf("%+v", l)
	}
	if (&Load{}).failed() == nil {
		t.Error("a load without requests is accepted")
	}
	for _, c := range []struct {
		t     benchmark.Target
		ratio float64
		ok    bool
	}{{benchmark.Target{AtMost: 2}, 2, true}, {benchmark.Target{AtMost: 2}, 2.1, false}, {benchmark.Target{AtLeast: 3}, 3, true}, {benchmark.Target{AtLeast: 3}, 2.9, false}} {
		if met(c.t, c.ratio) != c.ok {
			t.Errorf("%+v at %v", c.t, c.ratio)
		}
	}
	base := &url.URL{Scheme: "http", Host: "h:1", Path: "/below/"}
	if got := string(httpRequest(base, "v2/x", "A: b\r\n", []byte("{}"))); got != "POST /below/v2/x HTTP/1.1\r\nHost: h:1\r\nContent-Length: 2\r\nA: b\r\n\r\n{}" {
		t.Errorf("%q", got)
	}
}
