package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// BenchmarkRoundTrip sends one binary request after another over loopback, to the protocol with a
// model that copies, and to a handler that echoes the body; p50-ns is the median.
func BenchmarkRoundTrip(b *testing.B) {
	x := tensor.New(tensor.Float32, 1, 17)
	body, jsonLen, err := oip.AppendRequest(nil, &serve.Request{Inputs: []serve.Tensor{{Name: "x", Value: x}}}, oip.Options{Binary: true, BinaryOutput: true})
	if err != nil {
		b.Fatal(err)
	}
	echo := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(err)
		}
		w.Write(body)
	})
	for _, c := range []struct {
		name string
		h    http.Handler
	}{{"echo", echo}, {"oip", New(&oiptest.Service{}, Options{})}} {
		b.Run(c.name, func(b *testing.B) {
			ts := httptest.NewServer(c.h)
			defer ts.Close()
			client := &http.Client{Transport: &http.Transport{DisableCompression: true}}
			var times []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				begin := time.Now()
				r, err := http.NewRequest("POST", ts.URL+"/v2/models/echo/infer", bytes.NewReader(body))
				if err != nil {
					b.Fatal(err)
				}
				r.Header[oip.HeaderLength] = []string{strconv.Itoa(jsonLen)}
				resp, err := client.Do(r)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := io.Copy(io.Discard, resp.Body); err != nil {
					b.Fatal(err)
				}
				resp.Body.Close()
				times = append(times, time.Since(begin))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2]), "p50-ns")
		})
	}
}

// BenchmarkHandler is what the handler costs without a network.
func BenchmarkHandler(b *testing.B) {
	h := New(&oiptest.Service{}, Options{})
	x := tensor.New(tensor.Float32, 1, 17)
	body, jsonLen, err := oip.AppendRequest(nil, &serve.Request{Inputs: []serve.Tensor{{Name: "x", Value: x}}}, oip.Options{Binary: true, BinaryOutput: true})
	if err != nil {
		b.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/v2/models/echo/infer", nil)
	r.Header[oip.HeaderLength] = []string{strconv.Itoa(jsonLen)}
	r.ContentLength = int64(len(body))
	src := bytes.NewReader(body)
	r.Body = io.NopCloser(src)
	w := &discard{header: http.Header{}}
	b.ReportAllocs()
	for b.Loop() {
		src.Reset(body)
		h.ServeHTTP(w, r)
	}
	if w.code != 0 {
		b.Fatal(w.code)
	}
}

type discard struct {
	header http.Header
	code   int
}

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(code int)        { d.code = code }
