package autodiff

import (
	"fmt"
	"github.com/onnxrl/onnxrl/runtime/glob"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/schema"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
)

// MinOpset is the oldest opset of the standard domain that gradients are emitted for. Older models
// are raised to it with onnx.Upgrade first.
const MinOpset = 18

// Loss is one term of an objective: the sum of the elements of a value, each weighted by its
// cotangent.
type Loss struct {
	// Value names a floating-point value of the graph, usually an output.
	Value string
	// Cotangent, when set, is the name of a graph input to add: it has the value's type and carries
	// ∂L/∂Value. When empty, every element counts with Weight.
	Cotangent string
	// Weight scales the term; 0 means 1.
	Weight float64
}

// Objective is one scalar to differentiate and the values to differentiate it with respect to.
type Objective struct {
	// Name distinguishes several objectives: gradients are called grad/<value>, or
	// grad/<name>/<value> when a name is given. Those of a model that holds gradients already begin
	// with grad2/, grad3/, …
	Name   string
	Losses []Loss
	// Wrt lists patterns of initializers and graph inputs (globs in which * matches any run of
	// characters), or exact names of inner values. A pattern that matches nothing floating-point is
	// an error. Patterns leave out the constants of a model's gradients.
	Wrt []string
	// Freeze lists patterns of values that are not differentiated even when Wrt matches them.
	Freeze []string
	// Stop lists values that no gradient flows through (stop-gradient).
	Stop []string
}

// Options select what [Grad] builds.
type Options struct {
	Objectives []Objective
	// Bind gives numbers to symbolic extents of the model's inputs. Gradients of static shapes are
	// the fastest; extents without a number, and those that depend on the data, are read at run
	// time by the rules that can.
	Bind map[string]int
	// DropOutputs leaves the model's own outputs out of the result, keeping only the losses and
	// gradients.
	DropOutputs bool
}

// Gradient is the result of [Grad].
type Gradient struct {
	// Model is the forward model with gradient outputs added. It shares initializer contents with
	// the model it was made from.
	Model *onnx.Model
	// Outputs lists, per objective in order, the gradient outputs in the order that Wrt resolved
	// to.
	Outputs [][]Output
	// Env knows the type of every value of Model.
	Env *shape.Env
}

// Output ties a gradient output to the value it belongs to.
type Output struct {
	// Wrt is the differentiated value; Name the graph output that holds its gradient, of the same
	// type and shape.
	Wrt, Name string
	// Unreached marks a value that no loss depends on; its gradient is zeros.
	Unreached bool
}

// UnsupportedError names a node between a differentiated value and a loss whose operator has no
// rule.
type UnsupportedError struct {
	Node, Op, Domain string
	Opset            int
	// Versions lists the versions of the operator that have a rule, none where no version has.
	Versions []int
}

func (e *UnsupportedError) Error() string {
	op := e.Op
	if e.Domain != "" {
		op = e.Domain + "." + op
	}
	switch latest := schema.Latest(e.Domain); {
	case latest > 0 && e.Opset > latest:
		return fmt.Sprintf("%s: operator %s has no gradient rule for opset %d; the newest known is %d", e.Node, op, e.Opset, latest)
	case len(e.Versions) > 0:
		return fmt.Sprintf("%s: operator %s has no gradient rule for version %d, which opset %d has; versions %v have one", e.Node, op, schema.Version(e.Domain, e.Op, e.Opset), e.Opset, e.Versions)
	}
	return fmt.Sprintf("%s: operator %s has no gradient rule in opset %d; stop the gradient before it or express it with other operators", e.Node, op, e.Opset)
}

// Grad returns a model that computes m's outputs and the gradients asked for. m is not changed.
// Initializers are not copied.
//
// Errors name the node and value: an operator without a rule is an [*UnsupportedError]. A shape
// that a rule needs before a run and that is not known then, a loss that is not floating-point or
// does not exist, and a pattern that matches nothing are errors too.
func Grad(m *onnx.Model, o Options) (*Gradient, error) {
	g, err := grad(m, o)
	if err != nil {
		return nil, fmt.Errorf("differentiate %q: %w", m.GetGraph().GetName(), err)
	}
	return g, nil
}

func grad(m *onnx.Model, o Options) (*Gradient, error) {
	if m.GetGraph() == nil {
		return nil, fmt.Errorf("the model has no graph")
	}
	if len(o.Objectives) == 0 {
		return nil, fmt.Errorf("no objective is given")
	}
	p, err := prepare(m, o)
	if err != nil {
		return nil, err
	}
	for i := range o.Objectives {
		if err := p.resolve(&o.Objectives[i]); err != nil {
			return nil, err
		}
	}
	if err := p.expand(); err != nil {
		return nil, err
	}
	forward := slices.Clone(p.model.Graph.Node)
	p.base = len(forward)
	res := &Gradient{Model: p.model, Env: p.c.env}
	for _, obj := range p.objectives {
		outs, err := p.differentiate(obj, forward)
		if err != nil {
			return nil, err
		}
		res.Outputs = append(res.Outputs, outs)
	}
	if err := p.finish(o, res); err != nil {
		return nil, err
	}
	return res, nil
}

// objective is an Objective with patterns resolved to names.
type objective struct {
	Objective
	wrt  []string
	stop map[string]bool
}

// pass is the state of one call of Grad.
type pass struct {
	model      *onnx.Model
	c          *Context
	objectives []objective
	rules      ruleTable
	// reserved holds the gradient outputs published so far; base is the number of forward nodes,
	// which gradient nodes follow.
	reserved map[string]bool
	base     int
	// prefix begins the names of all that is made, scope those of the objective being
	// differentiated.
	prefix, scope string
	// outer holds the values that the gradient of the branch being built is for; pieces says where
	// in packed gradients those lie that have not been taken out yet.
	outer  map[onnx.Value]bool
	pieces map[onnx.Value][]piece
}

// prepare copies the model's structure, normalises it and infers all types.
func prepare(m *onnx.Model, o Options) (*pass, error) {
	m, err := normalize(m)
	if err != nil {
		return nil, err
	}
	if err := m.EachGraph(func(g *onnx.Graph) error {
		for _, n := range g.Node {
			if err := onnx.CheckAttributes(n, m.Opset(n.Domain)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return nil, err
	}
	for _, v := range m.Graph.Input {
		if t, ok := v.TensorType(); ok {
			v.Type = onnx.NewValueInfo("", t.Bind(o.Bind)).Type
		}
	}
	// Declared types of inner values may contradict the bound ones and are derived again anyway.
	m.Graph.ValueInfo = nil
	env, err := shape.NewEnv(m, o.Bind)
	if err != nil {
		return nil, err
	}
	p := &pass{model: m, rules: rules(), reserved: map[string]bool{}, prefix: Prefix(Order(m) + 1), c: &Context{b: onnx.Extend(m), env: env, opset: m.Opset("")}}
	p.c.pass = p
	env.NameUnknown()
	if err := p.infer(env); err != nil {
		return nil, err
	}
	return p, nil
}

// resolve turns an objective's patterns into names and declares its cotangent inputs.
func (p *pass) resolve(o *Objective) error {
	if len(o.Losses) == 0 {
		return fmt.Errorf("objective %q has no loss", o.Name)
	}
	obj := objective{Objective: *o, stop: map[string]bool{}}
	for _, l := range o.Losses {
		f, ok := p.c.env.Fact(onnx.Value(l.Value))
		if !ok {
			return fmt.Errorf("loss %q: the graph has no such value", l.Value)
		}
		if !f.Type.DType.IsFloat() {
			return fmt.Errorf("loss %q is %v: a loss must be floating-point", l.Value, f.Type)
		}
		if l.Cotangent != "" {
			if g, ok := p.c.env.Fact(onnx.Value(l.Cotangent)); ok {
				if !g.Type.Equal(f.Type) {
					return fmt.Errorf("cotangent %q is %v but loss %q is %v", l.Cotangent, g.Type, l.Value, f.Type)
				}
				continue
			}
			p.c.b.Input(l.Cotangent, p.c.declarable(f.Type))
			p.c.env.Set(onnx.Value(l.Cotangent), shape.Fact{Type: f.Type})
		}
	}
	for _, s := range o.Stop {
		if _, ok := p.c.env.Fact(onnx.Value(s)); !ok {
			return fmt.Errorf("stop-gradient value %q: the graph has no such value", s)
		}
		obj.stop[s] = true
	}
	var err error
	if obj.wrt, err = p.matchWrt(o); err != nil {
		return err
	}
	p.objectives = append(p.objectives, obj)
	return nil
}

// matchWrt resolves Wrt and Freeze patterns against the graph's inputs and initializers, in graph
// order.
func (p *pass) matchWrt(o *Objective) ([]string, error) {
	var names []string
	seen := map[string]bool{}
	var candidates []string
	for _, v := range p.model.Graph.Input {
		candidates = append(candidates, v.Name)
	}
	for _, t := range p.model.Graph.Initializer {
		if !IsConstant(p.model, t.Name) {
			candidates = append(candidates, t.Name)
		}
	}
	for _, pat := range o.Wrt {
		n := 0
		add := func(name string) {
			if seen[name] || !p.c.DType(onnx.Value(name)).IsFloat() {
				return
			}
			n++
			if !glob.MatchAny(o.Freeze, name) {
				seen[name] = true
				names = append(names, name)
			}
		}
		before := len(seen)
		if _, ok := p.c.env.Fact(onnx.Value(pat)); ok {
			// An exact name wins, so that names which hold a wildcard can be written too.
			add(pat)
		} else {
			for _, name := range candidates {
				if glob.Match(pat, name) {
					add(name)
				}
			}
		}
		if n == 0 && before == len(seen) && !anyMatch(seen, pat) {
			return nil, fmt.Errorf("differentiate with respect to %q: no floating-point value of that name or pattern", pat)
		}
	}
	return names, nil
}

func anyMatch(seen map[string]bool, pat string) bool {
	for name := range seen {
		if glob.Match(pat, name) {
			return true
		}
	}
	return false
}

// finish renames gradient values to their output names, declares outputs, removes dead nodes and
// checks the result.
func (p *pass) finish(o Options, res *Gradient) error {
	if err := p.c.b.Err(); err != nil {
		return err
	}
	if o.DropOutputs {
		keep := map[string]bool{}
		for _, obj := range p.objectives {
			for _, l := range obj.Losses {
				keep[l.Value] = true
			}
		}
		p.model.Graph.Output = slices.DeleteFunc(p.model.Graph.Output, func(v *onnx.ValueInfo) bool { return !keep[v.Name] })
	}
	for _, v := range p.model.Graph.Output {
		v.Type = onnx.NewValueInfo("", p.c.declarable(p.c.Type(onnx.Value(v.Name)))).Type
	}
	for _, outs := range res.Outputs {
		for _, out := range outs {
			p.c.b.Output(onnx.Value(out.Name), p.c.declarable(p.c.Type(onnx.Value(out.Name))))
		}
	}
	if err := p.c.b.Err(); err != nil {
		return err
	}
	p.simplify()
	var err error
	if res.Model, err = onnx.Prune(p.model); err != nil {
		return err
	}
	return lowerOpset(res.Model)
}
