package format

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// maxBatch is the largest batch that an exported Triton model is offered for: the largest that
// parity is checked at.
var maxBatch = bake.Batches[len(bake.Batches)-1]

// maxDelay is how long Triton's batcher waits for more rows, in microseconds: about one run of a
// small policy, so that an idle server answers at once.
const maxDelay = 100

// tritonTypes are the names of Triton's model configuration for element types.
var tritonTypes = map[tensor.DType]string{
	tensor.Bool: "TYPE_BOOL", tensor.Uint8: "TYPE_UINT8", tensor.Uint16: "TYPE_UINT16", tensor.Uint32: "TYPE_UINT32", tensor.Uint64: "TYPE_UINT64",
	tensor.Int8: "TYPE_INT8", tensor.Int16: "TYPE_INT16", tensor.Int32: "TYPE_INT32", tensor.Int64: "TYPE_INT64",
	tensor.Float16: "TYPE_FP16", tensor.BFloat16: "TYPE_BF16", tensor.Float32: "TYPE_FP32", tensor.Float64: "TYPE_FP64",
}

// writeTriton writes OUT/NAME with config.pbtxt, version 1 and the files of warm-up and initial
// states. Where OUT/NAME is there with the same configuration and files, the model becomes its next
// version.
func writeTriton(_ context.Context, out string, p *Package) (list []string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("export %s to %s: %w", p.Name, out, err)
		}
	}()
	if err := p.check(); err != nil {
		return nil, err
	}
	if strings.Contains(p.Name, "/") {
		return nil, fmt.Errorf("name %q: a model of a repository is one folder", p.Name)
	}
	files, err := tritonFiles(p)
	if err != nil {
		return nil, err
	}
	model, err := onnx.Marshal(p.Model)
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(out, p.Name)
	config, err := os.ReadFile(filepath.Join(dir, "config.pbtxt"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		files["1/model.onnx"] = model
		return WriteFolder(dir, files)
	case err != nil:
		return nil, err
	case string(config) != string(files["config.pbtxt"]):
		return nil, fmt.Errorf("%s describes another model: inputs, outputs and states of its versions are the same; choose another --name", filepath.Join(dir, "config.pbtxt"))
	}
	next, err := nextVersion(dir)
	if err != nil {
		return nil, err
	}
	return WriteFolder(filepath.Join(dir, strconv.Itoa(next)), map[string][]byte{"model.onnx": model})
}

// nextVersion is one more than the highest version folder.
func nextVersion(dir string) (int, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, err
	}
	last := 0
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil && e.IsDir() && e.Name() == strconv.Itoa(n) {
			last = max(last, n)
		}
	}
	return last + 1, nil
}

// tritonFiles returns the files of a model but the model itself.
func tritonFiles(p *Package) (map[string][]byte, error) {
	if _, err := p.rows(); err != nil {
		return nil, err
	}
	states, err := models.States(p.Model)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	isState := map[string]bool{}
	for _, s := range states {
		isState[s.Input], isState[s.Output] = true, true
		files["initial_state/"+fileName(s.Input)] = s.Tensor(1).Bytes()
	}
	w := new(pbtxt)
	w.field("name", quote(p.Name))
	w.field("platform", quote("onnxruntime_onnx"))
	w.field("backend", quote("onnxruntime"))
	w.field("max_batch_size", strconv.Itoa(maxBatch))
	for _, side := range []struct {
		key   string
		ports []*onnx.ValueInfo
	}{{"input", p.Model.Graph.Input}, {"output", p.Model.Graph.Output}} {
		for _, v := range side.ports {
			if isState[v.Name] {
				continue
			}
			typ, dims, err := tritonPort(v)
			if err != nil {
				return nil, err
			}
			w.open(side.key)
			w.field("name", quote(v.Name))
			w.field("data_type", typ)
			w.dims(dims)
			if len(dims) == 0 {
				// A port must have an extent beside the batch in Triton; the model's has none.
				w.open("reshape")
				w.close()
			}
			w.close()
		}
	}
	if len(states) > 0 {
		w.open("sequence_batching")
		for _, s := range states {
			w.open("state")
			w.field("input_name", quote(s.Input))
			w.field("output_name", quote(s.Output))
			w.field("data_type", "TYPE_FP32")
			w.dims(s.Shape)
			w.open("initial_state")
			w.field("name", quote(s.Input))
			w.field("data_type", "TYPE_FP32")
			w.dims(s.Shape)
			w.field("data_file", quote(fileName(s.Input)))
			w.close()
			w.close()
		}
		w.close()
	} else {
		w.open("dynamic_batching")
		w.field("max_queue_delay_microseconds", strconv.Itoa(maxDelay))
		w.close()
	}
	w.open("instance_group")
	w.field("count", "1")
	w.field("kind", "KIND_CPU")
	w.close()
	// One thread for each run and none between: the runs of several models do not compete.
	for _, kv := range [][2]string{{"intra_op_thread_count", "1"}, {"inter_op_thread_count", "1"}} {
		w.open("parameters")
		w.field("key", quote(kv[0]))
		w.open("value")
		w.field("string_value", quote(kv[1]))
		w.close()
		w.close()
	}
	if len(states) == 0 { // A warm-up of a sequence would need its control inputs.
		w.open("model_warmup")
		w.field("name", quote("recorded"))
		w.field("batch_size", "1")
		for _, v := range p.Model.Graph.Input {
			typ, dims, err := tritonPort(v)
			if err != nil {
				return nil, err
			}
			w.open("inputs")
			w.field("key", quote(v.Name))
			w.open("value")
			w.field("data_type", typ)
			w.dims(dims)
			w.field("input_data_file", quote(fileName(v.Name)))
			w.close()
			w.close()
			files["warmup/"+fileName(v.Name)] = p.Inputs[v.Name].Rows(0, 1).Bytes()
		}
		w.close()
	}
	files["config.pbtxt"] = []byte(w.String())
	return files, nil
}

// tritonPort returns type and extents without the batch.
func tritonPort(v *onnx.ValueInfo) (typ string, dims []int, err error) {
	t, ok := v.TensorType()
	typ = tritonTypes[t.DType]
	if !ok || typ == "" || len(t.Dims) == 0 || t.Dims[0].IsKnown() {
		return "", nil, fmt.Errorf("%q is %v: Triton needs numbers or booleans with a symbolic batch in front", v.Name, t)
	}
	for _, d := range t.Dims[1:] {
		n := -1
		if d.IsKnown() {
			n = int(d.Value)
		}
		dims = append(dims, n)
	}
	return typ, dims, nil
}

// fileName makes a file name of a value's name, unlike that of any other.
func fileName(value string) string {
	var b strings.Builder
	for _, c := range []byte(value) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// pbtxt writes protobuf's text format.
type pbtxt struct {
	strings.Builder
	depth int
}

func (w *pbtxt) line(s string) {
	w.WriteString(strings.Repeat("  ", w.depth) + s + "\n")
}

func (w *pbtxt) field(key, value string) { w.line(key + ": " + value) }

func (w *pbtxt) open(key string) {
	w.line(key + " {")
	w.depth++
}

func (w *pbtxt) close() {
	w.depth--
	w.line("}")
}

// dims writes extents; those of a port without any are [ 1 ].
func (w *pbtxt) dims(dims []int) {
	if len(dims) == 0 {
		dims = []int{1}
	}
	text := make([]string, len(dims))
	for i, n := range dims {
		text[i] = strconv.Itoa(n)
	}
	w.field("dims", "[ "+strings.Join(text, ", ")+" ]")
}

// quote is a string literal of protobuf's text format.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
