package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// maxConfigDepth bounds the nesting of configurations.
const maxConfigDepth = 32

// message is a parsed configuration: fields by name, each with its values in order, which are
// scalars as text or messages.
type message map[string][]any

// ParseConfigJSON reads Triton's model configuration as JSON. Fields that change nothing but speed,
// and that this server does not have, are in Ignored; where they change what is answered, they are
// errors.
func ParseConfigJSON(name string, text []byte) (Config, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var raw any
	if err := d.Decode(&raw); err != nil {
		return Config{}, invalid("model configuration: %w", err)
	}
	if _, err := d.Token(); err == nil {
		return Config{}, invalid("model configuration: text after the JSON value")
	}
	values, err := ofJSON(raw, 0)
	if err != nil {
		return Config{}, invalid("model configuration: %w", err)
	}
	if len(values) != 1 {
		return Config{}, invalid("model configuration: expected a JSON object")
	}
	m, ok := values[0].(message)
	if !ok {
		return Config{}, invalid("model configuration: expected a JSON object")
	}
	c, err := m.config(name)
	if err != nil {
		return Config{}, invalid("model configuration: %w", err)
	}
	return c, nil
}

func ofJSON(x any, depth int) ([]any, error) {
	if depth > maxConfigDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxConfigDepth)
	}
	switch x := x.(type) {
	case nil:
		return nil, nil
	case []any:
		var list []any
		for _, e := range x {
			v, err := ofJSON(e, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v...)
		}
		return list, nil
	case map[string]any:
		m := message{}
		for k, e := range x {
			v, err := ofJSON(e, depth+1)
			if err != nil {
				return nil, err
			}
			m[snake(k)] = v
		}
		return []any{m}, nil
	}
	return []any{fmt.Sprint(x)}, nil
}

// snake turns maxBatchSize into max_batch_size, because JSON of protobuf messages may have either.
func snake(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// fields reads a configuration; the first problem is kept.
type fields struct {
	err     error
	ignored []string
}

func (f *fields) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fields) messages(m message, key string) []message {
	var list []message
	for _, v := range m[key] {
		sub, ok := v.(message)
		if !ok {
			f.fail("%s is %v, expected a message", key, v)
			return nil
		}
		list = append(list, sub)
	}
	return list
}

func (f *fields) message(m message, key string) message {
	list := f.messages(m, key)
	if len(list) == 0 {
		return nil
	}
	if len(list) > 1 {
		f.fail("%s is given %d times, expected once", key, len(list))
	}
	return list[0]
}

func (f *fields) texts(m message, key string) []string {
	var list []string
	for _, v := range m[key] {
		s, ok := v.(string)
		if !ok {
			f.fail("%s is a message, expected a value", key)
			return nil
		}
		list = append(list, s)
	}
	return list
}

func (f *fields) text(m message, key string) string {
	list := f.texts(m, key)
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	f.fail("%s is given %d times, expected once", key, len(list))
	return ""
}

func (f *fields) ints(m message, key string) []int {
	var list []int
	for _, s := range f.texts(m, key) {
		n, err := strconv.ParseInt(s, 0, 32)
		if err != nil {
			f.fail("%s is %q, expected a whole number", key, s)
		}
		list = append(list, int(n))
	}
	return list
}

func (f *fields) int(m message, key string) int {
	list := f.ints(m, key)
	switch len(list) {
	case 0:
		return 0
	case 1:
		return list[0]
	}
	f.fail("%s is given %d times, expected once", key, len(list))
	return 0
}

func (f *fields) micros(m message, key string) time.Duration {
	s := f.text(m, key)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil || n < 0 || n > int64(24*time.Hour/time.Microsecond) {
		f.fail("%s is %q, expected microseconds of at most a day", key, s)
	}
	return time.Duration(n) * time.Microsecond
}

// config reads what concerns this server.
func (m message) config(name string) (Config, error) {
	f := &fields{}
	f.look(m, "")
	var c Config
	if n := f.text(m, "name"); n != "" && n != name {
		f.fail("name is %q, expected %q as the folder is called", n, name)
	}
	if b := f.text(m, "backend"); b != "" && b != "onnxruntime" {
		f.fail("backend is %q, expected \"onnxruntime\"", b)
	}
	if p := f.text(m, "platform"); p != "" && p != "onnxruntime_onnx" && p != "onnx_onnxv1" {
		f.fail("platform is %q, expected \"onnxruntime_onnx\"", p)
	}
	c.MaxBatch = f.int(m, "max_batch_size")
	c.NoBatchAxis = c.MaxBatch == 0 && len(m["max_batch_size"]) > 0 // left out, the model decides
	c.ModelFile = f.text(m, "default_model_filename")
	if p := f.message(m, "model_transaction_policy"); p != nil && f.bool(p, "decoupled") {
		f.fail("model_transaction_policy.decoupled: a request has one answer here")
	}
	for _, g := range f.messages(m, "instance_group") {
		c.Instances += max(f.int(g, "count"), 1)
		switch k := f.text(g, "kind"); k {
		case "", "KIND_CPU", "KIND_AUTO":
		case "KIND_GPU":
			f.ignore("instance_group.kind", "models run on the processor")
		default:
			f.fail("instance_group.kind is %q, expected KIND_CPU", k)
		}
	}
	if p := f.message(m, "version_policy"); p != nil {
		_, c.Policy.All = p["all"]
		if latest := f.message(p, "latest"); latest != nil {
			c.Policy.Latest = max(f.int(latest, "num_versions"), 1)
		}
		if specific := f.message(p, "specific"); specific != nil {
			c.Policy.Specific = f.texts(specific, "versions")
		}
	}
	if b := f.message(m, "dynamic_batching"); b != nil {
		c.Batching.Preferred = f.ints(b, "preferred_batch_size")
		c.Batching.MaxDelay = f.micros(b, "max_queue_delay_microseconds")
		if q := f.message(b, "default_queue_policy"); q != nil {
			c.MaxQueue = f.int(q, "max_queue_size")
			c.QueueTimeout = f.micros(q, "default_timeout_microseconds")
			switch action := f.text(q, "timeout_action"); {
			case action == "DELAY" && c.QueueTimeout > 0:
				c.QueueTimeout = 0
				f.ignore("default_queue_policy.timeout_action", "requests whose time is over keep their turn")
			case action != "" && action != "REJECT" && action != "DELAY":
				f.fail("timeout_action is %q, expected REJECT or DELAY", action)
			}
		}
	}
	f.sequences(m, &c)
	f.parameters(m, &c)
	f.ports(m, &c)
	f.warmUps(m, &c)
	c.Ignored = f.ignored
	if f.err != nil {
		return Config{}, f.err
	}
	return c, c.Validate()
}

func (f *fields) sequences(m message, c *Config) {
	s := f.message(m, "sequence_batching")
	if s == nil {
		return
	}
	c.Sequences.Idle = f.micros(s, "max_sequence_idle_microseconds")
	_, c.Sequences.Direct = s["direct"]
	c.Controls = f.controls(s)
	if o := f.message(s, "oldest"); o != nil {
		c.Sequences.Max = f.int(o, "max_candidate_sequences")
	}
	for _, p := range f.messages(s, "state") {
		port := StatePort{Input: f.text(p, "input_name"), Output: f.text(p, "output_name"), Shape: f.ints(p, "dims")}
		for _, initial := range f.messages(p, "initial_state") {
			port.File = f.text(initial, "data_file")
		}
		c.State = append(c.State, port)
	}
}

// parameters are free text by key: those of Triton's ONNX backend, and ours, which begin with
// "onnxrl.".
func (f *fields) parameters(m message, c *Config) {
	values := map[string]string{}
	for key, v := range f.entries(m, "parameters") {
		values[key] = f.text(v, "string_value")
	}
	for key, value := range values {
		// Settings of ONNX Runtime that differ here; the names of others are free.
		if key == "execution_mode" && value == "1" || key == "inter_op_thread_count" && value != "0" && value != "1" {
			f.ignore("parameters."+key, "operators run one after another")
		}
	}
	if s, ok := values["intra_op_thread_count"]; ok {
		n, err := strconv.Atoi(s)
		if err != nil || n < 0 || n > 1024 {
			f.fail("parameters intra_op_thread_count is %q, expected 0 to 1024", s)
		}
		c.Threads = n
	}
	if s, ok := values["onnxrl.non_finite"]; ok {
		rule, err := parseNonFinite(s)
		if err != nil {
			f.fail("parameters onnxrl.non_finite: %w", err)
		}
		c.NonFinite = rule
	}
	for _, s := range strings.Fields(values["onnxrl.routes"]) {
		version, weight, err := shareOf(s)
		if err != nil {
			f.fail("parameters onnxrl.routes: %w", err)
		}
		c.Routes = append(c.Routes, Route{Version: version, Weight: weight})
	}
	for _, s := range strings.Fields(values["onnxrl.shadows"]) {
		version, share, err := shareOf(s)
		if err != nil {
			f.fail("parameters onnxrl.shadows: %w", err)
		}
		c.Shadows = append(c.Shadows, Shadow{Version: version, Share: share})
	}
}

// shareOf reads "version=0.1"; without a number it is 1.
func shareOf(s string) (string, float64, error) {
	version, number, ok := strings.Cut(s, "=")
	if !ok {
		return version, 1, nil
	}
	x, err := strconv.ParseFloat(number, 64)
	if err != nil || version == "" {
		return "", 0, fmt.Errorf("got %q, expected VERSION=NUMBER", s)
	}
	return version, x, nil
}
