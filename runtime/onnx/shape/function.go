package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// function returns the model-local function that a node calls, or nil. Such functions go before
// built-in operators of the same name.
func (e *Env) function(n *onnx.Node) *onnx.Function {
	if len(e.fns) == 0 {
		return nil
	}
	return e.fns[fnKey{onnx.NormalizeDomain(n.GetDomain()), n.GetOpType(), n.GetOverload()}]
}

// inferFunction infers a call of a model-local function through its body. The body sees the call's
// inputs and nothing else of the caller.
func (c *call) inferFunction(f *onnx.Function) error {
	if c.env.depth >= maxDepth {
		return fmt.Errorf("more than %d sub-graphs and functions inside each other; does function %q call itself?", maxDepth, f.GetName())
	}
	if len(c.node.Input) > len(f.Input) || len(c.node.Output) > len(f.Output) {
		return fmt.Errorf("function %q has %d inputs and %d outputs, the call %d and %d", f.GetName(), len(f.Input), len(f.Output), len(c.node.Input), len(c.node.Output))
	}
	body := &onnx.Graph{Name: f.GetName(), ValueInfo: f.GetValueInfo()}
	b := newEnv(c.env.state, nil, body)
	b.depth = c.env.depth + 1
	b.imports = f.OpsetImport
	b.opset = 0
	for _, o := range f.OpsetImport {
		if onnx.NormalizeDomain(o.GetDomain()) == "" {
			b.opset = int(o.GetVersion())
		}
	}
	if len(f.OpsetImport) == 0 {
		b.imports, b.opset = c.env.imports, c.env.opset
	}
	b.attrs = map[string]*onnx.Attribute{}
	for _, a := range f.AttributeProto {
		b.attrs[a.GetName()] = a
	}
	for _, a := range c.node.Attribute {
		b.attrs[a.GetName()] = a
	}
	for i, name := range f.Input {
		if in := c.loaded(i); in != nil {
			b.Set(onnx.Value(name), *in)
		} else {
			// The body may pass an absent input on; it is absent there too.
			b.absent(name)
		}
	}
	if err := b.applyAll(f.Node); err != nil {
		return err
	}
	for i := range c.node.Output {
		o, _ := b.find(f.Output[i])
		if o == nil {
			return fmt.Errorf("function %q does not compute its output %q", f.GetName(), f.Output[i])
		}
		b.load(f.Output[i], o)
		c.out[i] = *o
	}
	return nil
}

// absent marks a function's formal input as not given.
func (e *Env) absent(name string) {
	if e.gone == nil {
		e.gone = map[string]bool{}
	}
	e.gone[name] = true
}

// resolve returns the node with references to attributes of the enclosing function replaced by the
// call's, and with inputs that the call leaves out left out. Nodes outside functions are returned
// as they are.
func (e *Env) resolve(n *onnx.Node) (*onnx.Node, error) {
	f := e
	for f.parent != nil {
		f = f.parent
	}
	if f.attrs == nil {
		return n, nil
	}
	change := false
	for _, a := range n.GetAttribute() {
		change = change || a.GetRefAttrName() != ""
	}
	for _, v := range n.GetInput() {
		change = change || f.gone[v]
	}
	if !change {
		return n, nil
	}
	c := &onnx.Node{Name: n.Name, OpType: n.OpType, Domain: n.Domain, Overload: n.Overload, Output: n.Output}
	for _, v := range n.Input {
		if f.gone[v] {
			v = ""
		}
		c.Input = append(c.Input, v)
	}
	for _, a := range n.Attribute {
		if a.GetRefAttrName() == "" {
			c.Attribute = append(c.Attribute, a)
			continue
		}
		// A reference to an attribute that the call does not give, and that has no default, leaves
		// the attribute out.
		if v := f.attrs[a.GetRefAttrName()]; v != nil {
			if a.GetType() != v.GetType() && a.GetType() != onnx.AttributeProto_UNDEFINED && v.GetType() != onnx.AttributeProto_UNDEFINED {
				return nil, fmt.Errorf("attribute %q is declared %v, the call of the function gives %v", a.GetName(), a.GetType(), v.GetType())
			}
			c.Attribute = append(c.Attribute, &onnx.Attribute{Name: a.Name, Type: v.Type, F: v.F, I: v.I, S: v.S, T: v.T, G: v.G, SparseTensor: v.SparseTensor,
				Tp: v.Tp, Floats: v.Floats, Ints: v.Ints, Strings: v.Strings, Tensors: v.Tensors, Graphs: v.Graphs, SparseTensors: v.SparseTensors, TypeProtos: v.TypeProtos})
		}
	}
	return c, nil
}
