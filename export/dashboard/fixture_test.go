package dashboard

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve/guard"
	"github.com/onnxrl/onnxrl/runtime/metrics"
)

// write makes a file and the folders above it.
func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// extend appends to a file.
func extend(t testing.TB, path, text string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
}

// began is when lines of tests are written, in seconds since 1970.
const began = 1_700_000_000

// clock is began, and a second later each time that it is asked.
func clock() func() time.Time {
	n := int64(-1)
	return func() time.Time {
		n++
		return time.Unix(began+n, 0)
	}
}

// config is a configuration as a run writes it.
func config(seed int, rate string) string {
	return fmt.Sprintf("seed: %d\nseeds: null\nenv:\n  kind: trading\n  fees: {rate: 0.0005}\nagent:\n  kind: ppo\n  learning_rate: %s\ntrain:\n  total_env_steps: 1000\n  validation:\n    metric: sharpe\n", seed, rate)
}

// trained writes the files of a run with the given lines of metrics, with the writers that a
// training has.
func trained(t testing.TB, dir string, seed int, rate string, lines []map[string]float64) {
	t.Helper()
	lineage, err := json.Marshal(map[string]any{"name": "study", "seeds": []int{seed}, "engine": "portable", "threads": 3, "config": config(seed, rate)})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "lineage.json"), string(lineage))
	write(t, filepath.Join(dir, "config.yaml"), config(seed, rate))
	w, err := metrics.CreateJSONLines(filepath.Join(dir, metricsFile), clock())
	if err != nil {
		t.Fatal(err)
	}
	for i, l := range lines {
		if err := w.Scalars(int64(10*i), l); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// watching returns a board of the folders that has read what is there.
func watching(t testing.TB, o Options) *Board {
	t.Helper()
	if o.Now == nil {
		o.Now = func() time.Time { return time.Unix(began+100, 0) }
	}
	b := New(o)
	refresh(t, b)
	return b
}

// refresh has a board look for items and read everything that is there, which it does by itself
// while it runs.
func refresh(t testing.TB, b *Board) {
	t.Helper()
	b.search()
	if err := b.catchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// summaries are the runs of a board by the last element of their ids.
func summaries(b *Board) map[string]RunSummary {
	m := map[string]RunSummary{}
	for _, r := range b.Overview(0).Runs {
		m[r.ID[strings.LastIndexByte(r.ID, '/')+1:]] = r
	}
	return m
}

// page serves a board to the test.
func page(t testing.TB, b *Board, tokens guard.Tokens) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(b.Handler(guard.New(tokens)))
	t.Cleanup(s.Close)
	return s
}

// request asks with headers, which are pairs of names and values.
func request(t testing.TB, address string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(text)
}

// asked decodes the answer to a path, which must be one.
func asked[T any](t testing.TB, s *httptest.Server, path string) T {
	t.Helper()
	answer, text := request(t, s.URL+path)
	var v T
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: status %d: %s", path, answer.StatusCode, text)
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("GET %s: %v: %s", path, err, text)
	}
	return v
}
