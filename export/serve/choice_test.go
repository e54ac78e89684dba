package serve

import (
	"errors"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TestPoliciesRefuseWhatIsNoChoice asks a policy of choices about ones that there are, and ones
// that there are not.
func TestPoliciesRefuseWhatIsNoChoice(t *testing.T) {
	b := onnx.NewBuilder("choosing", onnx.DefaultOpset)
	x := b.Input("x", batchOf(tensor.Int64, onnx.Known(2)))
	b.Output(b.Rename(b.Op("Neg", []onnx.Value{x}), "action"), batchOf(tensor.Int64, onnx.Known(2)))
	m := built(b)
	m.SetMeta(artifact.SpacesKey, `{"inputs":{"x":{"type":"multi_discrete","n":[4,2],"start":[10,-1]}},"outputs":{}}`)
	s, _, _ := start(t, Options{}, one("m", Config{}, m), one("any", Config{NonFinite: AllowNonFinite}, m))
	for _, c := range []struct {
		x      []int64
		index  []int
		lo, hi int64
	}{
		{[]int64{10, -1, 13, 0}, nil, 0, 0},
		{[]int64{10, -1, 9, 0}, []int{1, 0}, 10, 13},
		{[]int64{10, 1, 11, 0}, []int{0, 1}, -1, 0},
	} {
		req := func(model string) *Request {
			return &Request{Model: model, Inputs: []Tensor{{"x", tensor.Of(c.x, 2, 2)}}}
		}
		err := s.Infer(t.Context(), req("m"), &Response{})
		if e := (*ChoiceError)(nil); c.index == nil {
			if err != nil {
				t.Error(err)
			}
		} else if wantCode(t, err, InvalidArgument); !errors.As(err, &e) || !slices.Equal(e.Index, c.index) || e.Low != c.lo || e.High != c.hi {
			t.Errorf("%v: %v", c.x, err)
		}
		if err := s.Infer(t.Context(), req("any"), &Response{}); err != nil {
			t.Error(err)
		}
	}
	if stats, err := s.Statistics("m", "1"); err != nil || stats[0].NonFinite != 2 {
		t.Errorf("%+v, %v", stats, err)
	}
	for _, text := range []string{`{"inputs":{"x":{"type":"discrete","n":[4],"start":[1,2]}}}`, `{"inputs":{"x":{"type":"some"}}}`, `{"inputs":{"x":{"type":"discrete","n":[4],"start":[9223372036854775807]}}}`, "{"} {
		if _, err := artifact.ParseSpaces(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}
