package serve

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/portable"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// told adds up x [batch, 1] behind its state "s", which the input "start" forgets, and gives what
// its other control inputs say: ready, end, and the identifier, whose type is given.
func told(id tensor.DType) *onnx.Model {
	b := onnx.NewBuilder("told", onnx.DefaultOpset)
	one := func(d tensor.DType) onnx.TensorType { return batchOf(d, onnx.Known(1)) }
	x, s := b.Input("x", one(tensor.Float32)), b.Input("s", one(tensor.Float32))
	start, end, ready, corrid := b.Input("start", one(tensor.Bool)), b.Input("end", one(tensor.Float32)), b.Input("ready", one(tensor.Int32)), b.Input("corrid", one(id))
	sum := b.Op("Add", []onnx.Value{x, b.Op("Where", []onnx.Value{start, b.Float(0), s})})
	b.Output(b.Rename(sum, "y"), one(tensor.Float32))
	b.Output(b.Rename(b.Op("Identity", []onnx.Value{sum}), "s_next"), one(tensor.Float32))
	for name, v := range sorted.All(map[string]onnx.Value{"end_was": end, "ready_was": ready, "corrid_was": corrid}) {
		d := map[string]tensor.DType{"end_was": tensor.Float32, "ready_was": tensor.Int32, "corrid_was": id}[name]
		b.Output(b.Rename(b.Op("Identity", []onnx.Value{v}), name), one(d))
	}
	return built(b)
}

func toldConfig(id tensor.DType) Config {
	return Config{
		State:    []StatePort{{Input: "s", Output: "s_next"}},
		Controls: []ControlInput{{"start", SequenceStart, tensor.Bool, 0, 1}, {"end", SequenceEnd, tensor.Float32, -1, 2}, {"ready", SequenceReady, tensor.Int32, 0, 7}, {"corrid", SequenceID, id, 0, 0}},
	}
}

// The server's controls of a sequence are right in every step, also where steps of several
// sequences share a run.
func TestControlInputs(t *testing.T) {
	n := 0
	for _, id := range idTypes {
		s, _, _ := start(t, Options{}, one("m", toldConfig(id), told(id)))
		sums := map[string]float32{}
		const steps = 5
		for k := range steps {
			for _, seq := range []string{"17", "4000000"} {
				var resp Response
				req := step("m", seq, float32(k+1), k == 0, k == steps-1)
				req.Outputs = []string{"y", "end_was", "ready_was", "corrid_was"}
				if err := s.Infer(t.Context(), req, &resp); err != nil {
					t.Fatal(err)
				}
				sums[seq] += float32(k + 1)
				end := float32(-1)
				if k == steps-1 {
					end = 2
				}
				said := ""
				switch v := resp.Outputs[3].Value; id {
				case tensor.Int32:
					said = fmt.Sprint(v.Int32s()[0])
				case tensor.Int64:
					said = fmt.Sprint(v.Int64s()[0])
				case tensor.Uint32:
					said = fmt.Sprint(tensor.Data[uint32](v)[0])
				case tensor.Uint64:
					said = fmt.Sprint(tensor.Data[uint64](v)[0])
				case tensor.String:
					said = v.Strings()[0]
				}
				if y := resp.Outputs[0].Value.Float32s()[0]; y != sums[seq] || resp.Outputs[1].Value.Float32s()[0] != end || resp.Outputs[2].Value.Int32s()[0] != 7 || said != seq {
					t.Errorf("%v, step %d of %s: y %v, end %v, ready %v, identifier %s", id, k, seq, y, resp.Outputs[1].Value, resp.Outputs[2].Value, said)
				}
				n++
			}
		}
		wrong := step("m", "a name", 1, true, false)
		if err := s.Infer(t.Context(), wrong, &Response{}); (err == nil) != (id == tensor.String) || err != nil && !strings.Contains(err.Error(), "expected a whole number") {
			t.Errorf("%v: %v", id, err)
		}
	}
	if n != 50 {
		t.Errorf("%d steps", n)
	}
}

// Nothing of what the server fills or keeps is listed, and requests that give it, or belong to no
// sequence, are refused.
func TestImplicitPorts(t *testing.T) {
	s, _, _ := start(t, Options{}, one("m", toldConfig(tensor.Uint64), told(tensor.Uint64)), one("c", Config{}, counter(1)))
	for model, want := range sorted.All(map[string]string{"m": "x y end_was ready_was corrid_was", "c": "x y"}) {
		m, err := s.Metadata(model, "")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, p := range slices.Concat(m.Inputs, m.Outputs) {
			if !p.Implicit {
				names = append(names, p.Name)
			}
		}
		slices.Sort(names)
		expected := strings.Fields(want)
		slices.Sort(expected)
		if !slices.Equal(names, expected) {
			t.Errorf("%s: %v, expected %v", model, names, expected)
		}
	}
	c, err := s.Config("c", "")
	if err != nil || len(c.State) != 1 || c.State[0].Input != "s" || !slices.Equal(c.State[0].Shape, []int{1}) || c.State[0].Initial[0] != 100 {
		t.Errorf("%+v, %v", c.State, err)
	}
	given := step("m", "1", 1, true, false)
	given.Inputs = append(given.Inputs, Tensor{"ready", tensor.Of([]int32{1}, 1, 1)})
	alone := step("m", "", 1, false, false)
	for _, c := range []struct {
		req  *Request
		says string
	}{
		{given, `"ready" says where in its sequence`},
		{alone, "must specify a non-zero or non-empty correlation ID"},
		{step("m", "9", 1, false, false), "inference request for sequence 9 to model 'm' must specify the START flag on the first request of the sequence"},
	} {
		err := s.Infer(t.Context(), c.req, &Response{})
		wantCode(t, err, InvalidArgument)
		if err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v, expected %q", err, c.says)
		}
	}
}

// Control inputs that the model does not have, or has otherwise, keep it from being served.
func TestBadControlInputs(t *testing.T) {
	for _, c := range []struct {
		in   ControlInput
		says string
	}{
		{ControlInput{"q", SequenceStart, tensor.Bool, 0, 1}, `control input "q": the model has`},
		{ControlInput{"start", SequenceStart, tensor.Int32, 0, 1}, "expected int32"},
		{ControlInput{"s", SequenceStart, tensor.Float32, 0, 1}, "another meaning"},
		{ControlInput{"", SequenceStart, tensor.Float32, 0, 1}, "has no input"},
		{ControlInput{"start", 9, tensor.Bool, 0, 1}, "is no control"},
	} {
		config := toldConfig(tensor.Int64)
		config.Controls = []ControlInput{c.in}
		s, err := New(Options{Compiler: portable.New()}, &shelf{list: []Listing{one("m", config, told(tensor.Int64))}})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v, expected %q", c.in, err, c.says)
		}
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// The announced largest batch is the most that a request may have.
func TestAnnouncedBatchIsEnforced(t *testing.T) {
	s, _, _ := start(t, Options{MaxBatch: 16}, one("open", Config{}, scale(2)), one("four", Config{MaxBatch: 4}, scale(2)), one("off", Config{Batching: Batching{Off: true}}, scale(2)))
	for _, name := range []string{"open", "four", "off"} {
		m, err := s.Metadata(name, "")
		if err != nil {
			t.Fatal(err)
		}
		c, err := s.Config(name, "")
		if err != nil || c.MaxBatch != m.MaxBatch || m.MaxBatch == 0 {
			t.Errorf("%s: %d in the configuration, %d in the description, %v", name, c.MaxBatch, m.MaxBatch, err)
		}
		if err := s.Infer(t.Context(), ask(name, make([]float32, 2*m.MaxBatch)...), &Response{}); err != nil {
			t.Errorf("%s: %d rows: %v", name, m.MaxBatch, err)
		}
		wantCode(t, s.Infer(t.Context(), ask(name, make([]float32, 2*m.MaxBatch+2)...), &Response{}), InvalidArgument)
	}
}
