package opcases

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/gradcheck"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Case is one check of one operator.
type Case struct {
	// Op and Domain name the operator that the case counts for; Name tells its cases apart.
	Op, Domain, Name string
	// Opset is the version of the standard domain the model imports; 0 means 18. Version 0 of
	// another domain means 1.
	Opset, DomainVersion int
	Args                 []Arg
	Attrs                []*onnx.Attribute
	// Outs is the number of the node's outputs; 0 means 1. An output that is not floating-point is
	// left out of the loss.
	Outs int
	// OutSet, when not nil, lists which outputs enter the loss.
	OutSet []int
	// Skip lists outputs that the node leaves out (empty names).
	Skip []int
	// Graph builds something other than one node; it returns the outputs. in holds one value per
	// argument.
	Graph func(b *onnx.Builder, in []onnx.Value) []onnx.Value
	// Want, when not nil, is the expected gradient of each differentiated argument for the
	// cotangent Cot (ones when nil), compared instead of differences.
	Want [][]float64
	// Cot is the cotangent of output 0.
	Cot []float64
	// Check tunes the comparison with differences.
	Check gradcheck.Options
	// Deviating names the engines that execute the operator otherwise than the specification says;
	// there the differences are those of its expansion.
	Deviating []string
}

// op makes the case of one node of the standard domain.
func op(name, variant string, args ...Arg) Case { return Case{Op: name, Name: variant, Args: args} }

func (c Case) attr(a ...*onnx.Attribute) Case {
	c.Attrs = append(c.Attrs[:len(c.Attrs):len(c.Attrs)], a...)
	return c
}
func (c Case) opset(v int) Case      { c.Opset = v; return c }
func (c Case) domain(d string) Case  { c.Domain = d; return c }
func (c Case) outs(n int) Case       { c.Outs = n; return c }
func (c Case) only(outs ...int) Case { c.OutSet = outs; return c }
func (c Case) skip(outs ...int) Case { c.Skip = outs; return c }
func (c Case) loose(f float64) Case  { c.Check.Loose = f; return c }
func (c Case) zero() Case            { c.Check.Zero = true; return c }
func (c Case) deviating(engine string) Case {
	c.Deviating = append(c.Deviating[:len(c.Deviating):len(c.Deviating)], engine)
	return c
}
func (c Case) single() Case { c.Check.SingleOnly = true; return c }

// want states the gradient of each differentiated argument for a cotangent of ones, at points where
// differences mean nothing.
func (c Case) want(grads ...[]float64) Case { c.Want = grads; return c }

// cot sets the cotangent that want is stated for.
func (c Case) cot(v ...float64) Case { c.Cot = v; return c }

// graph replaces the node by a graph; the case still counts for the operator it names.
func (c Case) graph(f func(b *onnx.Builder, in []onnx.Value) []onnx.Value) Case {
	c.Graph = f
	return c
}

// String names the case.
func (c Case) String() string {
	if c.Domain != "" {
		return c.Domain + "." + c.Op + "/" + c.Name
	}
	return c.Op + "/" + c.Name
}

func (c Case) seed() uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, c.String())
	return h.Sum64()
}

// Problem builds the model and the point. The random numbers depend on the case's name alone.
func (c Case) Problem() (gradcheck.Problem, error) {
	p := gradcheck.Problem{Inputs: map[string]*tensor.Tensor{}}
	opset := c.Opset
	if opset == 0 {
		opset = autodiff.MinOpset
	}
	r := rand.New(rand.NewPCG(c.seed(), 1))
	b := onnx.NewBuilder(c.Op, opset)
	in := make([]onnx.Value, len(c.Args))
	for i, a := range c.Args {
		if a.gen == nil {
			continue
		}
		t := a.gen(r)
		name := fmt.Sprintf("x%d", i)
		switch {
		case a.diff || a.dynamic:
			in[i] = b.Input(name, onnx.TypeOf(t.DType(), t.Shape()...))
			p.Inputs[name] = t
		default:
			in[i] = b.Initializer(name, t)
		}
		if a.diff {
			p.Wrt = append(p.Wrt, name)
		}
	}
	var outs []onnx.Value
	if c.Graph != nil {
		outs = c.Graph(b, in)
	} else {
		outs = c.node(b, in)
	}
	m, err := b.Model()
	if err != nil {
		return p, fmt.Errorf("case %v: %w", c, err)
	}
	if c.DomainVersion != 0 {
		m.SetOpset(c.Domain, c.DomainVersion)
	}
	types, err := outputTypes(m)
	if err != nil {
		return p, fmt.Errorf("case %v: %w", c, err)
	}
	for i, o := range outs {
		if o == "" {
			continue
		}
		t := types.Type(o)
		b.Output(o, t)
		if t.DType.IsFloat() && (c.OutSet == nil || contains(c.OutSet, i)) {
			p.Outputs = append(p.Outputs, string(o))
		}
	}
	p.Model = m
	if len(p.Outputs) == 0 {
		return p, fmt.Errorf("case %v: no output can be differentiated", c)
	}
	return p, nil
}

// node adds the case's single node. Outputs of other types than float are converted by a Cast, so
// that piecewise constant operators can be checked too.
func (c Case) node(b *onnx.Builder, in []onnx.Value) []onnx.Value {
	n := &onnx.Node{Name: "n", OpType: c.Op, Domain: c.Domain, Attribute: c.Attrs}
	for len(in) > 0 && in[len(in)-1] == "" {
		in = in[:len(in)-1]
	}
	for _, v := range in {
		n.Input = append(n.Input, string(v))
	}
	outs := make([]onnx.Value, max(c.Outs, 1))
	for i := range outs {
		if !contains(c.Skip, i) {
			outs[i] = onnx.Value(fmt.Sprintf("y%d", i))
		}
		n.Output = append(n.Output, string(outs[i]))
	}
	b.Append(n)
	if c.Check.Zero {
		for i, v := range outs {
			outs[i] = b.Op("Cast", []onnx.Value{v}, onnx.AttrInt("to", int(tensor.Float32)))
		}
	}
	return outs
}

func contains(list []int, x int) bool {
	for _, v := range list {
		if v == x {
			return true
		}
	}
	return false
}
