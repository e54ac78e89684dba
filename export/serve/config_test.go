package serve

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func TestConfigurations(t *testing.T) {
	type c = Config
	cases := []struct {
		text string // pbtxt, or JSON where it begins with a brace
		want Config
		say  string
	}{
		{``, c{}, ""},
		{`{}`, c{}, ""},
		{`name: "m" # comment`, c{}, ""},
		{`max_batch_size: 8, version_policy: { specific: { versions: [1, 3] } };`, c{MaxBatch: 8, Policy: VersionPolicy{Specific: []string{"1", "3"}}}, ""},
		{`max_batch_size: 0`, c{NoBatchAxis: true}, ""},
		{`{"maxBatchSize": 0}`, c{NoBatchAxis: true}, ""},
		{`{"maxBatchSize": "8", "versionPolicy": {"all": {}}}`, c{MaxBatch: 8, Policy: VersionPolicy{All: true}}, ""},
		{`{"version_policy": {"latest": {"num_versions": 3}}, "input": [{"name": "x", "dims": [1, [2]], "data_type": "TYPE_FP32", "reshape": null}]}`, c{Policy: VersionPolicy{Latest: 3}, Ports: []PortConfig{{Name: "x", Dims: []int{1, 2}, DType: tensor.Float32}}}, ""},
		{`input { name: "x" dims: [ 1 ] reshape { } } output { name: "y" data_type: TYPE_STRING dims: [ -1, 4 ] }`, c{Ports: []PortConfig{{Name: "x", Dims: []int{1}, Reshape: []int{}}, {Name: "y", Output: true, DType: tensor.String, Dims: []int{-1, 4}}}}, ""},
		{`model_warmup { name: "w" batch_size: 2 count: 3 inputs { key: "x" value { data_type: TYPE_FP32 dims: [ 2 ] random_data: true } } inputs { key: "b" value { data_type: TYPE_INT64 dims: [ ] input_data_file: "f" } } }`,
			c{WarmUps: []WarmUp{{Name: "w", Batch: 2, Count: 3, Inputs: []WarmUpInput{{Name: "b", DType: tensor.Int64, File: "f"}, {Name: "x", DType: tensor.Float32, Dims: []int{2}, Random: true}}}}}, ""},
		{`{"model_warmup": [{"inputs": {"x": {"data_type": "TYPE_BOOL", "dims": [1], "zero_data": true}}}]}`, c{WarmUps: []WarmUp{{Inputs: []WarmUpInput{{Name: "x", DType: tensor.Bool, Dims: []int{1}}}}}}, ""},
		{`sequence_batching { direct { } state { input_name: "s" output_name: "t" initial_state { data_file: "s" } } }`, c{Sequences: Sequences{Direct: true}, State: []StatePort{{Input: "s", Output: "t", File: "s"}}}, ""},
		{`sequence_batching { control_input [ { name: "START" control [ { kind: CONTROL_SEQUENCE_START fp32_false_true: [ -1, 2.5 ] } ] }, { name: "END" control { kind: CONTROL_SEQUENCE_END bool_false_true: [ false, true ] } }, { name: "READY" control { kind: CONTROL_SEQUENCE_READY int32_false_true: 0 int32_false_true: 1 } }, { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } } ] }`,
			c{Controls: []ControlInput{{"START", SequenceStart, tensor.Float32, -1, 2.5}, {"END", SequenceEnd, tensor.Bool, 0, 1}, {"READY", SequenceReady, tensor.Int32, 0, 1}, {"ID", SequenceID, tensor.String, 0, 0}}}, ""},
		{`{"sequence_batching": {"controlInput": [{"name": "START", "control": [{"int32FalseTrue": [0, 1]}]}], "direct": {}}}`,
			c{Sequences: Sequences{Direct: true}, Controls: []ControlInput{{"START", SequenceStart, tensor.Int32, 0, 1}}}, ""},
		{`dynamic_batching { priority_levels: 2 default_priority_level: 1 preserve_ordering: true default_queue_policy { timeout_action: DELAY default_timeout_microseconds: 5 } } instance_group { kind: KIND_GPU gpus: [ 1 ] } response_cache { enable: true }`,
			c{Instances: 1, Ignored: []string{
				"dynamic_batching.default_priority_level (requests are taken in the order of arrival, without priorities)", "dynamic_batching.priority_levels (requests are taken in the order of arrival, without priorities)",
				"instance_group.gpus (models run on the processor)", "response_cache (answers are not cached)",
				"instance_group.kind (models run on the processor)", "default_queue_policy.timeout_action (requests whose time is over keep their turn)",
			}}, ""},
		{`default_model_filename: "other.onnx"`, c{ModelFile: "other.onnx"}, ""},
		{`default_model_filename: "model.onnx" model_transaction_policy { decoupled: false } dynamic_batching { default_queue_policy { timeout_action: REJECT } }`, c{ModelFile: "model.onnx"}, ""},
		{`prioritiy: 3`, c{}, "prioritiy is no field"},
		{`dynamic_batching { levels: 3 }`, c{}, "dynamic_batching.levels is no field"},
		{`ensemble_scheduling { }`, c{}, "ensembles are not supported"},
		{`sequence_batching { control_input { name: "START" } }`, c{}, "0 controls, expected one"},
		{`sequence_batching { control_input { name: "START" control { kind: CONTROL_SEQUENCE_BEGIN } } }`, c{}, "expected one of CONTROL_SEQUENCE_START"},
		{`sequence_batching { control_input { name: "START" control { int32_false_true: 1 } } }`, c{}, "1 values, expected those for false and true"},
		{`sequence_batching { control_input { name: "START" control { int32_false_true: [ 0, 0.5 ] } } }`, c{}, "expected a number"},
		{`sequence_batching { control_input { name: "ID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_FP32 } } }`, c{}, "as float32, expected one of"},
		{`sequence_batching { control_input { name: "START" control { } } }`, c{}, "expected one of [int32 float32 bool]"},
		{`sequence_batching { state { input: "s" } }`, c{}, "state.input is no field"},
		{`model_transaction_policy { decoupled: true }`, c{}, "one answer"},
		{`default_model_filename: "../other.onnx"`, c{}, "the name of a file"},
		{`default_model_filename: ".."`, c{}, "the name of a file"},
		{`input { name: "x" data_type: TYPE_X }`, c{}, "TYPE_FP32"},
		{`input { data_type: TYPE_FP32 }`, c{}, "no name"},
		{`input { name: "x" dims: -2 }`, c{}, "extents"},
		{`input { name: "x" optional: true }`, c{}, "no fewer inputs"},
		{`instance_group { kind: KIND_MODEL }`, c{}, "KIND_CPU"},
		{`instance_group { passive: true }`, c{}, "takes no requests"},
		{`dynamic_batching { default_queue_policy { timeout_action: LATER } }`, c{}, "REJECT or DELAY"},
		{`model_warmup { batch_size: -1 }`, c{}, "batch_size"},
		{`model_warmup { inputs { key: "x" value { } } }`, c{}, "no data_type"},
		{`model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 random_data: perhaps } } }`, c{}, "true or false"},
		{`instance_group [ { count: 2 }, { kind: KIND_CPU } ]`, c{Instances: 3}, ""},
		{`sequence_batching { max_sequence_idle_microseconds: 5000000 oldest { max_candidate_sequences: 4 } state [ { input_name: "s" output_name: "t" data_type: TYPE_FP32 dims: [ 1 ] initial_state { name: "z" zero_data: true dims: [ 1 ] data_type: TYPE_FP32 } } ] }`,
			c{Sequences: Sequences{Max: 4, Idle: 5 * time.Second}, State: []StatePort{{Input: "s", Output: "t", Shape: []int{1}}}}, ""},
		{`parameters { key: "onnxrl.routes" value { string_value: "prod=9 canary" } } parameters: { key: "onnxrl.shadows", value: { string_value: "3=0.5" } }`,
			c{Routes: []Route{{"prod", 9}, {"canary", 1}}, Shadows: []Shadow{{"3", 0.5}}}, ""},
		{`{"parameters": {"onnxrl.non_finite": {"string_value": "reject_inputs"}, "intra_op_thread_count": {"string_value": "2"}}}`, c{NonFinite: RejectNonFiniteInputs, Threads: 2}, ""},
		{`optimization { graph { level: -1 } } max_batch_size: 0x10`, c{MaxBatch: 16}, ""},
		{`name: "o"`, c{}, `expected "m"`},
		{`platform: "tensorflow_graphdef"`, c{}, "platform"},
		{`backend: "python"`, c{}, "backend"},
		{`max_batch_size: -1`, c{}, "at least 0"},
		{`max_batch_size: many`, c{}, "whole number"},
		{`max_batch_size: 99999999999`, c{}, "whole number"},
		{`max_batch_size: 1 max_batch_size: 2`, c{}, "2 times"},
		{`max_batch_size { }`, c{}, "is a message"},
		{`dynamic_batching: 3`, c{}, "expected a message"},
		{`dynamic_batching { max_queue_delay_microseconds: -5 }`, c{}, "microseconds"},
		{`max_batch_size: 4 dynamic_batching { preferred_batch_size: 5 }`, c{}, "preferred[0]"},
		{`version_policy { all {} latest { num_versions: 1 } }`, c{}, "expected one"},
		{"name: \"m\"\n\nx", c{}, "config.pbtxt:3"},
		{`name: "m`, c{}, "no end"},
		{`name: "m\q"`, c{}, "string"},
		{"name: \"m\nx\"", c{}, "over the end"},
		{`a {`, c{}, "file ends"},
		{`a: [1 2]`, c{}, "list"},
		{`: 3`, c{}, "name of a field"},
		{`}`, c{}, "name of a field"},
		{strings.Repeat("a {", 100), c{}, "nested"},
		{`{"a": ` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, c{}, "nested"},
		{`{} {}`, c{}, "after the JSON"},
		{`{"max_batch_size": 1.5}`, c{}, "whole number"},
		{`parameters { key: "onnxrl.routes" value { string_value: "a=b" } }`, c{}, "VERSION=NUMBER"},
		{`parameters { key: "onnxrl.routes" value { string_value: "a=0" } }`, c{}, "more than 0"},
		{`parameters { key: "onnxrl.non_finite" value { string_value: "x" } }`, c{}, "expected one of"},
		{`parameters { key: "intra_op_thread_count" value { string_value: "x" } }`, c{}, "0 to 1024"},
	}
	for _, k := range cases {
		parse := ParseConfig
		if strings.HasPrefix(k.text, "{") {
			parse = ParseConfigJSON
		}
		got, err := parse("m", []byte(k.text))
		switch {
		case k.say != "":
			wantCode(t, err, InvalidArgument)
			if err != nil && !strings.Contains(err.Error(), k.say) {
				t.Errorf("%s: %v, expected %q", k.text, err, k.say)
			}
		case err != nil:
			t.Errorf("%s: %v", k.text, err)
		case !reflect.DeepEqual(got, k.want):
			t.Errorf("%s: %+v", k.text, got)
		}
	}
	if len(cases) < 61 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestStatesThatDoNotFit(t *testing.T) {
	cases := []struct {
		state StatePort
		say   string
	}{
		{StatePort{Input: "q", Output: "s_next"}, `no input "q"`},
		{StatePort{Input: "s", Output: "q"}, `no output "q"`},
		{StatePort{Input: "s", Output: "s_next", Shape: []int{2}}, "shape [2]"},
		{StatePort{Input: "s", Output: "s_next", Initial: Values{1, 2}}, "2 initial values"},
	}
	src := &shelf{}
	s, _, _ := start(t, Options{})
	s.sources = []Source{src}
	for _, c := range cases {
		src.put(one("c", Config{State: []StatePort{c.state}}, counter(1)))
		if err := s.Poll(t.Context()); err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v", c.state, err)
		}
	}
	for _, text := range []string{`{`, `{"input": 1}`, `[{"input": "s"}]`, `[{"input": "s", "output": "t", "initial": ["x"]}]`} {
		if _, err := parseState(text); err == nil {
			t.Errorf("%s was read", text)
		}
	}
}

func FuzzConfig(f *testing.F) {
	f.Add(`name: "m" instance_group [ { count: 2 } ] dynamic_batching < >`)
	f.Add(`{"max_batch_size": 4, "parameters": {"a": {"string_value": "b"}}}`)
	f.Add(`input { name: "x" dims: [ 1 ] reshape { } } model_warmup { inputs { key: "x" value { data_type: TYPE_FP32 random_data: true } } }`)
	f.Add(`sequence_batching { state { input_name: 's' "t" dims: [1, 2] } }`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, parse := range []func(string, []byte) (Config, error){ParseConfig, ParseConfigJSON} {
			c, err := parse("m", []byte(text))
			if err != nil && CodeOf(err) != InvalidArgument {
				t.Error(err)
			}
			if err == nil && c.Validate() != nil {
				t.Error("accepted and not valid")
			}
		}
		if ports, err := parseState(text); err == nil {
			for _, p := range ports {
				_, _ = fill(1, []int{2}, p.Initial)
			}
		}
	})
}
