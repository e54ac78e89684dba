package encoder

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// FileConfig names a model.
type FileConfig struct {
	// Path of the ONNX file.
	Path string `yaml:"path"`
	// Input and Output name the model's values; empty is the only one there is. Output may be any
	// value that a node computes.
	Input  string `yaml:"input"`
	Output string `yaml:"output"`
	// Layout of windows is channels_last, [batch, W, F], or channels_first, [batch, F, W].
	Layout string `yaml:"layout"`
	// Pool is how an output [batch, W, D] loses its time: last, mean or max; empty expects [batch,
	// D].
	Pool string `yaml:"pool"`
	// Options choose which of the model's parameters are trained, by their names in the file.
	models.Options `yaml:",inline"`
	// Parameters of different layers that the exporter merged because they began equal are cut
	// apart, and tied weights that it wrote twice are trained as one, by the rules of
	// models.FindTies, which these keys overrule.
	models.TieOptions `yaml:",inline"`
}

// FileDefaults returns a configuration without a path.
func FileDefaults() FileConfig { return FileConfig{Layout: "channels_last"} }

// Validate reports all problems.
func (c FileConfig) Validate() error {
	var p configs.Problems
	p.NotEmpty("path", c.Path)
	p.OneOf("layout", c.Layout, "channels_last", "channels_first")
	if c.Pool != "" {
		p.OneOf("pool", c.Pool, layer.Pools()...)
	}
	return p.Err()
}

// File is any ONNX model as an encoder: exported from PyTorch, trained by onnxrl fit, or written by
// hand. It is immutable.
//
//	encoder: {kind: file, path: my.onnx}
//
// # What the model must be
//
// One float32 input of the observation's form, [batch, F] or [batch, W, F], and an output [batch,
// D] of float32. Of several outputs the configuration names one, which may be any value inside,
// such as the features before the last layer. Its batch must be a symbolic extent (in PyTorch,
// dynamic_axes or dynamic_shapes); other symbolic extents take the observation's. With layout:
// channels_first the model gets [batch, F, W], as PyTorch's convolutions want it. An output [batch,
// W', D] is pooled over time when pool says how. Older opsets are upgraded; a newer one upgrades
// the network.
//
// A float64, float16 or bfloat16 model is taken in float32, in which everything is trained and the
// whole agent is written. Weights become parameters called after the scope ("encoder.fc1.weight"),
// by the rules of models.FromModel, and are trained together with the rest unless freeze or train
// say otherwise. BatchNormalization and Dropout are put into evaluation form: statistics of the
// batch would make the same observation look different while acting and while learning.
//
// # Several inputs and outputs
//
// A model that is more than an encoder, such as a whole policy with a memory, has them. [Ports]
// splices it by the names of its inputs and outputs; what these mean is said where it is used.
type File struct {
	c             FileConfig
	options       models.Options
	model         *onnx.Model
	input, output *onnx.ValueInfo
	notes         []string
}

var _ Encoder = (*File)(nil)

// NewFile reads and checks the file.
func NewFile(c FileConfig) (*File, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("encoder file: %w", err)
	}
	m, err := onnx.Load(c.Path)
	if err != nil {
		return nil, fmt.Errorf("encoder file: %w", err)
	}
	e, err := fileOfModel(m, c)
	if err != nil {
		return nil, fmt.Errorf("encoder file %s: %w", filepath.Base(c.Path), err)
	}
	return e, nil
}

// prepareFile returns a model without functions, in evaluation form, in float32, with merged
// parameters cut apart and tied ones as one, and says what people should know of that. In the
// options that it returns, the names of tied weights are those of the parameters that they are.
func prepareFile(m *onnx.Model, c FileConfig) (_ *onnx.Model, o models.Options, notes []string, err error) {
	if m.GetGraph() == nil {
		return nil, o, nil, fmt.Errorf("the model has no graph")
	}
	if m, err = onnx.InlineFunctions(m); err != nil {
		return nil, o, nil, err
	}
	if m, err = models.UntieStatistics(m); err != nil {
		return nil, o, nil, err
	}
	m, ties, err := models.FindTies(m, c.TieOptions)
	if err != nil {
		return nil, o, nil, err
	}
	for _, s := range ties.Splits {
		notes = append(notes, fmt.Sprintf("parameters of different layers that the exporter had merged because they began equal are trained apart (tie keeps them together): %s is also %s",
			s.Name, strings.Join(s.Into, ", ")))
	}
	for _, j := range ties.Joins {
		notes = append(notes, fmt.Sprintf("initializers that hold the same weights are trained as one parameter (untie trains them apart): %s", j))
	}
	o = ties.Roles(m, c.Options)
	m, settled, err := models.EvaluationForm(m)
	if err != nil {
		return nil, o, nil, err
	}
	for _, l := range settled {
		notes = append(notes, fmt.Sprintf("%s %q was exported in training form; what an agent does must not depend on a batch, so it is trained and used in evaluation form", l.Op, l.Node))
	}
	m, changed, err := models.InFloat32(m)
	if err != nil {
		return nil, o, nil, err
	}
	if changed {
		notes = append(notes, "it is taken, trained and written in float32")
	}
	m, err = ties.Join(m)
	return m, o, notes, err
}

func fileOfModel(m *onnx.Model, c FileConfig) (*File, error) {
	m, o, notes, err := prepareFile(m, c)
	if err != nil {
		return nil, err
	}
	e := &File{c: c, options: o, model: m, notes: notes}
	if e.input, err = chooseValue("input", c.Input, m.Graph.Inputs()); err != nil {
		return nil, err
	}
	if e.model, err = modelThrough(m, e.input, c.Output); err != nil {
		return nil, err
	}
	if e.output, err = chooseValue("output", c.Output, e.model.Graph.Output); err != nil {
		return nil, err
	}
	return e, nil
}

// modelThrough returns the model up to a value inside that a node computes and that is no output, or all
// of it.
func modelThrough(m *onnx.Model, input *onnx.ValueInfo, value string) (*onnx.Model, error) {
	named := func(v *onnx.ValueInfo) bool { return v.Name == value }
	computes := func(n *onnx.Node) bool { return slices.Contains(n.Output, value) }
	if value == "" || slices.ContainsFunc(m.Graph.Output, named) || !slices.ContainsFunc(m.Graph.Node, computes) {
		return m, nil
	}
	facts, err := shape.Infer(m, nil)
	if err != nil {
		return nil, err
	}
	types := func(v onnx.Value) (onnx.TensorType, bool) {
		_, ok := facts.Fact(v)
		return facts.Type(v), ok
	}
	return onnx.Extract(m, []onnx.Value{onnx.Value(input.Name)}, []onnx.Value{onnx.Value(value)}, types)
}

// chooseValue finds the named value, or the only one.
func chooseValue(what, name string, list []*onnx.ValueInfo) (*onnx.ValueInfo, error) {
	names := make([]string, len(list))
	for i, v := range list {
		if names[i] = v.Name; v.Name == name {
			return v, nil
		}
	}
	switch {
	case name != "":
		return nil, fmt.Errorf("it has no %s %q, only %s", what, name, strings.Join(names, ", "))
	case len(list) != 1:
		return nil, fmt.Errorf("it has %d %ss (%s): name one with %s: …", len(list), what, strings.Join(names, ", "), what)
	}
	return list[0], nil
}

// Config implements Encoder.
func (e *File) Config() any { return e.c }

// ReadsWindows reports whether the model's input is [batch, W, F]; see ReadsWindows.
func (e *File) ReadsWindows() bool {
	t, ok := e.input.TensorType()
	return ok && t.Ranked && len(t.Dims) == 3
}

// Build implements Encoder.
func (e *File) Build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if err := CheckInput(g, x, 2, 3, 4); err != nil {
		return "", err
	}
	z, err := PerAsset(g, x, func(x onnx.Value) (onnx.Value, error) { return e.build(g, x) })
	if err != nil {
		return "", fmt.Errorf("encoder file %s: %w", filepath.Base(e.c.Path), err)
	}
	return z, nil
}

func (e *File) build(g *layer.Graph, x onnx.Value) (onnx.Value, error) {
	if e.c.Layout == "channels_first" && len(g.Dims(x)) == 3 {
		x = g.Transpose(x, 0, 2, 1)
	}
	if err := e.checkInput(g.Type(x)); err != nil {
		return "", err
	}
	for _, note := range e.notes {
		g.Note("%s: %s", filepath.Base(e.c.Path), note)
	}
	z := g.Splice(e.model, onnx.Value(e.input.Name), onnx.Value(e.output.Name), x, e.options)
	if err := g.Err(); err != nil {
		return "", err
	}
	t := g.Type(z)
	if e.c.Pool != "" && len(t.Dims) == 3 && t.Dims[1].IsKnown() {
		z = g.PoolTime(z, layer.Pool(e.c.Pool))
		t = g.Type(z)
	}
	if t.DType != tensor.Float32 || len(t.Dims) != 2 || !t.Dims[1].IsKnown() {
		hint := ""
		if len(t.Dims) == 3 && e.c.Pool == "" {
			hint = "; pool: last, mean or max would drop the time axis"
		}
		return "", fmt.Errorf("for observations %v its output %q is %v, expected float32[%s,features]%s", g.Type(x), e.output.Name, t, layer.Batch, hint)
	}
	if d, in := t.Dims[0], g.Type(x).Dims[0]; d.IsKnown() && d != in {
		return "", fmt.Errorf("its output %q is %v whatever the batch: export it with a symbolic batch", e.output.Name, t)
	}
	return z, nil
}

// checkInput compares the model's input with what it is given.
func (e *File) checkInput(have onnx.TensorType) error {
	want, ok := e.input.TensorType()
	if ok && accepts(want, have) {
		return nil
	}
	hint := ""
	switch {
	case want.Ranked && len(want.Dims) == len(have.Dims) && want.Dims[0].IsKnown() && !have.Dims[0].IsKnown():
		hint = "; its batch must be symbolic: export it with dynamic_axes or dynamic_shapes"
	case want.Ranked && len(want.Dims) == 3 && len(have.Dims) == 3 && compatible(want.Dims[1], have.Dims[2]) && compatible(want.Dims[2], have.Dims[1]):
		hint = "; the other layout (channels_first or channels_last) would fit"
	}
	return fmt.Errorf("its input %q is %v, the observations are %v%s", e.input.Name, want, have, hint)
}

func compatible(a, b onnx.Dim) bool { return !a.IsKnown() || !b.IsKnown() || a == b }

// FileKind makes encoders of files from a configuration.
var FileKind = KindOf("file", "any ONNX model, such as one exported from PyTorch", FileDefaults, NewFile)
