package encoder

import (
	"fmt"
	"path/filepath"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Ports is a model with several inputs and outputs, which are known by their names. It is
// immutable.
type Ports struct {
	c       FileConfig
	options models.Options
	model   *onnx.Model
	notes   []string
}

// OpenPorts reads and checks the file that the parameters of kind file name.
func OpenPorts(params configs.Section) (*Ports, error) {
	c := FileDefaults()
	if err := params.Decode(&c); err != nil {
		return nil, err
	}
	m, err := onnx.Load(c.Path)
	if err != nil {
		return nil, fmt.Errorf("encoder file: %w", err)
	}
	p := &Ports{c: c}
	if p.model, p.options, p.notes, err = prepareFile(m, c); err != nil {
		return nil, fmt.Errorf("encoder file %s: %w", p.Name(), err)
	}
	return p, nil
}

// Name is the file's name without its folder.
func (p *Ports) Name() string { return filepath.Base(p.c.Path) }

// Config returns the effective parameters.
func (p *Ports) Config() FileConfig { return p.c }

// Model returns the model, which is not to be changed.
func (p *Ports) Model() *onnx.Model { return p.model }

// Build appends the model below the graph's scope with the given values as its inputs, all that the
// outputs need. It returns the values of outputs, each one of the model's or any value that a node
// computes. Values that do not fit to what an input declares are errors that name both sides.
func (p *Ports) Build(g *layer.Graph, in map[string]onnx.Value, outputs ...string) ([]onnx.Value, error) {
	for _, note := range p.notes {
		g.Note("%s: %s", p.Name(), note)
	}
	given := map[onnx.Value]onnx.Value{}
	for _, v := range p.model.Graph.Inputs() {
		x, ok := in[v.Name]
		if !ok {
			continue
		}
		have := g.Type(x)
		if want, ok := v.TensorType(); !ok || !accepts(want, have) {
			hint := ""
			if want.Ranked && len(want.Dims) > 0 && want.Dims[0].IsKnown() && len(have.Dims) > 0 && !have.Dims[0].IsKnown() {
				hint = "; its batch must be symbolic: export it with dynamic_axes or dynamic_shapes"
			}
			return nil, fmt.Errorf("%s: its input %q is %v, what it is given is %v%s", p.Name(), v.Name, want, have, hint)
		}
		given[onnx.Value(v.Name)] = x
	}
	values := make([]onnx.Value, len(outputs))
	for i, o := range outputs {
		values[i] = onnx.Value(o)
	}
	out := g.SpliceAll(p.model, given, values, p.options)
	if err := g.Err(); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name(), err)
	}
	return out, nil
}

// accepts reports whether an input of one type takes values of another.
func accepts(want, have onnx.TensorType) bool {
	fits := want.DType == have.DType && (!want.Ranked || len(want.Dims) == len(have.Dims))
	for i := range want.Dims {
		fits = fits && (!want.Dims[i].IsKnown() || want.Dims[i] == have.Dims[i])
	}
	return fits
}
