package shape

import (
	"fmt"

	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// Fact is what is known of one value.
type Fact struct {
	// Type is the tensor type. For values that are not dense tensors (sequences, maps, optionals) Kind says so and Type is that of the elements.
	Type onnx.TensorType
	Kind Kind
	// Const is the content when it is known, shared with the model. It must not be changed.
	Const *tensor.Tensor
	// Ints is the content of a rank-0 or rank-1 integer tensor as extents, known or symbolic, where Const is nil but the elements are traceable to shapes.
	Ints []onnx.Dim
}

// Kind tells dense tensors from the other types of ONNX.
type Kind int

// The kinds of values.
const (
	Tensor Kind = iota
	Sequence
	Optional
	Map
)

// Env maps values to facts. Sub-graphs get a child Env that sees its parent's values. It is not safe for concurrent use.
type Env struct {
	parent *Env
	opsets map[string]int
	facts  map[string]Fact
	init   map[string]*onnx.TensorProto
	fns    map[string]*onnx.Function
}

// NewEnv returns an Env that knows the model's inputs and initializers. Symbols found in bind are replaced by their numbers.
func NewEnv(m *onnx.Model, bind map[string]int) (*Env, error) {
	e := &Env{opsets: map[string]int{}, facts: map[string]Fact{}, init: map[string]*onnx.TensorProto{}, fns: map[string]*onnx.Function{}}
	for _, o := range m.OpsetImport {
		e.opsets[onnx.NormalizeDomain(o.Domain)] = int(o.Version)
	}
	for _, f := range m.Functions {
		e.fns[onnx.NormalizeDomain(f.Domain)+"\x00"+f.Name+"\x00"+f.Overload] = f
	}
	if err := e.declare(m.Graph, bind); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Env) declare(g *onnx.Graph, bind map[string]int) error {
	for _, v := range g.Input {
		f, err := factOf(v)
		if err != nil {
			return err
		}
		f.Type = f.Type.Bind(bind)
		e.facts[v.Name] = f
	}
	for _, t := range g.Initializer {
		shape := make([]int, len(t.Dims))
		for i, d := range t.Dims {
			shape[i] = int(d)
		}
		// A value that is both input and initializer is only a default: its content may change.
		if _, isInput := e.facts[t.Name]; !isInput {
			e.init[t.Name] = t
		}
		e.facts[t.Name] = Fact{Type: onnx.TypeOf(tensor.DType(t.DataType), shape...)}
	}
	for _, t := range g.SparseInitializer {
		shape := make([]int, len(t.Dims))
		for i, d := range t.Dims {
			shape[i] = int(d)
		}
		e.facts[t.GetValues().GetName()] = Fact{Type: onnx.TypeOf(tensor.DType(t.GetValues().GetDataType()), shape...)}
	}
	return nil
}

// factOf reads a declared type of any kind.
func factOf(v *onnx.ValueInfo) (Fact, error) { return factOfType(v.GetType()) }

func factOfType(t *onnx.TypeProto) (Fact, error) {
	kind := Tensor
	for {
		switch {
		case t.GetSequenceType() != nil:
			kind, t = Sequence, t.GetSequenceType().ElemType
			continue
		case t.GetOptionalType() != nil:
			kind, t = Optional, t.GetOptionalType().ElemType
			continue
		case t.GetMapType() != nil:
			return Fact{Kind: Map}, nil
		}
		break
	}
	tt, _ := (&onnx.ValueInfo{Type: t}).TensorType()
	return Fact{Type: tt, Kind: kind}, nil
}

// Opset returns the version in force for a domain, or 0.
func (e *Env) Opset(domain string) int { return e.opsets[onnx.NormalizeDomain(domain)] }

// Fact returns what is known of a value. Constants are decoded when first asked for.
func (e *Env) Fact(v onnx.Value) (Fact, bool) {
	for s := e; s != nil; s = s.parent {
		f, ok := s.facts[string(v)]
		if !ok {
			continue
		}
		if p := s.init[string(v)]; p != nil && f.Const == nil {
			if t, err := onnx.TensorOf(p); err == nil {
				f.Const = t
				s.facts[string(v)] = f
			}
			delete(s.init, string(v))
		}
		return f, true
	}
	return Fact{}, false
}

// Type returns the type of a value; the zero type when nothing is known.
func (e *Env) Type(v onnx.Value) onnx.TensorType {
	for s := e; s != nil; s = s.parent {
		if f, ok := s.facts[string(v)]; ok {
			return f.Type
		}
	}
	return onnx.TensorType{}
}

// Set records a fact, replacing an earlier one.
func (e *Env) Set(v onnx.Value, f Fact) {
	delete(e.init, string(v))
	e.facts[string(v)] = f
}

// Error says that a node's types do not fit or that its result cannot be known.
type Error struct {
	Node string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("infer shapes: %s: %v", e.Node, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// Apply infers the outputs of one node from the facts of its inputs, recursing into sub-graphs, and records them.
func (e *Env) Apply(n *onnx.Node) error {
	c := &call{env: e, node: n, out: make([]Fact, len(n.Output))}
	if err := c.infer(); err != nil {
		return &Error{Node: n.Describe(), Err: err}
	}
	for i, o := range n.Output {
		if o != "" {
			e.Set(onnx.Value(o), c.out[i])
		}
	}
	return nil
}

// Infer returns the facts of every value of the main graph.
func Infer(m *onnx.Model, bind map[string]int) (*Env, error) {
	e, err := NewEnv(m, bind)
	if err != nil {
		return nil, err
	}
	for _, n := range m.Graph.Node {
		if err := e.Apply(n); err != nil {
			return nil, err
		}
	}
	return e, nil
}
