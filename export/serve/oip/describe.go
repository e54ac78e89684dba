package oip

import (
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/export/serve"
)

// Platform and Backend are what Triton calls ONNX models and what runs them.
const (
	Platform = "onnxruntime_onnx"
	Backend  = "onnxruntime"
)

// Extensions are those of Triton that the servers of this module have, by the names of its
// protocol.
var Extensions = []string{"binary_tensor_data", "model_configuration", "model_repository", "model_repository(unload_dependents)", "parameters", "sequence", "statistics"}

// ServerMetadata describes a server.
type ServerMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// TensorMetadata describes an input or an output; free extents are -1.
type TensorMetadata struct {
	Name     string `json:"name"`
	Datatype string `json:"datatype"`
	Shape    []int  `json:"shape"`
}

// ModelMetadata describes a version of a model.
type ModelMetadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"`
	Platform string           `json:"platform"`
	Inputs   []TensorMetadata `json:"inputs"`
	Outputs  []TensorMetadata `json:"outputs"`
}

// NewModelMetadata is the protocol's form of a description, without ports that are implicit.
func NewModelMetadata(m serve.Metadata) ModelMetadata {
	ports := func(list []serve.Port) []TensorMetadata {
		out := make([]TensorMetadata, 0, len(list))
		for _, p := range explicit(list) {
			out = append(out, TensorMetadata{p.Name, Datatype(p.DType), append([]int{}, p.Shape...)})
		}
		return out
	}
	versions := append([]string{}, m.Versions...)
	if len(versions) == 0 && m.Version != "" {
		versions = append(versions, m.Version)
	}
	return ModelMetadata{Name: m.Name, Versions: versions, Platform: Platform, Inputs: ports(m.Inputs), Outputs: ports(m.Outputs)}
}

// ModelConfig is a configuration in the form of Triton's.
type ModelConfig struct {
	Name             string               `json:"name"`
	Platform         string               `json:"platform"`
	Backend          string               `json:"backend"`
	VersionPolicy    VersionPolicy        `json:"version_policy"`
	MaxBatchSize     int                  `json:"max_batch_size"`
	ModelFile        string               `json:"default_model_filename,omitempty"`
	Input            []ConfigTensor       `json:"input"`
	Output           []ConfigTensor       `json:"output"`
	InstanceGroup    []InstanceGroup      `json:"instance_group"`
	DynamicBatching  *DynamicBatching     `json:"dynamic_batching,omitempty"`
	SequenceBatching *SequenceBatching    `json:"sequence_batching,omitempty"`
	Parameters       map[string]Parameter `json:"parameters"`
}

// VersionPolicy has one of its fields.
type VersionPolicy struct {
	Latest *struct {
		NumVersions int `json:"num_versions"`
	} `json:"latest,omitempty"`
	All      *struct{} `json:"all,omitempty"`
	Specific *struct {
		Versions []string `json:"versions"`
	} `json:"specific,omitempty"`
}

// ConfigTensor is an input or output; Dims leave the batch out where there is one.
type ConfigTensor struct {
	Name     string `json:"name"`
	DataType string `json:"data_type"`
	Dims     []int  `json:"dims"`
}

// InstanceGroup says how many sessions there are.
type InstanceGroup struct {
	Count int    `json:"count"`
	Kind  string `json:"kind"`
}

// DynamicBatching says how requests are combined.
type DynamicBatching struct {
	PreferredBatchSize       []int `json:"preferred_batch_size"`
	MaxQueueDelayMicrosecond int64 `json:"max_queue_delay_microseconds"`
}

// Parameter is an entry of the configuration that Triton has no field for.
type Parameter struct {
	StringValue string `json:"string_value"`
}

// NewModelConfig is Triton's form of a configuration; the metadata has the ports.
func NewModelConfig(m serve.Metadata, c serve.Config) ModelConfig {
	out := ModelConfig{
		Name: m.Name, Platform: Platform, Backend: Backend, MaxBatchSize: m.MaxBatch, ModelFile: c.ModelFile,
		Input: configTensors(m.Inputs, m.MaxBatch > 0), Output: configTensors(m.Outputs, m.MaxBatch > 0),
		InstanceGroup: []InstanceGroup{{max(c.Instances, 1), "KIND_CPU"}}, Parameters: map[string]Parameter{},
	}
	switch p := c.Policy; {
	case p.All:
		out.VersionPolicy.All = &struct{}{}
	case len(p.Specific) > 0:
		out.VersionPolicy.Specific = &struct {
			Versions []string `json:"versions"`
		}{slices.Clone(p.Specific)}
	default:
		out.VersionPolicy.Latest = &struct {
			NumVersions int `json:"num_versions"`
		}{max(p.Latest, 1)}
	}
	switch {
	case len(c.State)+len(c.Controls) > 0:
		out.SequenceBatching = newSequenceBatching(m, c)
	case m.MaxBatch > 0 && !c.Batching.Off:
		out.DynamicBatching = &DynamicBatching{append([]int{}, c.Batching.Preferred...), c.Batching.MaxDelay.Microseconds()}
	}
	for k, v := range m.Info {
		out.Parameters[k] = Parameter{v}
	}
	return out
}

// explicit lists the ports that requests give and get.
func explicit(list []serve.Port) []serve.Port {
	return slices.DeleteFunc(slices.Clone(list), func(p serve.Port) bool { return p.Implicit })
}

func configTensors(list []serve.Port, batched bool) []ConfigTensor {
	out := make([]ConfigTensor, 0, len(list))
	for _, p := range explicit(list) {
		dims := append([]int{}, p.Shape...)
		if batched && len(dims) > 0 {
			dims = dims[1:]
		}
		out = append(out, ConfigTensor{p.Name, ConfigType(Datatype(p.DType)), dims})
	}
	return out
}

// ConfigType is the name that Triton's configurations have for a datatype.
func ConfigType(datatype string) string {
	if datatype == "BYTES" {
		return "TYPE_STRING"
	}
	return "TYPE_" + datatype
}

// Duration is a number of events and the time they took together.
type Duration struct {
	Count uint64 `json:"count"`
	NS    uint64 `json:"ns"`
}

// InferenceStatistics divides the time of requests. There is no cache, so its entries are 0.
type InferenceStatistics struct {
	Success       Duration `json:"success"`
	Fail          Duration `json:"fail"`
	Queue         Duration `json:"queue"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
	CacheHit      Duration `json:"cache_hit"`
	CacheMiss     Duration `json:"cache_miss"`
}

// BatchStatistics are those of all runs of one number of rows.
type BatchStatistics struct {
	BatchSize     int      `json:"batch_size"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
}

// ModelStatistics are those of a version.
type ModelStatistics struct {
	Name           string              `json:"name"`
	Version        string              `json:"version"`
	LastInference  uint64              `json:"last_inference"`
	InferenceCount uint64              `json:"inference_count"`
	ExecutionCount uint64              `json:"execution_count"`
	Inference      InferenceStatistics `json:"inference_stats"`
	Batches        []BatchStatistics   `json:"batch_stats"`
}

// Statistics is the answer to a question for statistics.
type Statistics struct {
	ModelStats []ModelStatistics `json:"model_stats"`
}

// NewStatistics is the protocol's form of statistics.
func NewStatistics(list []serve.Statistics) Statistics {
	d := func(v serve.Durations) Duration { return Duration{v.Count, nanoseconds(v.Total)} }
	out := Statistics{ModelStats: make([]ModelStatistics, 0, len(list))}
	for _, s := range list {
		m := ModelStatistics{
			Name: s.Model, Version: s.Version, InferenceCount: s.Inferences, ExecutionCount: s.Executions,
			Inference: InferenceStatistics{Success: d(s.Success), Fail: d(s.Failed), Queue: d(s.Queue), ComputeInput: d(s.Input), ComputeInfer: d(s.Infer), ComputeOutput: d(s.Output)},
			Batches:   make([]BatchStatistics, 0, len(s.Batches)),
		}
		if !s.LastInference.IsZero() {
			m.LastInference = uint64(s.LastInference.UnixMilli())
		}
		for _, b := range s.Batches {
			m.Batches = append(m.Batches, BatchStatistics{b.Rows, d(b.Input), d(b.Infer), d(b.Output)})
		}
		out.ModelStats = append(out.ModelStats, m)
	}
	return out
}

func nanoseconds(d time.Duration) uint64 { return uint64(max(d, 0)) }

// IndexEntry is a version in the repository's index.
type IndexEntry struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	State   string `json:"state,omitempty"`
	Reason  string `json:"reason,omitempty"`
}

// NewIndex is the protocol's form of the index.
func NewIndex(list []serve.ModelStatus) []IndexEntry {
	out := make([]IndexEntry, 0, len(list))
	for _, m := range list {
		out = append(out, IndexEntry{m.Name, m.Version, string(m.State), m.Reason})
	}
	return out
}

// CheckModel refuses names of models that could be more than a name where names become paths. As in
// artefact stores and registries a name may have parts, such as team/policy; in the path of a URL
// its separators are escaped.
func CheckModel(name string) error {
	ok := len(name) <= 255
	for part := range strings.SplitSeq(name, "/") {
		ok = ok && plain(part)
	}
	if !ok {
		return bad("model %q: expected a name of 1 to 255 bytes without control characters, backslashes and parts that are empty, . or ..", clip(name))
	}
	return nil
}

// CheckVersion refuses names of versions in the same way; they have no parts.
func CheckVersion(name string) error {
	if len(name) > 255 || !plain(name) || strings.Contains(name, "/") {
		return bad("version %q: expected a name of 1 to 255 bytes without path separators and control characters", clip(name))
	}
	return nil
}

// plain reports whether a part of a name is nothing else.
func plain(part string) bool {
	return part != "" && part != "." && part != ".." && !strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\\' })
}

// CheckPath refuses paths of uploaded files that would leave the model's folder.
func CheckPath(path string) error {
	if !fs.ValidPath(path) || path == "." || strings.ContainsAny(path, "\\\x00:") {
		return bad("file %q: expected a path within the model's folder, such as 1/model.onnx", clip(path))
	}
	return nil
}
