package serve

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// tritonTypes are the element types of Triton's configurations.
var tritonTypes = map[string]tensor.DType{
	"TYPE_BOOL": tensor.Bool, "TYPE_UINT8": tensor.Uint8, "TYPE_UINT16": tensor.Uint16, "TYPE_UINT32": tensor.Uint32, "TYPE_UINT64": tensor.Uint64,
	"TYPE_INT8": tensor.Int8, "TYPE_INT16": tensor.Int16, "TYPE_INT32": tensor.Int32, "TYPE_INT64": tensor.Int64,
	"TYPE_FP16": tensor.Float16, "TYPE_BF16": tensor.BFloat16, "TYPE_FP32": tensor.Float32, "TYPE_FP64": tensor.Float64, "TYPE_STRING": tensor.String,
}

// treatment says how a field is treated. It is read, it is passed over with a note as answers do
// not depend on it, it makes no difference at all, or it is refused because answers would be
// others.
type treatment struct {
	refused, noted bool
	why            string
}

var (
	read   = treatment{}
	silent = treatment{}
)

func noted(why string) treatment   { return treatment{noted: true, why: why} }
func refused(why string) treatment { return treatment{refused: true, why: why} }

// treatments are the fields of Triton's ModelConfig, by path. Fields of a message that is not
// listed here are not looked at.
var treatments = map[string]map[string]treatment{
	"": {
		"name": read, "platform": read, "backend": read, "runtime": silent, "version_policy": read, "max_batch_size": read, "input": read, "output": read,
		"dynamic_batching": read, "sequence_batching": read, "instance_group": read, "parameters": read, "model_warmup": read,
		"default_model_filename":   read,
		"model_transaction_policy": read,
		"optimization":             read,
		"batch_input":              refused("inputs made from a batch are not supported"),
		"batch_output":             refused("outputs that are scattered over a batch are not supported"),
		"ensemble_scheduling":      refused("ensembles are not supported"),
		"cc_model_filenames":       refused("files by compute capability are not supported"),
		"model_operations":         refused("libraries of operators are not loaded"),
		"model_repository_agents":  refused("repository agents are not supported"),
		"metric_tags":              noted("metrics have the labels model and version"),
		"model_metrics":            noted("histograms have buckets of their own"),
		"response_cache":           noted("answers are not cached"),
	},
	"input": {
		"name": read, "data_type": read, "dims": read, "reshape": read, "format": silent,
		"optional":                refused("the engine takes no fewer inputs than the model has"),
		"is_shape_tensor":         refused("shape tensors are TensorRT's"),
		"allow_ragged_batch":      refused("ragged batches are not supported"),
		"is_non_linear_format_io": refused("other formats than row-major are not supported"),
	},
	"output": {
		"name": read, "data_type": read, "dims": read, "reshape": read,
		"label_filename":          noted("classes are not answered by their labels"),
		"is_shape_tensor":         refused("shape tensors are TensorRT's"),
		"is_non_linear_format_io": refused("other formats than row-major are not supported"),
	},
	"dynamic_batching": {
		"preferred_batch_size": read, "max_queue_delay_microseconds": read, "default_queue_policy": read, "preserve_ordering": silent,
		"priority_levels":        noted("requests are taken in the order of arrival, without priorities"),
		"default_priority_level": noted("requests are taken in the order of arrival, without priorities"),
		"priority_queue_policy":  noted("requests are taken in the order of arrival, without priorities"),
	},
	"default_queue_policy": {
		"max_queue_size": read, "default_timeout_microseconds": read, "timeout_action": read,
		"allow_timeout_override": silent, // a request's own timeout always counts
	},
	"sequence_batching": {
		"max_sequence_idle_microseconds": read, "oldest": read, "state": read, "iterative_sequence": refused("sequences that schedule themselves again are not supported"),
		"direct": read, "control_input": read,
		"generative_batcher": refused("sequences that schedule themselves again are not supported"),
	},
	"direct":        {"max_queue_delay_microseconds": noted("steps share a run as requests do"), "minimum_slot_utilization": noted("steps share a run as requests do")},
	"control_input": {"name": read, "control": read},
	"control":       {"kind": read, "int32_false_true": read, "fp32_false_true": read, "bool_false_true": read, "data_type": read},
	"state":         {"input_name": read, "output_name": read, "data_type": read, "dims": read, "initial_state": read, "use_same_buffer_for_input_output": silent, "use_growable_memory": refused("state that grows is not supported")},
	"initial_state": {"name": silent, "data_type": read, "dims": read, "zero_data": read, "data_file": read},
	"oldest": {
		"max_candidate_sequences": read, "preferred_batch_size": noted("steps share a run as requests do"), "max_queue_delay_microseconds": noted("steps share a run as requests do"), "preserve_ordering": silent,
	},
	"instance_group": {
		"count": read, "kind": read, "name": silent, "profile": silent, "rate_limiter": noted("the rate of runs is not limited"),
		"gpus": noted("models run on the processor"), "secondary_devices": noted("models run on the processor"), "host_policy": noted("models run on the processor"),
		"passive": refused("an instance that takes no requests is not supported"),
	},
	"optimization": {
		"graph": silent, "priority": silent, "cuda": silent, "input_pinned_memory": silent, "output_pinned_memory": silent, "gather_kernel_buffer_threshold": silent, "eager_batching": silent,
		"execution_accelerators": noted("models run on the engine's processor kernels"),
	},
	"model_transaction_policy": {"decoupled": read},
	"model_warmup":             {"name": read, "batch_size": read, "inputs": read, "count": read},
}

// look reports fields that change what a model answers and that this server does not do; what
// changes nothing but speed is collected in ignored.
func (f *fields) look(m message, at string) {
	table, ok := treatments[at]
	if !ok {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(m)) {
		t, ok := table[key]
		name := strings.TrimPrefix(at+"."+key, ".")
		switch {
		case !ok:
			f.fail("%s is no field of a model configuration", name)
		case off(m[key]):
		case t.refused:
			f.fail("%s: %s", name, t.why)
		case t.noted:
			f.ignore(name, t.why)
		}
		for _, v := range m[key] {
			if sub, ok := v.(message); ok && treatments[key] != nil {
				f.look(sub, key)
			}
		}
	}
}

// off reports whether a field has the value that it has by default.
func off(values []any) bool {
	return !slices.ContainsFunc(values, func(v any) bool { return v != "false" && v != "0" && v != "" })
}

func (f *fields) ignore(name, why string) {
	text := fmt.Sprintf("%s (%s)", name, why)
	if !slices.Contains(f.ignored, text) {
		f.ignored = append(f.ignored, text)
	}
}

func (f *fields) bool(m message, key string) bool {
	switch s := f.text(m, key); s {
	case "", "false", "False", "f", "0":
	case "true", "True", "t", "1":
		return true
	default:
		f.fail("%s is %q, expected true or false", key, s)
	}
	return false
}

func (f *fields) dtype(m message) tensor.DType {
	s := f.text(m, "data_type")
	d, ok := tritonTypes[s]
	if !ok && s != "" && s != "TYPE_INVALID" {
		f.fail("data_type is %q, expected one of %s", s, strings.Join(slices.Sorted(maps.Keys(tritonTypes)), ", "))
	}
	return d
}

// extents reads dims or a shape; where -1 is allowed it stands for a free extent.
func (f *fields) extents(m message, key string, free bool) []int {
	list := f.ints(m, key)
	for _, n := range list {
		if n < 0 && (!free || n != -1) {
			f.fail("%s has %d, expected extents", key, n)
		}
	}
	return list
}

func (f *fields) ports(m message, c *Config) {
	for _, key := range []string{"input", "output"} {
		for _, p := range f.messages(m, key) {
			d := PortConfig{Name: f.text(p, "name"), Output: key == "output", DType: f.dtype(p), Dims: f.extents(p, "dims", true)}
			if d.Name == "" {
				f.fail("%s has no name", key)
			}
			if r := f.message(p, "reshape"); r != nil {
				d.Reshape = append([]int{}, f.extents(r, "shape", true)...)
			}
			c.Ports = append(c.Ports, d)
		}
	}
}

func (f *fields) warmUps(m message, c *Config) {
	for _, u := range f.messages(m, "model_warmup") {
		w := WarmUp{Name: f.text(u, "name"), Batch: f.int(u, "batch_size"), Count: f.int(u, "count")}
		if w.Batch < 0 || w.Batch > MaxRows || w.Count < 0 || w.Count > maxWarmUps {
			f.fail("model_warmup %q: batch_size is %d and count %d, expected 0 to %d", w.Name, w.Batch, w.Count, MaxRows)
		}
		for name, in := range f.entries(u, "inputs") {
			i := WarmUpInput{Name: name, DType: f.dtype(in), Dims: f.extents(in, "dims", false), Random: f.bool(in, "random_data"), File: f.text(in, "input_data_file")}
			if i.DType == tensor.Undefined {
				f.fail("model_warmup %q: input %q has no data_type", w.Name, name)
			}
			w.Inputs = append(w.Inputs, i)
		}
		slices.SortFunc(w.Inputs, func(a, b WarmUpInput) int { return strings.Compare(a.Name, b.Name) })
		c.WarmUps = append(c.WarmUps, w)
	}
}

// entries are a protobuf map of messages: a list of key and value in text, an object in JSON.
func (f *fields) entries(m message, key string) map[string]message {
	out := map[string]message{}
	for _, e := range f.messages(m, key) {
		if name := f.text(e, "key"); name != "" {
			if v := f.message(e, "value"); v != nil {
				out[name] = v
			}
			continue
		}
		for name := range e {
			if v := f.message(e, name); v != nil {
				out[name] = v
			}
		}
	}
	return out
}
