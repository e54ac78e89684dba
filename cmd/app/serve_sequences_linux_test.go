package app

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/cmd/internal/apptest"
	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// sumModel is y = s' = s + x of x and s float32[batch,1], where s is state.
func sumModel(t *testing.T) *onnx.Model {
	t.Helper()
	port := onnx.TensorType{DType: tensor.Float32, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(1)}}
	b := onnx.NewBuilder("sum", 17)
	x, s := b.Input("x", port), b.Input("s", port)
	next := b.Rename(b.Op("Add", []onnx.Value{x, s}), "s_next")
	b.Output(next, port)
	b.Output(b.Rename(b.Op("Identity", []onnx.Value{next}), "y"), port)
	m, err := b.Model()
	if err != nil {
		t.Fatal(err)
	}
	m.MetadataProps = append(m.MetadataProps, &onnx.MetadataProp{Key: serve.StateKey, Value: `[{"input": "s", "output": "s_next", "shape": [1]}]`})
	return m
}

// Sequences that are idle end by themselves, whether the server looks for new versions or not.
func TestServeSequencesExpire(t *testing.T) {
	t.Parallel()
	model := apptest.Save(t, sumModel(t))
	n := 0
	for _, watch := range []string{"--watch=false", "--watch"} {
		r := apptest.StartServe(t, "--engine", portable.Name, "--model", "sum="+model, "--set", "defaults.sequences.idle=300ms", watch)
		step := func(status int, id int, start bool) string {
			return r.Want(status, "/v2/models/sum/infer", fmt.Sprintf(`{"inputs":[{"name":"x","shape":[1,1],"datatype":"FP32","data":[2]}],"parameters":{"sequence_id":%d,"sequence_start":%t}}`, id, start))
		}
		for id := range 3 {
			step(200, id+1, true)
		}
		for deadline := time.Now().Add(time.Minute); !strings.Contains(r.Want(200, "/metrics", ""), `onnxrl_sequences{model="sum",version="1"} 0`); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("%s: sequences are left:\n%s", watch, r.Want(200, "/metrics", ""))
			}
		}
		if a := step(400, 1, false); !strings.Contains(a, "idle for too long") {
			t.Errorf("%s: %s", watch, a)
		}
		if code := r.Stop(); code != 0 {
			t.Errorf("exit status %d\n%s", code, r.Log)
		}
		n++
	}
	if n != 2 {
		t.Error(n)
	}
}
