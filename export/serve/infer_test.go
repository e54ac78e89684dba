package serve

import (
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/engine/testengines"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestInferOnEveryEngine(t *testing.T) {
	n := 0
	for _, c := range testengines.All(t) {
		s, err := New(Options{Compiler: c}, &shelf{list: []Listing{one("m", Config{}, scale(2), scale(3)), one("w", Config{}, wide())}})
		if err != nil {
			t.Fatal(err)
		}
		if s.Ready() {
			t.Error("ready before anything is loaded")
		}
		if err := s.Poll(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !s.Ready() || !s.Live() {
			t.Error("not ready")
		}
		ctx, cancel := context.WithCancel(t.Context())
		for _, ctx := range []context.Context{context.Background(), ctx} {
			for rows := 1; rows <= 130; rows += 43 {
				x := make([]float32, 2*rows)
				for i := range x {
					x[i] = float32(i)
				}
				var resp Response
				req := ask("m", x...)
				req.ID = "7"
				if err := s.Infer(ctx, req, &resp); err != nil {
					t.Fatal(err)
				}
				if resp.Version != "2" || resp.Model != "m" || resp.ID != "7" || resp.Timing.Rows != rows || len(resp.Outputs) != 2 || resp.Outputs[0].Name != "y" {
					t.Errorf("%s: %+v", c.Name(), resp)
				}
				for i, y := range resp.Outputs[0].Value.Float32s() {
					if y != 3*x[i] {
						t.Fatalf("%s: y[%d] = %v", c.Name(), i, y)
					}
				}
				wideReq := &Request{Model: "w", Inputs: []Tensor{{"x", tensor.Of(x, 2, rows)}}, Outputs: []string{"y"}}
				if err := s.Infer(ctx, wideReq, &resp); err != nil {
					t.Fatal(err)
				}
				if y := resp.Outputs[0].Value; len(resp.Outputs) != 1 || !slices.Equal(y.Shape(), []int{2, rows}) || y.Float32s()[2*rows-1] != 2*x[2*rows-1] {
					t.Errorf("%s: %v", c.Name(), y)
				}
				n++
			}
		}
		cancel()
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
		wantCode(t, s.Infer(t.Context(), ask("m", 1, 2), &Response{}), NotReady)
	}
	if n < 8 {
		t.Errorf("%d cases", n)
	}
}

func TestRequestsThatDoNotFit(t *testing.T) {
	s, _, _ := start(t, Options{}, one("m", Config{MaxBatch: 4, NonFinite: RejectNonFiniteInputs}, scale(2)), one("c", Config{}, counter(1)))
	f := func(n, w int) *tensor.Tensor { return tensor.New(tensor.Float32, n, w) }
	cases := []struct {
		req  Request
		code Code
		say  string
	}{
		{Request{Model: "none"}, NotFound, `Request for unknown model: 'none' is not found`},
		{Request{Model: "m", Version: "9"}, NotFound, "version"},
		{Request{Model: "m"}, InvalidArgument, `input "x" is missing`},
		{Request{Model: "m", Inputs: []Tensor{{"z", f(1, 2)}}}, InvalidArgument, `unknown input "z"`},
		{Request{Model: "m", Inputs: []Tensor{{"x", f(1, 2)}, {"x", f(1, 2)}}}, InvalidArgument, "2 inputs"},
		{Request{Model: "m", Inputs: []Tensor{{"x", nil}}}, InvalidArgument, "no value"},
		{Request{Model: "m", Inputs: []Tensor{{"x", f(1, 3)}}}, InvalidArgument, "expected float32[-1 2]"},
		{Request{Model: "m", Inputs: []Tensor{{"x", tensor.New(tensor.Float32, 2)}}}, InvalidArgument, "expected float32[-1 2]"},
		{Request{Model: "m", Inputs: []Tensor{{"x", tensor.New(tensor.Float64, 1, 2)}}}, InvalidArgument, "expected float32"},
		{Request{Model: "m", Inputs: []Tensor{{"x", f(0, 2)}}}, InvalidArgument, "0 rows"},
		{Request{Model: "m", Inputs: []Tensor{{"x", f(5, 2)}}}, InvalidArgument, "at most 4"},
		{Request{Model: "m", Inputs: []Tensor{{"x", tensor.Of([]float32{1, float32(math.NaN())}, 1, 2)}}}, InvalidArgument, "element [0 1] is NaN"},
		{Request{Model: "m", Inputs: []Tensor{{"x", tensor.Of([]float32{float32(math.Inf(-1)), 1}, 1, 2)}}}, InvalidArgument, "element [0 0] is -Inf"},
		{Request{Model: "m", Inputs: []Tensor{{"x", f(1, 2)}}, Outputs: []string{"q"}}, InvalidArgument, `unknown output "q"`},
		{Request{Model: "m", Inputs: []Tensor{{"x", f(1, 2)}}, Outputs: []string{"y", "y"}}, InvalidArgument, "twice"},
		{Request{Model: "c", Inputs: []Tensor{{"x", f(1, 1)}}}, InvalidArgument, "carries state"},
		{Request{Model: "c", Inputs: []Tensor{{"x", f(1, 1)}, {"s", f(2, 1)}}}, InvalidArgument, "2, expected as many"},
		{Request{Model: "c", Inputs: []Tensor{{"x", f(1, 1)}}, Sequence: Sequence{ID: "1"}}, InvalidArgument, "sequence_start"},
		{Request{Model: "c", Inputs: []Tensor{{"x", f(2, 1)}}, Sequence: Sequence{ID: "1", Start: true}}, InvalidArgument, "expected 1"},
		{Request{Model: "c", Inputs: []Tensor{{"x", f(1, 1)}, {"s", f(1, 1)}}, Sequence: Sequence{ID: "1", Start: true}}, InvalidArgument, "server keeps"},
	}
	for _, c := range cases {
		err := s.Infer(t.Context(), &c.req, &Response{})
		wantCode(t, err, c.code)
		if err != nil && !strings.Contains(err.Error(), c.say) {
			t.Errorf("%q does not say %q", err, c.say)
		}
	}
	if len(cases) != 20 {
		t.Errorf("%d cases", len(cases))
	}
	stats, err := s.Statistics("m", "1")
	if err != nil || stats[0].Failed.Count != 13 || stats[0].Failures[InvalidArgument] != 13 || stats[0].LastError == "" || stats[0].Pending != 0 {
		t.Errorf("%+v, %v", stats, err)
	}
	// The state of a request without a sequence is its own to carry.
	var resp Response
	if err := s.Infer(t.Context(), &Request{Model: "c", Inputs: []Tensor{{"s", tensor.Of([]float32{5, 6}, 2, 1)}, {"x", tensor.Of([]float32{1, 2}, 2, 1)}}}, &resp); err != nil {
		t.Fatal(err)
	}
	if got := resp.Outputs[1]; got.Name != "s_next" || !slices.Equal(got.Value.Float32s(), []float32{6, 8}) {
		t.Errorf("%v %v", got.Name, got.Value.Float32s())
	}
	if n := len(s.Index(false)); n != 2 {
		t.Errorf("%d in the index", n)
	}
}

func TestNonFiniteOutputs(t *testing.T) {
	inf := float32(math.Inf(1))
	s, _, _ := start(t, Options{}, one("reject", Config{NonFinite: RejectNonFiniteOutputs}, scale(2)), one("allow", Config{}, scale(2)))
	wantCode(t, s.Infer(t.Context(), ask("reject", 1, inf), &Response{}), Internal)
	if err := s.Infer(t.Context(), ask("allow", 1, inf), &Response{}); err != nil {
		t.Error(err)
	}
}

func TestResponsesAreReused(t *testing.T) {
	s, _, _ := start(t, Options{}, one("m", Config{}, scale(2)))
	var resp Response
	req := ask("m", 1, 2)
	if err := s.Infer(t.Context(), req, &resp); err != nil {
		t.Fatal(err)
	}
	y := resp.Outputs[0].Value
	if err := s.Infer(t.Context(), req, &resp); err != nil || resp.Outputs[0].Value != y {
		t.Error("the tensor was replaced", err)
	}
	if err := s.Infer(t.Context(), ask("m", 1, 2, 3, 4), &resp); err != nil || resp.Outputs[0].Value == y || resp.Outputs[0].Value.Shape()[0] != 2 {
		t.Error("the tensor does not fit", err)
	}
	s2 := resp.Outputs[0].Value
	req = ask("m", 3, 4, 5, 6)
	if err := s.Infer(t.Context(), req, &resp); err != nil {
		t.Fatal(err)
	}
	if resp.Outputs[0].Value != s2 {
		t.Error("replaced")
	}
}
