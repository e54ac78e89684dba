package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// MaxConst is the largest number of elements whose content is followed.
const MaxConst = 4096

// Limits that keep work and memory bounded on hostile models. They are far above what any real
// model needs.
const (
	maxRank      = 64      // axes of one value
	maxDepth     = 64      // sub-graphs and function calls inside each other
	maxNested    = 1 << 18 // nodes inferred inside sub-graphs and function bodies, per Env
	maxFolded    = 1 << 22 // elements of computed content, per Env
	maxExtent    = 1 << 48 // one extent
	maxMagnitude = 1 << 40 // one integer attribute, such as a stride or a pad
)

// Fact is what is known of one value.
type Fact struct {
	// Type is the tensor type. For values that are not dense tensors (sequences, maps, optionals)
	// Kind says so and Type is that of the elements.
	Type onnx.TensorType
	Kind Kind
	// Const is the content when it is known, shared with the model: that of initializers and of
	// computed values up to MaxConst elements, and whatever Set records. It must not be changed.
	Const *tensor.Tensor
	// Ints is the content of an integer tensor as extents in row-major order, known or symbolic,
	// where Const is nil but the elements are traceable to shapes.
	Ints []onnx.Dim

	// vals is Ints with negative numbers kept, which extents cannot hold.
	vals []val
}

// Kind tells dense tensors from the other types of ONNX.
type Kind int

// The kinds of values.
const (
	Tensor Kind = iota
	Sequence
	Optional
	OptionalSequence
	Map
)

// String names the kind as the ONNX specification does.
func (k Kind) String() string {
	switch k {
	case Tensor:
		return "tensor"
	case Sequence:
		return "sequence"
	case Optional:
		return "optional"
	case OptionalSequence:
		return "optional sequence"
	}
	return "map"
}

// Env maps values to facts. Sub-graphs get a child Env that sees its parent's values. It is not
// safe for concurrent use.
type Env struct {
	*state
	parent   *Env
	graph    *onnx.Graph
	opset    int // of the standard domain
	imports  []*onnx.OperatorSet
	facts    map[string]*Fact
	inputs   map[string]bool              // inputs of graph, even where an initializer gives them a default
	init     map[string]*onnx.TensorProto // initializers whose content has not been asked for
	declared map[string]*onnx.ValueInfo   // value_info and outputs
	bodies   map[*onnx.Graph]*Env
	attrs    map[string]*onnx.Attribute // of the call, inside a function body; nil elsewhere
	gone     map[string]bool            // formal inputs that the call leaves out
	depth    int
	nin      int // inputs and initializers of graph that are in facts already
	ninit    int
	call     call // scratch of Apply
}

// state is shared by an Env and all its children.
type state struct {
	model  *onnx.Model
	bind   map[string]int
	fns    map[fnKey]*onnx.Function
	syms   map[string]poly
	exact  map[string]fraction
	free   *freeSymbols // nil unless unknown extents get names
	nested int
	folded int

	contradictions []Contradiction
	contradicted   map[string]bool
}

type fnKey struct{ domain, name, overload string }

// NewEnv returns an Env that knows the model's inputs and initializers. Symbols found in bind are
// replaced by their numbers. Inputs and initializers that are added to the graph later are found
// when they are first used.
func NewEnv(m *onnx.Model, bind map[string]int) (*Env, error) {
	if m.GetGraph() == nil {
		return nil, fmt.Errorf("infer shapes: the model has no graph")
	}
	s := &state{model: m, bind: bind, nested: maxNested, folded: maxFolded}
	if len(m.Functions) > 0 {
		s.fns = make(map[fnKey]*onnx.Function, len(m.Functions))
		for _, f := range m.Functions {
			s.fns[fnKey{onnx.NormalizeDomain(f.GetDomain()), f.GetName(), f.GetOverload()}] = f
		}
	}
	e := newEnv(s, nil, m.Graph)
	e.imports = m.OpsetImport
	e.opset = m.Opset("")
	if e.opset == 0 && m.IrVersion < 3 {
		// Models older than opset imports use version 1.
		e.opset = 1
	}
	if err := e.declare(); err != nil {
		return nil, fmt.Errorf("infer shapes: %w", err)
	}
	return e, nil
}

func newEnv(s *state, parent *Env, g *onnx.Graph) *Env {
	e := &Env{state: s, parent: parent, graph: g, facts: make(map[string]*Fact, len(g.GetNode())+len(g.GetInitializer())), inputs: map[string]bool{}, init: map[string]*onnx.TensorProto{}}
	if parent != nil {
		e.opset, e.imports, e.depth = parent.opset, parent.imports, parent.depth+1
	}
	if n := len(g.GetValueInfo()) + len(g.GetOutput()); n > 0 {
		e.declared = make(map[string]*onnx.ValueInfo, n)
		for _, v := range g.GetValueInfo() {
			e.declared[v.GetName()] = v
		}
		for _, v := range g.GetOutput() {
			e.declared[v.GetName()] = v
		}
	}
	return e
}

// declare records the inputs and initializers of the graph that were added since the last call.
func (e *Env) declare() error {
	for ; e.nin < len(e.graph.GetInput()); e.nin++ {
		v := e.graph.Input[e.nin]
		f, err := e.declaredFact(v)
		if err != nil {
			return err
		}
		e.inputs[v.GetName()] = true
		if old := e.facts[v.GetName()]; old == nil {
			e.facts[v.GetName()] = &f
		} else if e.init[v.GetName()] != nil {
			// An input added after its initializer makes the initializer a default, whose content
			// may change.
			delete(e.init, v.GetName())
		}
	}
	for ; e.ninit < len(e.graph.GetInitializer()); e.ninit++ {
		t := e.graph.Initializer[e.ninit]
		f, err := initializerFact(t)
		if err != nil {
			return err
		}
		old, isInput := e.facts[t.GetName()], e.inputs[t.GetName()]
		if old != nil && !isInput {
			// Whoever added it to the graph has told its fact already.
			continue
		}
		if isInput {
			if f.Type, err = merge(f.Type, old.Type); err != nil {
				return fmt.Errorf("initializer %q: %w", t.GetName(), err)
			}
		}
		// From IR version 4 on a value that is both input and initializer is only a default: its
		// content may change.
		if !isInput || e.model.IrVersion < 4 {
			e.init[t.GetName()] = t
		}
		e.facts[t.GetName()] = &f
	}
	for _, t := range e.graph.GetSparseInitializer() {
		if _, ok := e.facts[t.GetValues().GetName()]; ok {
			continue
		}
		f, err := initializerFact(&onnx.TensorProto{Name: t.GetValues().GetName(), DataType: t.GetValues().GetDataType(), Dims: t.GetDims()})
		if err != nil {
			return err
		}
		e.facts[t.GetValues().GetName()] = &f
	}
	return nil
}

func initializerFact(t *onnx.TensorProto) (Fact, error) {
	shape, err := tensorDims(t.GetDims())
	if err != nil {
		return Fact{}, fmt.Errorf("initializer %q: %w", t.GetName(), err)
	}
	return Fact{Type: onnx.TensorType{DType: tensor.DType(t.GetDataType()), Ranked: true, Dims: shape}}, nil
}

// tensorDims checks the extents of a TensorProto.
func tensorDims(dims []int64) ([]onnx.Dim, error) {
	out := make([]onnx.Dim, len(dims))
	for i, d := range dims {
		if d < 0 {
			return nil, fmt.Errorf("extent %d of axis %d is negative", d, i)
		}
		out[i] = onnx.Known(int(d))
	}
	return out, checkDims(out)
}

// Opset returns the version in force for a domain, or 0.
func (e *Env) Opset(domain string) int {
	d := onnx.NormalizeDomain(domain)
	if d == "" {
		return e.opset
	}
	for _, o := range e.imports {
		if onnx.NormalizeDomain(o.GetDomain()) == d {
			return int(o.GetVersion())
		}
	}
	return 0
}

// find returns the fact of a value and the Env that holds it, or nil.
func (e *Env) find(name string) (*Fact, *Env) {
	for s := e; s != nil; s = s.parent {
		if f := s.facts[name]; f != nil {
			return f, s
		}
		if s.nin < len(s.graph.GetInput()) || s.ninit < len(s.graph.GetInitializer()) {
			// An initializer that does not declare is reported as unknown by whoever asked for it.
			if s.declare() == nil && s.facts[name] != nil {
				return s.facts[name], s
			}
		}
	}
	return nil, nil
}

// load decodes the content of a small initializer when it is first asked for.
func (e *Env) load(name string, f *Fact) {
	p := e.init[name]
	if p == nil {
		return
	}
	delete(e.init, name)
	if n, ok := elements(f.Type); !ok || n > MaxConst {
		return
	}
	// Content that cannot be read (external data that is not loaded) is content that is not known.
	if t, err := onnx.TensorOf(p); err == nil {
		f.Const = t
	}
}

// Fact returns what is known of a value. Small constants are decoded when first asked for.
func (e *Env) Fact(v onnx.Value) (Fact, bool) {
	f, s := e.find(string(v))
	if f == nil {
		return Fact{}, false
	}
	s.load(string(v), f)
	return *f, true
}

// Type returns the type of a value; the zero type when nothing is known.
func (e *Env) Type(v onnx.Value) onnx.TensorType {
	if f, _ := e.find(string(v)); f != nil {
		return f.Type
	}
	return onnx.TensorType{}
}

// Set records a fact, replacing an earlier one.
func (e *Env) Set(v onnx.Value, f Fact) {
	delete(e.init, string(v))
	e.facts[string(v)] = &f
}

// Body returns the Env of a sub-graph of a node that was applied, as its last inference left it, or
// nil. Types of values that a loop carries are joined over all iterations.
func (e *Env) Body(g *onnx.Graph) *Env { return e.bodies[g] }
