package oip

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The configuration of a model with sequences names what its description leaves out, in Triton's
// form.
func TestSequenceConfiguration(t *testing.T) {
	m := serve.Metadata{Name: "m", MaxBatch: 4,
		Inputs:  []serve.Port{{Name: "x", DType: tensor.Float32, Shape: []int{-1, 3}}, {Name: "h", DType: tensor.Float32, Shape: []int{-1, 5}, Implicit: true}, {Name: "start", DType: tensor.Bool, Shape: []int{-1, 1}, Implicit: true}},
		Outputs: []serve.Port{{Name: "y", DType: tensor.Int64, Shape: []int{-1}}, {Name: "h_next", DType: tensor.Float32, Shape: []int{-1, 5}, Implicit: true}},
	}
	text := func(v any) string {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	if got, want := text(NewModelMetadata(m)), `{"name":"m","versions":[],"platform":"onnxruntime_onnx","inputs":[{"name":"x","datatype":"FP32","shape":[-1,3]}],"outputs":[{"name":"y","datatype":"INT64","shape":[-1]}]}`; got != want {
		t.Errorf("%s\nexpected %s", got, want)
	}
	n := 0
	for _, c := range []struct {
		config serve.Config
		want   string
	}{
		{serve.Config{State: []serve.StatePort{{Input: "h", Output: "h_next", Shape: []int{5}}}},
			`{"max_sequence_idle_microseconds":60000000,"control_input":[],"state":[{"input_name":"h","output_name":"h_next","data_type":"TYPE_FP32","dims":[5],"initial_state":[{"name":"h","data_type":"TYPE_FP32","dims":[5],"zero_data":true}]}],"oldest":{"max_candidate_sequences":1024}}`},
		{serve.Config{Sequences: serve.Sequences{Direct: true, Idle: time.Second}, State: []serve.StatePort{{Input: "h", Output: "h_next", Shape: []int{5}, File: "h.bin"}}, Controls: []serve.ControlInput{{Input: "start", Kind: serve.SequenceStart, DType: tensor.Bool, False: 0, True: 1}}},
			`{"max_sequence_idle_microseconds":1000000,"control_input":[{"name":"start","control":[{"kind":"CONTROL_SEQUENCE_START","bool_false_true":[false,true]}]}],"state":[{"input_name":"h","output_name":"h_next","data_type":"TYPE_FP32","dims":[5],"initial_state":[{"name":"h","data_type":"TYPE_FP32","dims":[5],"data_file":"h.bin"}]}],"direct":{}}`},
		{serve.Config{Sequences: serve.Sequences{Max: 7}, State: []serve.StatePort{{Input: "h", Output: "h_next", Shape: []int{5}, Initial: []float64{1}}}, Controls: []serve.ControlInput{{Input: "start", Kind: serve.SequenceID, DType: tensor.String}, {Input: "start", Kind: serve.SequenceEnd, DType: tensor.Float32, True: 2.5}, {Input: "start", Kind: serve.SequenceReady, DType: tensor.Int32, False: -1, True: 3}}},
			`{"max_sequence_idle_microseconds":60000000,"control_input":[{"name":"start","control":[{"kind":"CONTROL_SEQUENCE_CORRID","data_type":"TYPE_STRING"}]},{"name":"start","control":[{"kind":"CONTROL_SEQUENCE_END","fp32_false_true":[0,2.5]}]},{"name":"start","control":[{"kind":"CONTROL_SEQUENCE_READY","int32_false_true":[-1,3]}]}],"state":[{"input_name":"h","output_name":"h_next","data_type":"TYPE_FP32","dims":[5]}],"oldest":{"max_candidate_sequences":7}}`},
	} {
		out := NewModelConfig(m, c.config)
		if got := text(out.SequenceBatching); got != c.want || out.DynamicBatching != nil || len(out.Input) != 1 || len(out.Output) != 1 {
			t.Errorf("%s\nexpected %s", got, c.want)
		}
		// A value that is written is read as it was.
		back, err := serve.ParseConfigJSON("m", []byte(text(out)))
		if err != nil || len(back.Controls) != len(c.config.Controls) || len(back.State) != 1 || back.Sequences.Direct != c.config.Sequences.Direct {
			t.Errorf("%+v, %v", back, err)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d cases", n)
	}
}
