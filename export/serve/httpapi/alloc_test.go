//go:build !race

package httpapi

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/internal/oiptest"
	"github.com/onnxrl/onnxrl/export/serve/oip"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The race detector makes pools forget, so allocations are counted without it only. Guarding and
// recording a request allocates nothing: an inference costs the 12 allocations of its headers and
// of what net/http needs.
func TestHandlerAllocations(t *testing.T) {
	h := New(&oiptest.Service{}, Options{})
	body, jsonLen, err := oip.AppendRequest(nil, &serve.Request{Inputs: []serve.Tensor{{Name: "x", Value: tensor.New(tensor.Float32, 1, 17)}}}, oip.Options{Binary: true, BinaryOutput: true})
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest("POST", "/v2/models/echo/infer", nil)
	r.Header[oip.HeaderLength] = []string{itoa(jsonLen)}
	r.ContentLength = int64(len(body))
	src := bytes.NewReader(body)
	r.Body = io.NopCloser(src)
	w := &discard{header: http.Header{}}
	if n := testing.AllocsPerRun(200, func() {
		src.Reset(body)
		h.ServeHTTP(w, r)
	}); n > 12 {
		t.Errorf("%v allocations, expected 12", n)
	}
	if w.code != 0 {
		t.Error(w.code)
	}
}
