package format

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// configType is the part of Triton's ModelConfig that is written, with the names of
// model_config.proto; text does not depend on the numbers.
func configType(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	enum := func(name string, values ...string) *descriptorpb.EnumDescriptorProto {
		e := &descriptorpb.EnumDescriptorProto{Name: &name}
		for i, v := range values {
			e.Value = append(e.Value, &descriptorpb.EnumValueDescriptorProto{Name: &v, Number: proto.Int32(int32(i))})
		}
		return e
	}
	message := func(name string, fields ...string) *descriptorpb.DescriptorProto {
		m := &descriptorpb.DescriptorProto{Name: &name}
		for i, f := range fields {
			part := strings.Fields(f) // [repeated] TYPE NAME
			d := &descriptorpb.FieldDescriptorProto{Name: &part[len(part)-1], Number: proto.Int32(int32(i + 1)), Label: descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()}
			if part[0] == "repeated" {
				d.Label = descriptorpb.FieldDescriptorProto_LABEL_REPEATED.Enum()
			}
			switch typ := part[len(part)-2]; typ {
			case "string":
				d.Type = descriptorpb.FieldDescriptorProto_TYPE_STRING.Enum()
			case "int64":
				d.Type = descriptorpb.FieldDescriptorProto_TYPE_INT64.Enum()
			case "bool":
				d.Type = descriptorpb.FieldDescriptorProto_TYPE_BOOL.Enum()
			case "DataType", "Kind":
				d.Type, d.TypeName = descriptorpb.FieldDescriptorProto_TYPE_ENUM.Enum(), proto.String("."+typ)
			default:
				d.Type, d.TypeName = descriptorpb.FieldDescriptorProto_TYPE_MESSAGE.Enum(), proto.String("."+typ)
			}
			m.Field = append(m.Field, d)
		}
		return m
	}
	file, err := protodesc.NewFile(&descriptorpb.FileDescriptorProto{
		Name: proto.String("model_config.proto"), Syntax: proto.String("proto3"),
		EnumType: []*descriptorpb.EnumDescriptorProto{
			enum("DataType", "TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64"),
			enum("Kind", "KIND_AUTO", "KIND_GPU", "KIND_CPU"),
		},
		MessageType: []*descriptorpb.DescriptorProto{
			message("Reshape", "repeated int64 shape"),
			message("Port", "string name", "DataType data_type", "repeated int64 dims", "Reshape reshape"),
			message("DynamicBatching", "int64 max_queue_delay_microseconds"),
			message("Initial", "string name", "DataType data_type", "repeated int64 dims", "bool zero_data", "string data_file"),
			message("State", "string input_name", "string output_name", "DataType data_type", "repeated int64 dims", "repeated Initial initial_state"),
			message("SequenceBatching", "repeated State state"),
			message("InstanceGroup", "int64 count", "Kind kind"),
			message("Text", "string string_value"),
			message("Parameter", "string key", "Text value"),
			message("WarmupInput", "DataType data_type", "repeated int64 dims", "bool zero_data", "string input_data_file"),
			message("WarmupEntry", "string key", "WarmupInput value"),
			message("Warmup", "string name", "int64 batch_size", "repeated WarmupEntry inputs"),
			message("ModelConfig", "string name", "string platform", "string backend", "int64 max_batch_size", "repeated Port input", "repeated Port output",
				"DynamicBatching dynamic_batching", "SequenceBatching sequence_batching", "repeated InstanceGroup instance_group", "repeated Parameter parameters", "repeated Warmup model_warmup"),
		},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file.Messages().ByName("ModelConfig")
}

// parsed reads a configuration strictly and returns it as one line.
func parsed(t *testing.T, text string) string {
	t.Helper()
	m := dynamicpb.NewMessage(configType(t))
	if err := prototext.Unmarshal([]byte(text), m); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	// The package varies blanks on purpose.
	return strings.Join(strings.Fields(prototext.MarshalOptions{}.Format(m)), " ")
}

func TestTritonRepository(t *testing.T) {
	p := packageOf(t, modelOf(t))
	repo := t.TempDir()
	if _, err := write(t, "triton", repo, p); err != nil {
		t.Fatal(err)
	}
	config := parsed(t, read(t, repo, "policy", "config.pbtxt"))
	for _, want := range []string{
		`name:"policy" platform:"onnxruntime_onnx" backend:"onnxruntime" max_batch_size:1024`,
		`input:{name:"window" data_type:TYPE_FP32 dims:2 dims:3} input:{name:"mask" data_type:TYPE_BOOL dims:4}`,
		`output:{name:"action" data_type:TYPE_INT64 dims:1 reshape:{}} output:{name:"scores" data_type:TYPE_FP32 dims:4} output:{name:"value" data_type:TYPE_FP32 dims:1 reshape:{}}`,
		`dynamic_batching:{max_queue_delay_microseconds:100}`, `instance_group:{count:1 kind:KIND_CPU}`,
		`parameters:{key:"intra_op_thread_count" value:{string_value:"1"}}`,
		`model_warmup:{name:"recorded" batch_size:1 inputs:{key:"window" value:{data_type:TYPE_FP32 dims:2 dims:3 input_data_file:"window"}} inputs:{key:"mask" value:{data_type:TYPE_BOOL dims:4 input_data_file:"mask"}}}`,
	} {
		if !strings.Contains(config, want) {
			t.Errorf("the configuration lacks %s:\n%s", want, config)
		}
	}
	if strings.Contains(config, "sequence_batching") {
		t.Errorf("a model that remembers nothing: %s", config)
	}
	for name, x := range sorted.All(p.Inputs) {
		if read(t, repo, "policy", "warmup", name) != string(x.Rows(0, 1).Bytes()) {
			t.Errorf("the warm-up of %s is not the first row", name)
		}
	}

	// The same model again is another version; one with other ports is another model.
	files, err := write(t, "triton", repo, p)
	if err != nil || len(files) != 1 || files[0] != filepath.Join(repo, "policy", "2", "model.onnx") {
		t.Errorf("again: %v, %v", files, err)
	}
	// Version folders are numbers without zeros in front; others do not count.
	if err := os.MkdirAll(filepath.Join(repo, "policy", "0009"), 0o755); err != nil {
		t.Fatal(err)
	}
	if files, err := write(t, "triton", repo, p); err != nil || files[0] != filepath.Join(repo, "policy", "3", "model.onnx") {
		t.Errorf("once more: %v, %v", files, err)
	}
	m, err := bake.Sample(p.Model, bake.Choice{Output: "action", Scores: "scores", Heads: []int{4}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write(t, "triton", repo, packageOf(t, m)); err == nil || !strings.Contains(err.Error(), "choose another --name") {
		t.Errorf("another model: error %v", err)
	}
}

func TestTritonSequences(t *testing.T) {
	m, err := bake.Stack(modelOf(t), bake.Frames{Input: "window", Initial: 0.5})
	if err != nil {
		t.Fatal(err)
	}
	repo := t.TempDir()
	if _, err := write(t, "triton", repo, packageOf(t, m)); err != nil {
		t.Fatal(err)
	}
	config := parsed(t, read(t, repo, "policy", "config.pbtxt"))
	want := `sequence_batching:{state:{input_name:"window_state_in" output_name:"window_state_out" data_type:TYPE_FP32 dims:1 dims:3 initial_state:{name:"window_state_in" data_type:TYPE_FP32 dims:1 dims:3 data_file:"window_state_in"}}}`
	if !strings.Contains(config, want) || strings.Contains(config, "dynamic_batching") || strings.Contains(config, "model_warmup") {
		t.Errorf("%s, want %s", config, want)
	}
	if strings.Contains(config, `put:{name:"window_state`) || !strings.Contains(config, `input:{name:"window" data_type:TYPE_FP32 dims:3}`) {
		t.Errorf("states are no inputs and outputs of requests: %s", config)
	}
	initial := tensor.Of([]float32{0.5, 0.5, 0.5}, 3)
	if read(t, repo, "policy", "initial_state", "window_state_in") != string(initial.Bytes()) {
		t.Error("the initial state is another")
	}
}

func TestFileNamesAndLiterals(t *testing.T) {
	for in, want := range sorted.All(map[string]string{"window": "window", "a/b": "a%2Fb", "..": "%2E%2E", "a:b c": "a%3Ab%20c", "é": "%C3%A9"}) {
		if got := fileName(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
	for _, in := range []string{"policy", `a"b\c`, "line\nend\x00", "é"} {
		m := dynamicpb.NewMessage(configType(t))
		if err := prototext.Unmarshal([]byte("name: "+quote(in)), m); err != nil {
			t.Fatal(err)
		}
		if got := m.Get(m.Descriptor().Fields().ByName("name")).String(); got != in {
			t.Errorf("%q became %q", in, got)
		}
	}
}
