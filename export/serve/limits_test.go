package serve

import (
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestRequestsAreBounded: what is kept, logged or sent back of a request has a bound, and the error
// does not repeat it.
func TestRequestsAreBounded(t *testing.T) {
	s, _, _ := start(t, Options{}, one("m", Config{}, scale(2)))
	long := strings.Repeat("x", MaxName)
	for what, change := range sorted.All(map[string]func(*Request, string){
		"the request's id":      func(r *Request, more string) { r.ID = long + more },
		"the sequence's id":     func(r *Request, more string) { r.Sequence.ID = long + more },
		"the model's name":      func(r *Request, _ string) { r.Model = long + "x" },
		"the version's name":    func(r *Request, _ string) { r.Version = long + "x" },
		"the name of an input":  func(r *Request, _ string) { r.Inputs[0].Name = long + "x" },
		"the name of an output": func(r *Request, _ string) { r.Outputs = []string{long + "x"} },
		"inputs":                func(r *Request, _ string) { r.Inputs = make([]Tensor, MaxPorts+1) },
		"outputs":               func(r *Request, _ string) { r.Outputs = make([]string, MaxPorts+1) },
		"extents":               func(r *Request, _ string) { r.Inputs[0].Value = tensor.New(tensor.Float32, make([]int, MaxRank+1)...) },
		"strings":               func(r *Request, _ string) { r.Inputs[0].Value = tensor.New(tensor.String, MaxStrings+1) },
	}) {
		r := ask("m", 1, 2)
		change(r, "x")
		err := s.Infer(t.Context(), r, &Response{})
		wantCode(t, err, InvalidArgument)
		if err == nil || !strings.Contains(err.Error(), what) || len(err.Error()) > 200 {
			t.Errorf("%s: %.300v", what, err)
		}
		if r = ask("m", 1, 2); what != "the request's id" && what != "the sequence's id" {
			continue
		}
		if change(r, ""); s.Infer(t.Context(), r, &Response{}) != nil {
			t.Errorf("%s of the longest length is refused", what)
		}
	}
}
