package serve

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// acting is scale with the input "obs" and the output "action", and an input "features" of which
// the model knows what is missing.
func acting() *onnx.Model {
	b := onnx.NewBuilder("acting", onnx.DefaultOpset)
	x, f := b.Input("obs", batchOf(tensor.Float32, onnx.Known(2))), b.Input("features", batchOf(tensor.Float32, onnx.Known(2)))
	known := b.Op("Where", []onnx.Value{b.Op("IsNaN", []onnx.Value{f}), b.Float(0), f})
	b.Output(b.Rename(b.Op("Add", []onnx.Value{x, known}), "action"), batchOf(tensor.Float32, onnx.Known(2)))
	m := built(b)
	m.SetMeta(MissingKey, "features")
	return m
}

// tagged is wide with a task in its metadata.
func tagged(task string) *onnx.Model {
	m := wide()
	m.SetMeta("onnxrl.task", task)
	return m
}

func TestPoliciesRefuseNonFiniteInputs(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	kind := func(name, kind string, c Config) Listing {
		l := one(name, c, wide())
		open := l.Versions[0].Open
		l.Versions[0].Open = func(ctx context.Context) (*Content, error) {
			content, err := open(ctx)
			content.Manifest = &artifact.Manifest{Name: name, Kind: kind}
			return content, err
		}
		return l
	}
	s, _, _ := start(t, Options{},
		one("plain", Config{}, wide()), one("strict", Config{NonFinite: RejectNonFiniteInputs}, wide()),
		one("agent", Config{}, tagged("agent")), one("encoder", Config{}, tagged("encoder")), one("allowed", Config{NonFinite: AllowNonFinite}, tagged("agent")),
		kind("stored", "agent", Config{}), kind("stored-encoder", "encoder", Config{}), kind("stored-allowed", "agent", Config{NonFinite: RejectNonFiniteOutputs}),
	)
	n := 0
	for model, refused := range sorted.All(map[string]bool{"plain": false, "strict": true, "agent": true, "encoder": false, "allowed": false, "stored": true, "stored-encoder": false}) {
		for at, bad := range []float32{nan, inf, float32(math.Inf(1)), 1} {
			x := []float32{0, 1, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 3}
			x[at+1] = bad
			err := s.Infer(t.Context(), &Request{Model: model, Inputs: []Tensor{{"x", tensor.Of(x, 2, 3)}}}, &Response{})
			if e := (*NonFiniteError)(nil); refused && bad != 1 {
				wantCode(t, err, InvalidArgument)
				if !errors.As(err, &e) || e.Input != "x" || !slices.Equal(e.Index, [][]int{{0, 1}, {0, 2}, {1, 0}}[at]) || e.Value == 1 {
					t.Errorf("%s: %v", model, err)
				}
			} else if err != nil {
				t.Errorf("%s with %v: %v", model, bad, err)
			}
			n++
		}
		stats, err := s.Statistics(model, "1")
		want := uint64(0)
		if refused {
			want = 3
		}
		if err != nil || stats[0].NonFinite != want || stats[0].Failed.Count != want {
			t.Errorf("%s: %d counted of %d failed, %v", model, stats[0].NonFinite, stats[0].Failed.Count, err)
		}
	}
	if n != 28 {
		t.Errorf("%d cases", n)
	}
	// Outputs are another question: here the input passes and what comes of it does not.
	wantCode(t, s.Infer(t.Context(), &Request{Model: "stored-allowed", Inputs: []Tensor{{"x", tensor.Of([]float32{nan}, 1, 1)}}}, &Response{}), Internal)
}

func TestMissingValuesPassWhereTheModelKnowsThem(t *testing.T) {
	nan := float32(math.NaN())
	s, _, _ := start(t, Options{}, one("p", Config{}, acting()), one("all", Config{NonFinite: RejectNonFinite}, acting()))
	req := func(model string, obs, features float32) *Request {
		return &Request{Model: model, Inputs: []Tensor{{"obs", tensor.Of([]float32{1, obs}, 1, 2)}, {"features", tensor.Of([]float32{2, features}, 1, 2)}}}
	}
	var resp Response
	if err := s.Infer(t.Context(), req("p", 5, nan), &resp); err != nil || !slices.Equal(resp.Outputs[0].Value.Float32s(), []float32{3, 5}) {
		t.Error(resp, err)
	}
	wantCode(t, s.Infer(t.Context(), req("p", nan, 0), &resp), InvalidArgument)
	wantCode(t, s.Infer(t.Context(), req("all", 0, nan), &resp), InvalidArgument)
	// The caller's buffers are looked through as well.
	c, err := s.Client().Caller("p", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Inputs()[0].Value.Float32s()[1] = nan
	wantCode(t, c.Run(t.Context()), InvalidArgument)
	c.Inputs()[0].Value.Float32s()[1] = 0
	c.Inputs()[1].Value.Float32s()[1] = nan
	if err := c.Run(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestFinite(t *testing.T) {
	n := 0
	for _, d := range []tensor.DType{tensor.Float32, tensor.Float64, tensor.Float16, tensor.BFloat16, tensor.Int64} {
		x := tensor.New(d, 3)
		if !finite(x) {
			t.Errorf("zeros of %v", d)
		}
		for i := range x.Bytes() {
			x.Bytes()[i] = 0xff
		}
		if finite(x) != (d == tensor.Int64) {
			t.Errorf("NaN of %v", d)
		}
		n++
	}
	// Every place in every length, with the largest number everywhere else.
	for size := range 600 {
		v := make([]float32, size)
		for i := range v {
			v[i] = math.MaxFloat32
		}
		if !finite32(v) {
			t.Fatalf("%d finite elements", size)
		}
		for i := range v {
			if size > 20 && size < 580 && i%37 != size%37 {
				continue
			}
			for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1)), math.Float32frombits(0xff800001)} {
				v[i] = bad
				if finite32(v) {
					t.Fatalf("element %d of %d is %v", i, size, bad)
				}
				n++
			}
			v[i] = math.MaxFloat32
		}
	}
	if n < 10000 {
		t.Errorf("%d cases", n)
	}
}

func BenchmarkFinite(b *testing.B) {
	v := make([]float32, 1024)
	b.SetBytes(4 * int64(len(v)))
	for b.Loop() {
		if !finite32(v) {
			b.Fatal()
		}
	}
}
