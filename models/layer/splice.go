package layer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Splice appends a foreign model to the network: its input becomes x, its nodes and weights are
// called after the scope, and the value of its output is returned; other outputs are dropped. The
// model's parameters, as models.FromModel finds them, become parameters with the roles that the
// options give. m, which is not changed and whose weights are shared, must have the one input. Its
// symbolic extents become those of x. Where the two use different opsets, the older one is
// upgraded.
func (g *Graph) Splice(m *onnx.Model, input, output, x onnx.Value, o models.Options) onnx.Value {
	return g.SpliceAll(m, map[onnx.Value]onnx.Value{input: x}, []onnx.Value{output}, o)[0]
}

// SpliceAll is Splice of a model with several inputs, which become the given values, and several
// outputs, whose values are returned. The model must need no other inputs for them.
func (g *Graph) SpliceAll(m *onnx.Model, inputs map[onnx.Value]onnx.Value, outputs []onnx.Value, o models.Options) []onnx.Value {
	none := make([]onnx.Value, len(outputs))
	if g.Err() != nil {
		return none
	}
	out, err := g.splice(m, inputs, outputs, o)
	if err != nil {
		g.Failf("%w", err)
		return none
	}
	return out
}

func (g *Graph) splice(m *onnx.Model, inputs map[onnx.Value]onnx.Value, outputs []onnx.Value, o models.Options) ([]onnx.Value, error) {
	m, err := onnx.Extract(m, slices.Sorted(maps.Keys(inputs)), outputs, nil)
	if err != nil {
		return nil, err
	}
	if m, err = g.align(m); err != nil {
		return nil, err
	}
	// Which weights are parameters is decided by the model's own names, before they change.
	net, values, err := models.FromModel(m, o)
	if err != nil {
		return nil, err
	}
	if len(net.Buffers) > 0 {
		g.Note("%s: taken for buffers that were never parameters, and not trained: %s", strings.Join(g.path, "."), strings.Join(net.Buffers, ", "))
	}
	scope := strings.Join(g.path, "/")
	if g.reuse {
		scope = string(g.s.b.Fresh(scope + "/again"))
	} else {
		for _, x := range inputs {
			if strings.HasPrefix(string(x), scope+"/") {
				// Values of this scope may be called as the model's are.
				scope = string(g.s.b.Fresh(scope + "/spliced"))
				break
			}
		}
	}
	specs := make([]models.Spec, len(net.Specs))
	for i, s := range net.Specs {
		specs[i] = s
		specs[i].Name = g.Name(s.Name)
	}
	return g.insert(insertion{m: m, inputs: inputs, outputs: outputs, scope: scope, names: net.Specs, specs: specs, values: values})
}

// align returns m at the opset of the network, which is raised where it is the older one.
func (g *Graph) align(m *onnx.Model) (*onnx.Model, error) {
	own, err := g.s.b.Model()
	if err != nil {
		return nil, err
	}
	if opset := m.Opset(onnx.DomainStandard); opset > own.Opset(onnx.DomainStandard) {
		if own, err = g.raise(opset); err != nil {
			return nil, err
		}
	}
	return onnx.Upgrade(m, own.Opset(onnx.DomainStandard))
}

// insertion is a model on its way into a network of the same opset.
type insertion struct {
	m       *onnx.Model
	inputs  map[onnx.Value]onnx.Value
	outputs []onnx.Value
	// scope precedes the names of nodes and values.
	scope string
	// names are the parameters as the model calls them, specs the same as the network does, and
	// values their content by the model's names.
	names, specs []models.Spec
	values       map[string]*tensor.Tensor
	// renamed, unless nil, receives the old and the new name of a value.
	renamed func(f func(onnx.Value) onnx.Value)
}

func (g *Graph) insert(p insertion) ([]onnx.Value, error) {
	m, scope := p.m, p.scope
	own, err := g.s.b.Model()
	if err != nil {
		return nil, err
	}
	specs := map[onnx.Value]models.Spec{}
	for i, s := range p.names {
		specs[onnx.Value(s.Name)] = p.specs[i]
	}
	constants := map[onnx.Value]bool{}
	for _, t := range m.Graph.Initializer {
		if _, ok := specs[onnx.Value(t.Name)]; !ok {
			constants[onnx.Value(t.Name)] = true
		}
	}
	rename := func(v onnx.Value) onnx.Value {
		x, given := p.inputs[v]
		switch spec, param := specs[v]; {
		case given:
			return x
		case param:
			return onnx.Value(spec.Name)
		case constants[v]:
			// The prefix tells readers of the finished file that this is no parameter.
			return onnx.Value("const/"+scope+"/") + v
		}
		return onnx.Value(scope+"/") + v
	}
	renamed, err := onnx.Rename(m, rename)
	if err != nil {
		return nil, err
	}
	for _, s := range renamed.OpsetImport {
		switch have := own.Opset(s.Domain); {
		case have == 0:
			own.SetOpset(onnx.NormalizeDomain(s.Domain), int(s.Version))
		case have != int(s.Version):
			return nil, fmt.Errorf("it imports version %d of the operators of domain %q, the network version %d", s.Version, s.Domain, have)
		}
	}
	own.IrVersion = max(own.IrVersion, renamed.IrVersion)
	for i, t := range m.Graph.Initializer {
		if spec, ok := specs[onnx.Value(t.Name)]; ok {
			g.adopt(spec, p.values[t.Name])
		} else if g.s.b.Claim(renamed.Graph.Initializer[i].Name) {
			own.Graph.Initializer = append(own.Graph.Initializer, renamed.Graph.Initializer[i])
		}
	}
	for _, t := range renamed.Graph.SparseInitializer {
		if g.s.b.Claim(t.GetValues().GetName()) {
			own.Graph.SparseInitializer = append(own.Graph.SparseInitializer, t)
		}
	}
	for _, n := range renamed.Graph.Node {
		if n.Name == "" && len(n.Output) > 0 {
			n.Name = n.Output[0]
		} else {
			n.Name = scope + "/" + n.Name
		}
		for _, v := range n.Output {
			if v != "" && !g.s.b.Claim(v) {
				return nil, g.Err()
			}
		}
		g.s.b.Append(n)
	}
	if p.renamed != nil {
		p.renamed(rename)
	}
	out := make([]onnx.Value, len(p.outputs))
	for i, v := range p.outputs {
		out[i] = rename(v)
	}
	return out, g.Err()
}

// raise upgrades what has been built so far.
func (g *Graph) raise(opset int) (*onnx.Model, error) {
	m, err := g.s.b.Model()
	if err != nil {
		return nil, err
	}
	if m, err = onnx.Upgrade(m, opset); err != nil {
		return nil, err
	}
	g.s.b = onnx.Extend(m)
	g.s.follow(g)
	return g.s.b.Model()
}
