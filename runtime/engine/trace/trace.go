package trace

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DefaultBudget is the memory that the values of one run may take when Options does not say.
const DefaultBudget = 256 << 20

// Options tune a run.
type Options struct {
	// Budget is the most bytes of values that are kept at once; 0 means [DefaultBudget]. A single
	// larger value is still visited.
	Budget int64
	// Compile is passed to the engine.
	Compile engine.Options
}

// Source says where a value comes from.
type Source string

// The sources of values.
const (
	Input       Source = "input"
	Initializer Source = "initializer"
	Constant    Source = "constant"
	Computed    Source = "computed"
)

// Visit is one value of a run.
type Visit struct {
	Value  onnx.Value
	Source Source
	// Node made the value; nil for inputs and initializers. Position is its place in the graph, in
	// execution order.
	Node     *onnx.Node
	Position int
	// Got is the value, one tensor per engine. It must not be changed or kept.
	Got []*tensor.Tensor
}

// ErrStop ends a run from within a visit without being an error.
var ErrStop = errors.New("stop")

// Values runs m on each engine and visits inputs, initializers and constants first, then every
// computed value in execution order. The model must be valid (onnx.Check); symbolic extents take
// the numbers that the inputs have. Nothing is changed. Errors are those of binding, of the engines
// and of visit.
func Values(ctx context.Context, engines []engine.Compiler, m *onnx.Model, in map[string]*tensor.Tensor, o Options, visit func(Visit) error) error {
	p, err := newPlan(m, in, o)
	if err != nil {
		return fmt.Errorf("trace %q: %w", m.GetGraph().GetName(), err)
	}
	err = p.run(ctx, engines, visit)
	if errors.Is(err, ErrStop) {
		return nil
	}
	return err
}

// plan is a bound model with the values to watch, in execution order.
type plan struct {
	model *onnx.Model
	in    map[string]*tensor.Tensor
	opts  Options
	// watched lists computed values; size their bytes, where known.
	watched []watch
}

type watch struct {
	value    onnx.Value
	dtype    tensor.DType
	node     *onnx.Node
	position int
	bytes    int64
}

// unknownBytes stands for the size of a value whose shape only the run knows.
const unknownBytes = 1 << 20

func newPlan(m *onnx.Model, in map[string]*tensor.Tensor, o Options) (*plan, error) {
	bind, err := Bind(m, in)
	if err != nil {
		return nil, err
	}
	if m, err = onnx.BindDims(m, bind); err != nil {
		return nil, err
	}
	if err := onnx.Sort(m.Graph); err != nil {
		return nil, err
	}
	env, err := shape.NewEnv(m, nil)
	if err != nil {
		return nil, err
	}
	if o.Budget <= 0 {
		o.Budget = DefaultBudget
	}
	declared := onnx.DeclaredTypes(m.Graph)
	p := &plan{model: m, in: in, opts: o}
	for i, n := range m.Graph.Node {
		// A node that inference does not know leaves its values to what the model declares; whether
		// it can be executed is for the engine to say.
		_ = env.Apply(n)
		if n.OpType == "Constant" && onnx.NormalizeDomain(n.Domain) == onnx.DomainStandard {
			continue
		}
		for _, name := range n.Output {
			v := onnx.Value(name)
			f, ok := env.Fact(v)
			if !ok || f.Type.DType == tensor.Undefined {
				f.Type, ok = declared(v)
			}
			if name == "" || !ok || f.Kind != shape.Tensor || f.Type.DType == tensor.Undefined {
				continue
			}
			w := watch{value: v, dtype: f.Type.DType, node: n, position: i, bytes: unknownBytes}
			if s, static := f.Type.Static(); static {
				if k, err := tensor.Len(s); err == nil {
					w.bytes = int64(f.Type.DType.ByteLen(k))
				}
			}
			p.watched = append(p.watched, w)
		}
	}
	return p, nil
}

// Bind returns the numbers of the symbolic extents of m that the inputs give, after checking that
// every input is given with its element type, rank and extents.
func Bind(m *onnx.Model, in map[string]*tensor.Tensor) (map[string]int, error) {
	bind, from := map[string]int{}, map[string]string{}
	known := map[string]bool{}
	for _, v := range m.GetGraph().Inputs() {
		known[v.Name] = true
		want, ok := v.TensorType()
		if !ok {
			return nil, fmt.Errorf("input %q is no tensor", v.Name)
		}
		t := in[v.Name]
		if t == nil {
			return nil, fmt.Errorf("input %q (%v) is not given", v.Name, want)
		}
		if !want.Admits(t.DType(), t.Shape()) {
			return nil, fmt.Errorf("input %q: expected %v, got %v", v.Name, want, t)
		}
		for i, d := range want.Dims {
			if d.IsKnown() || d.Param == "" {
				continue
			}
			n := t.Shape()[i]
			if old, ok := bind[d.Param]; ok && old != n {
				return nil, fmt.Errorf("input %q: extent %s is %d, but %d in input %q", v.Name, d.Param, n, old, from[d.Param])
			}
			bind[d.Param], from[d.Param] = n, v.Name
		}
	}
	for name := range in {
		if !known[name] {
			return nil, fmt.Errorf("the model has no input %q", name)
		}
	}
	return bind, nil
}

func (p *plan) run(ctx context.Context, engines []engine.Compiler, visit func(Visit) error) error {
	if err := p.constants(len(engines), visit); err != nil {
		return err
	}
	for rest := p.watched; len(rest) > 0; {
		n, bytes := 0, int64(0)
		for n < len(rest) && (n == 0 || bytes+rest[n].bytes <= p.opts.Budget) {
			bytes += rest[n].bytes
			n++
		}
		if err := p.part(ctx, engines, rest[:n], visit); err != nil {
			return err
		}
		rest = rest[n:]
	}
	return nil
}

// constants visits what is known without a run.
func (p *plan) constants(engines int, visit func(Visit) error) error {
	show := func(v Visit, t *tensor.Tensor) error {
		v.Got = slices.Repeat([]*tensor.Tensor{t}, engines)
		return visit(v)
	}
	for _, v := range p.model.Graph.Inputs() {
		if err := show(Visit{Value: onnx.Value(v.Name), Source: Input, Position: -1}, p.in[v.Name]); err != nil {
			return err
		}
	}
	for _, t := range p.model.Graph.Initializer {
		x, err := onnx.TensorOf(t)
		if err != nil {
			return fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		if err := show(Visit{Value: onnx.Value(t.Name), Source: Initializer, Position: -1}, x); err != nil {
			return err
		}
	}
	for i, n := range p.model.Graph.Node {
		if n.OpType != "Constant" || onnx.NormalizeDomain(n.Domain) != onnx.DomainStandard {
			continue
		}
		x, err := onnx.ConstantOf(n)
		if err != nil {
			return fmt.Errorf("%s: %w", n.Describe(), err)
		}
		if err := show(Visit{Value: n.Out(0), Source: Constant, Node: n, Position: i}, x); err != nil {
			return err
		}
	}
	return nil
}

// part runs the model once on each engine with some values as its outputs.
func (p *plan) part(ctx context.Context, engines []engine.Compiler, values []watch, visit func(Visit) error) error {
	m := p.model.ShallowClone()
	m.Graph.Output = nil
	for _, w := range values {
		// Without a shape, so that an extent that inference and engine see differently is found by
		// looking at the values.
		m.Graph.Output = append(m.Graph.Output, onnx.NewValueInfo(w.value, onnx.TensorType{DType: w.dtype}))
	}
	m, err := onnx.Prune(m)
	if err != nil {
		return err
	}
	got := make([][]*tensor.Tensor, len(engines))
	for i, c := range engines {
		if got[i], err = p.outputs(ctx, c, m); err != nil {
			return err
		}
	}
	for i, w := range values {
		v := Visit{Value: w.value, Source: Computed, Node: w.node, Position: w.position}
		for e := range engines {
			v.Got = append(v.Got, got[e][i])
		}
		if err := visit(v); err != nil {
			return err
		}
	}
	return nil
}

func (p *plan) outputs(ctx context.Context, c engine.Compiler, m *onnx.Model) ([]*tensor.Tensor, error) {
	s, err := c.Compile(m, p.opts.Compile)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	in := make([]*tensor.Tensor, len(s.Inputs()))
	for i, port := range s.Inputs() {
		if in[i] = p.in[port.Name]; in[i] == nil {
			return nil, fmt.Errorf("%s engine: input %q is not given", c.Name(), port.Name)
		}
	}
	out := make([]*tensor.Tensor, len(m.Graph.Output))
	if err := s.Run(ctx, out, in); err != nil {
		return nil, err
	}
	return out, nil
}
