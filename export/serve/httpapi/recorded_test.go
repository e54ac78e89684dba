package httpapi

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/export/serve/traffic"
)

func total(r *traffic.Recorder, code string) (n uint64) {
	for _, c := range r.Counts() {
		if c.Protocol == "http" && c.Code == code {
			n += c.N
		}
	}
	return n
}

// Every answer is counted once by its code, whoever gave it: refusals before a model is asked,
// models, the page and the metrics.
func TestEveryAnswerIsCounted(t *testing.T) {
	record := traffic.New(nil)
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, "teapot", http.StatusTeapot) })
	ts := start(t, &oiptest.Service{}, Options{MaxBody: 1000, Guard: guard.New(guard.Tokens{Use: []string{"use"}, Admin: []string{"admin"}}), Traffic: record, Page: page})
	n := 0
	for _, c := range []struct {
		method, path, body string
		header             []string
		status             int
	}{
		{"POST", "/v2/models/one/infer", one, nil, 200}, {"GET", "/v2", "", nil, 200},
		{"POST", "/v2/models/one/infer", "{", nil, 400}, {"POST", "/v2/models/..%2f/infer", one, nil, 400},
		{"GET", "/v2", "", []string{"Authorization", ""}, 401}, {"POST", "/v2/repository/models/m/load", "", nil, 403}, {"GET", "/v2", "", []string{"Origin", "https://evil.example"}, 403},
		{"POST", "/v2/models/none/infer", one, nil, 404}, {"GET", "/v2/none", "", nil, 404}, {"DELETE", "/v2", "", nil, 405}, {"OPTIONS", "/v2", "", nil, 204},
		{"POST", "/v2/models/one/infer", strings.Repeat(" ", 2000), nil, 413}, {"POST", "/v2/models/one/infer", one, []string{"Content-Encoding", "br"}, 415},
		{"GET", "/any", "", nil, 418}, {"POST", "/v2/models/full/infer", `{"inputs":[]}`, nil, 429}, {"POST", "/v2/models/broken/infer", `{"inputs":[]}`, nil, 500}, {"POST", "/v2/models/panic/infer", `{"inputs":[]}`, nil, 500},
		{"POST", "/v2/logging", "", nil, 501}, {"POST", "/v2/models/loading/infer", `{"inputs":[]}`, nil, 503}, {"POST", "/v2/models/slow/infer", `{"inputs":[],"parameters":{"timeout":1}}`, nil, 504},
	} {
		code := fmt.Sprint(c.status)
		before := total(record, code)
		resp, body := do(t, ts, c.method, c.path, c.body, append([]string{"Authorization", "Bearer use"}, c.header...)...)
		// The answer is counted after it has gone out.
		for deadline := time.Now().Add(time.Minute); total(record, code) == before && time.Now().Before(deadline); {
			runtime.Gosched()
		}
		if got := total(record, code); resp.StatusCode != c.status || got != before+1 {
			t.Errorf("%s %s: status %d, expected %d, counted %d times: %s", c.method, c.path, resp.StatusCode, c.status, got-before, body)
		}
		n++
	}
	sum := uint64(0)
	for _, c := range record.Counts() {
		sum += c.N
	}
	if n != 20 || sum != 20 {
		t.Errorf("%d requests, %d counted", n, sum)
	}
}
