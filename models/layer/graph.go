package layer

import (
	"fmt"
	"github.com/onnxrl/onnxrl/runtime/glob"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/lora"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Batch is the symbolic first extent of a network's inputs.
const Batch = "batch"

// Options change how a Graph is built.
type Options struct {
	// Opset of the standard domain; 0 means onnx.DefaultOpset. A graph is raised to a later one
	// when a foreign model asks for it.
	Opset int
	// Training makes Dropout multiply by masks, which become inputs. Without it Dropout is nothing.
	Training bool
}

// Graph is a network under construction, seen from one scope. Scopes made by [Graph.In] append to
// the same network. Errors are sticky: the first one is kept, later calls do nothing of use, and
// [Graph.Err], [Graph.Model] and [Graph.Network] return it, so layers need no check after each
// operator.
type Graph struct {
	s     *state
	path  []string
	reuse bool
}

// state is what all scopes of a network share.
type state struct {
	b        *onnx.Builder
	env      *shape.Env
	key      rng.Key
	training bool
	params   []models.Spec
	index    map[string]int
	values   map[string]*tensor.Tensor
	inits    map[string]Init
	masks    []models.DropoutMask
	notes    []string
	adapters []lora.Adapter
}

// New starts an empty network. All initial values descend from key, each from a stream of the
// parameter's own name, so what else a network has does not change them.
func New(name string, key rng.Key, o Options) *Graph {
	if o.Opset == 0 {
		o.Opset = onnx.DefaultOpset
	}
	s := &state{b: onnx.NewBuilder(name, o.Opset), key: key, training: o.Training, index: map[string]int{}, values: map[string]*tensor.Tensor{}, inits: map[string]Init{}}
	g := &Graph{s: s}
	s.follow(g)
	return g
}

// follow makes the types of everything that the builder adds known.
func (s *state) follow(g *Graph) {
	m, err := s.b.Model()
	if err != nil {
		return
	}
	env, err := shape.Infer(m, nil)
	if err != nil {
		g.Failf("%w", err)
		return
	}
	s.env = env
	env.Track(s.b)
}

// In returns the scope below this one. Parameters made there are called after it
// ("encoder.conv1.weight"), and so are nodes ("encoder/conv1/Gemm").
func (g *Graph) In(name string) *Graph {
	return &Graph{s: g.s, path: append(slices.Clip(g.path), name), reuse: g.reuse}
}

// Again returns this scope for a second use of its parameters, as a critic needs that evaluates
// both recorded and new actions: parameters are then those that were made before, and one that was
// not is an error.
func (g *Graph) Again() *Graph { return &Graph{s: g.s, path: g.path, reuse: true} }

// Name returns the full name of a parameter of this scope.
func (g *Graph) Name(param string) string {
	return strings.Join(append(slices.Clone(g.path), param), ".")
}

// Err returns the first error.
func (g *Graph) Err() error { return g.s.b.Err() }

// Failf records an error, placed at the scope.
func (g *Graph) Failf(format string, args ...any) {
	err := fmt.Errorf(format, args...)
	if len(g.path) > 0 {
		err = fmt.Errorf("build %s: %w", strings.Join(g.path, "."), err)
	}
	g.s.b.Fail(err)
}

// Key returns the key that a parameter's initial value is drawn from.
func (g *Graph) Key(param string) rng.Key { return g.s.key.Split(g.Name(param)) }

// Training reports whether dropout is in force.
func (g *Graph) Training() bool { return g.s.training }

// Input declares an input of the network. Its name is used as it is.
func (g *Graph) Input(name string, d tensor.DType, dims ...onnx.Dim) onnx.Value {
	return g.s.b.Input(name, onnx.TensorType{DType: d, Ranked: true, Dims: dims})
}

// Observation declares a float32 input [batch, shape…].
func (g *Graph) Observation(name string, shape ...int) onnx.Value {
	return g.Batched(name, tensor.Float32, shape...)
}

// Batched declares an input [batch, shape…] of any type.
func (g *Graph) Batched(name string, d tensor.DType, shape ...int) onnx.Value {
	dims := []onnx.Dim{onnx.Symbol(Batch)}
	for _, n := range shape {
		dims = append(dims, onnx.Known(n))
	}
	return g.Input(name, d, dims...)
}

// Output makes v an output of the network with exactly the given name.
func (g *Graph) Output(name string, v onnx.Value) {
	if g.Err() != nil {
		return
	}
	t := g.Type(v)
	renamed := g.s.b.Rename(v, name)
	g.s.b.Output(renamed, t)
	for _, ad := range g.s.adapters {
		if i := slices.Index(ad.Outputs, string(v)); i >= 0 {
			ad.Outputs[i] = string(renamed)
		}
	}
}

// Param returns a trainable parameter of this scope. Its initial value is drawn from the stream of
// its name. Parameters have at least one axis.
func (g *Graph) Param(name string, init Init, shape ...int) onnx.Value {
	full := g.Name(name)
	if g.Err() != nil {
		return onnx.Value(full)
	}
	if i, ok := g.s.index[full]; ok && g.reuse {
		if have := g.s.params[i].Shape; !slices.Equal(have, shape) {
			g.Failf("parameter %q has shape %v and is used again with shape %v", full, have, shape)
		}
		return onnx.Value(full)
	} else if g.reuse {
		g.Failf("parameter %q is used again but was not made before", full)
		return onnx.Value(full)
	}
	n, err := tensor.Len(shape)
	if err != nil || n == 0 || len(shape) == 0 {
		g.Failf("parameter %q cannot have shape %v", full, shape)
		return onnx.Value(full)
	}
	t := tensor.New(tensor.Float32, shape...)
	init.fill(g.Key(name).Stream(), t)
	g.s.inits[full] = init
	return g.addParam(models.Spec{Name: full, Shape: slices.Clone(shape), Role: models.Trainable}, t)
}

// adopt adds a parameter of a foreign model, with its value and role. A base is one wherever it is
// used.
func (g *Graph) adopt(spec models.Spec, value *tensor.Tensor) {
	i, ok := g.s.index[spec.Name]
	switch {
	case !ok || !g.reuse && spec.Role != models.Base:
		g.addParam(spec, value)
	case spec.Role == models.Base && !slices.Equal(g.s.params[i].Shape, spec.Shape):
		g.Failf("parameter %q of the base has shape %v, and shape %v where it is used elsewhere", spec.Name, spec.Shape, g.s.params[i].Shape)
	}
}

func (g *Graph) addParam(spec models.Spec, value *tensor.Tensor) onnx.Value {
	v := g.s.b.Initializer(spec.Name, value)
	if g.Err() == nil {
		g.s.index[spec.Name] = len(g.s.params)
		g.s.params = append(g.s.params, spec)
		g.s.values[spec.Name] = value
	}
	return v
}

// Op appends a node of the standard domain with one output.
func (g *Graph) Op(op string, in []onnx.Value, attrs ...*onnx.Attribute) onnx.Value {
	return g.OpN(op, 1, in, attrs...)[0]
}

// OpN appends a node of the standard domain with n outputs.
func (g *Graph) OpN(op string, n int, in []onnx.Value, attrs ...*onnx.Attribute) []onnx.Value {
	out := make([]onnx.Value, n)
	if g.Err() != nil {
		return out
	}
	scope := ""
	if len(g.path) > 0 {
		scope = strings.Join(g.path, "/") + "/"
	}
	old := g.s.b.SetScope(scope)
	defer g.s.b.SetScope(old)
	return g.s.b.OpN(op, "", n, in, attrs...)
}

// Builder returns the builder below, for what Graph has no method for. It must not be kept:
// [Graph.Splice] may replace it.
func (g *Graph) Builder() *onnx.Builder { return g.s.b }

// Type returns what is known of a value.
func (g *Graph) Type(v onnx.Value) onnx.TensorType {
	if g.s.env == nil {
		return onnx.TensorType{}
	}
	return g.s.env.Type(v)
}

// Dims returns the extents of a value. It records an error when the rank is not known.
func (g *Graph) Dims(v onnx.Value) []onnx.Dim {
	t := g.Type(v)
	if !t.Ranked && g.Err() == nil {
		g.Failf("the rank of %q is not known", v)
	}
	return t.Dims
}

// Extent returns an extent of a value; negative axes count from the end. It records an error when
// the extent is not a number, and then returns 1.
func (g *Graph) Extent(v onnx.Value, axis int) int {
	dims := g.Dims(v)
	i := axis
	if i < 0 {
		i += len(dims)
	}
	if g.Err() != nil {
		return 1
	}
	if i < 0 || i >= len(dims) || !dims[i].IsKnown() {
		g.Failf("axis %d of %q, %v, must have a known extent", axis, v, g.Type(v))
		return 1
	}
	return dims[i].Value
}

// Model returns the network with its parameters as initializers: the form of a file.
func (g *Graph) Model() (*onnx.Model, error) {
	m, err := g.s.b.Model()
	if err != nil || len(g.s.adapters) == 0 {
		return m, err
	}
	return m, lora.Record(m, g.s.adapters)
}

// Network returns the network with its parameters as inputs, and their initial values. The options
// choose which parameters are trained.
func (g *Graph) Network(o models.Options) (*models.Network, map[string]*tensor.Tensor, error) {
	m, err := g.Model()
	if err != nil {
		return nil, nil, err
	}
	specs := slices.Clone(g.s.params)
	for _, list := range [][]string{o.Train, o.Freeze} {
		for _, pattern := range list {
			if !slices.ContainsFunc(specs, func(s models.Spec) bool { return glob.Match(pattern, s.Name) }) {
				names := make([]string, len(specs))
				for i, s := range specs {
					names[i] = s.Name
				}
				return nil, nil, fmt.Errorf("pattern %q matches no parameter; the network has %s", pattern, strings.Join(names, ", "))
			}
		}
	}
	for i, s := range specs {
		if s.Role == models.Trainable && (len(o.Train) > 0 && !glob.MatchAny(o.Train, s.Name) || glob.MatchAny(o.Freeze, s.Name)) {
			specs[i].Role = models.Frozen
		}
	}
	net, err := models.WithSpecs(m, specs)
	if err != nil {
		return nil, nil, err
	}
	net.Notes = slices.Clone(g.s.notes)
	return net, g.s.values, nil
}

// Note keeps a sentence about how the network was made for whoever trains it; see
// models.Network.Notes. It is kept once.
func (g *Graph) Note(format string, v ...any) {
	if note := fmt.Sprintf(format, v...); !slices.Contains(g.s.notes, note) {
		g.s.notes = append(g.s.notes, note)
	}
}

// Params lists the parameters in the order in which they were made.
func (g *Graph) Params() []models.Spec { return slices.Clone(g.s.params) }

// InitOf returns how a parameter was initialised; ok is false for parameters that came with their
// values.
func (g *Graph) InitOf(name string) (init Init, ok bool) {
	init, ok = g.s.inits[name]
	return init, ok
}

// Masks lists the dropout masks that the network has as inputs. Whoever trains fills them before
// each run: each element 0 with probability Ratio and else 1/(1−Ratio).
func (g *Graph) Masks() []models.DropoutMask { return slices.Clone(g.s.masks) }
