package serve

import (
	"context"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// summed is recurrent and has a port without extents behind the batch: y [batch] = s' [batch, 1] =
// s + x for x [batch].
func summed() *onnx.Model {
	b := onnx.NewBuilder("summed", onnx.DefaultOpset)
	one := batchOf(tensor.Float32, onnx.Known(1))
	x, s := b.Input("x", batchOf(tensor.Float32)), b.Input("s", one)
	axis := b.Const(tensor.Of([]int64{1}, 1))
	sum := b.Op("Add", []onnx.Value{s, b.Op("Unsqueeze", []onnx.Value{x, axis})})
	b.Output(b.Rename(b.Op("Squeeze", []onnx.Value{sum, axis}), "y"), batchOf(tensor.Float32))
	b.Output(b.Rename(sum, "s_next"), one)
	return built(b)
}

func floatBytes(x ...float32) []byte {
	var b []byte
	for _, v := range x {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return b
}

// A repository in all that Triton's exports use: ports in other shapes, an initial state and a
// warm-up in files.
func TestTritonConfiguration(t *testing.T) {
	dir := t.TempDir()
	save(t, filepath.Join(dir, "m/1/model.onnx"), summed())
	write := func(name string, b []byte) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	const (
		head   = "platform: \"onnxruntime_onnx\"\nmax_batch_size: 8\n"
		input  = "input { name: \"x\" data_type: TYPE_FP32 dims: [ 1 ] reshape { } }\n"
		output = "output { name: \"y\" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } }\n"
		state  = "sequence_batching { state { input_name: \"s\" output_name: \"s_next\" data_type: TYPE_FP32 dims: [ 1 ] initial_state { name: \"s\" data_type: TYPE_FP32 dims: [ 1 ] data_file: \"s\" } } }\n"
		warm   = "model_warmup { name: \"w\" batch_size: 3 count: 2 inputs { key: \"x\" value { data_type: TYPE_FP32 dims: [ 1 ] input_data_file: \"x\" } } }\n"
		random = "model_warmup { name: \"r\" batch_size: 2 inputs { key: \"x\" value { data_type: TYPE_FP32 dims: [ 1 ] random_data: true } } }\n"
	)
	write("m/config.pbtxt", []byte(head+input+output+state+warm+random+"dynamic_batching { priority_levels: 3 }\n"))
	write("m/initial_state/s", floatBytes(100))
	write("m/warmup/x", floatBytes(1, 2, 3))
	var notes []string
	p := &probe{Compiler: portable.New()}
	var warmed [][]float32
	p.onRun(func(_ context.Context, in []*tensor.Tensor) error {
		if len(warmed) < 3 {
			warmed = append(warmed, append(slices.Clone(in[0].Float32s()), in[1].Float32s()...))
		}
		return nil
	})
	s, err := New(Options{Compiler: p, Log: func(st ModelStatus) { notes = append(notes, st.Reason) }}, NewRepository(dir))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Poll(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(warmed) != 3 || !slices.Equal(warmed[0], []float32{1, 2, 3, 100, 100, 100}) || !slices.Equal(warmed[1], warmed[0]) || len(warmed[2]) != 4 || warmed[2][0] == 0 || warmed[2][2] != 100 {
		t.Errorf("warm-up: %v", warmed)
	}
	if !strings.Contains(strings.Join(notes, "; "), "dynamic_batching.priority_levels (requests are taken in the order of arrival") {
		t.Errorf("notes %q", notes)
	}
	d, err := s.Metadata("m", "")
	if err != nil || !slices.Equal(d.Inputs[0].Shape, []int{-1, 1}) || !slices.Equal(d.Outputs[0].Shape, []int{-1, 1}) {
		t.Errorf("%+v %v", d, err)
	}
	var resp Response
	req := func(shape ...int) *Request {
		return &Request{Model: "m", Inputs: []Tensor{{"x", tensor.Of([]float32{5}, shape...)}}, Sequence: Sequence{ID: "a", Start: true}}
	}
	for _, r := range []*Request{req(1, 1), req(1)} { // as the configuration has it, and as the model has it
		if err := s.Infer(t.Context(), r, &resp); err != nil || !slices.Equal(resp.Outputs[0].Value.Shape(), []int{1, 1}) || resp.Outputs[0].Value.Float32s()[0] != 105 {
			t.Errorf("%v %v", resp.Outputs, err)
		}
	}
	wantCode(t, s.Infer(t.Context(), req(1, 1, 1), &resp), InvalidArgument)

	// A version that does not fit leaves the old one serving and says why.
	cases := []struct{ text, say string }{
		{head + input + output + state + strings.Replace(warm, "batch_size: 3", "batch_size: 4", 1), "has 12 bytes, expected 16"},
		{head + input + output + state + strings.Replace(warm, `file: "x"`, `file: "../1/model.onnx"`, 1), "below the folder warmup"},
		{head + input + output + state + strings.Replace(warm, `key: "x"`, `key: "q"`, 1), `unknown input "q"`},
		{head + input + output + state + "model_warmup { name: \"none\" }", "missing"},
		{head + input + output + strings.Replace(state, `data_file: "s"`, `data_file: "none"`, 1), "no such file"},
		{head + strings.Replace(input, "TYPE_FP32", "TYPE_INT8", 1) + state, "it is int8, the model has float32"},
		{head + strings.Replace(input, "reshape { }", "", 1) + state, "its extents are [1], the model has []"},
		{head + strings.Replace(input, "dims: [ 1 ]", "dims: [ 2 ]", 1) + state, "as many elements"},
		{head + strings.Replace(input, `"x"`, `"q"`, 1) + state, `the configuration has an input "q"`},
	}
	for _, c := range cases {
		write("m/config.pbtxt", []byte(c.text))
		if err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v, expected %q", err, c.say)
		}
		if err := s.Infer(t.Context(), req(1, 1), &resp); err != nil {
			t.Error(err)
		}
	}
	if len(cases) != 9 {
		t.Error(len(cases))
	}
	if err := s.Close(t.Context()); err != nil || p.sessions.Load() != 0 {
		t.Error(err, p.sessions.Load())
	}
}
