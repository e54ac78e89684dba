package corebench

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/onnx/shape"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Product is one bare matrix product or convolution of a training step.
type Product struct {
	// Name says which product of which node it is, for instance "fc2: weight gradient".
	Name string
	// Op is Gemm, MatMul or Conv; A and B are the shapes of its operands.
	Op   string
	A, B []int
	attr []*onnx.Attribute
}

// Products lists the matrix products that one training step of a model cannot do without: of every
// Gemm, MatMul and Conv of the forward graph the product itself, the product for the gradient of
// the weights, and, where the input depends on parameters, the product for the gradient of the
// input.
//
// Products with a matrix are single Gemm nodes, transposed as the gradients need them and without
// bias; products of two batched operands are MatMul nodes; convolutions and their input gradients
// are Conv nodes. The weight gradient of a convolution is one Gemm of the size that it would have
// if the windows lay unfolded in memory, which is the least that any method does. bind gives
// numbers to symbolic extents; initializers that are constants have no gradient.
func Products(m *onnx.Model, bind map[string]int, constants ...string) ([]Product, error) {
	env, err := shape.Infer(m, bind)
	if err != nil {
		return nil, err
	}
	p := productList{env: env, trained: map[string]bool{}}
	for _, t := range m.Graph.Initializer {
		p.trained[t.Name] = len(t.Dims) > 0 && tensor.DType(t.DataType) == tensor.Float32 && !slices.Contains(constants, t.Name)
	}
	for _, n := range m.Graph.Node {
		if slices.ContainsFunc(n.Input, func(in string) bool { return p.trained[in] }) {
			for _, o := range n.Output {
				p.trained[o] = true
			}
		}
		if err := p.add(n); err != nil {
			return nil, fmt.Errorf("products of %s: %w", n.Describe(), err)
		}
	}
	return p.list, nil
}

type productList struct {
	env *shape.Env
	// trained holds the values that depend on parameters: those need gradients.
	trained map[string]bool
	list    []Product
}

func (p *productList) add(n *onnx.Node) error {
	if n.OpType != "Gemm" && n.OpType != "MatMul" && n.OpType != "Conv" {
		return nil
	}
	a, okA := p.env.Type(n.In(0)).Static()
	b, okB := p.env.Type(n.In(1)).Static()
	y, okY := p.env.Type(n.Out(0)).Static()
	if !okA || !okB || !okY {
		return errors.New("shapes are not static")
	}
	switch n.OpType {
	case "Gemm":
		if n.Int("transA", 0) != 0 {
			return errors.New("a transposed first operand is not expected here")
		}
		p.gemm(n, y[0], a[1], y[1], n.Int("transB", 0))
	case "MatMul":
		if len(b) == 2 {
			p.gemm(n, size(a)/b[0], b[0], b[1], 0)
		} else {
			p.batched(n, a, b, y)
		}
	case "Conv":
		return p.conv(n, a, b, y)
	}
	return nil
}

func (p *productList) push(n *onnx.Node, what, op string, a, b []int, attr ...*onnx.Attribute) {
	p.list = append(p.list, Product{Name: n.Describe() + ": " + what, Op: op, A: a, B: b, attr: attr})
}

const (
	forward        = "forward"
	inputGradient  = "input gradient"
	weightGradient = "weight gradient"
)

// gemm is Y[m,n] = A[m,k]·B, with B[k,n] or, transposed, B[n,k].
func (p *productList) gemm(node *onnx.Node, m, k, n, transB int) {
	b := []int{k, n}
	if transB != 0 {
		b = []int{n, k}
	}
	p.push(node, forward, "Gemm", []int{m, k}, b, onnx.AttrInt("transB", transB))
	if p.trained[node.Input[0]] {
		p.push(node, inputGradient, "Gemm", []int{m, n}, b, onnx.AttrInt("transB", 1-transB))
	}
	if p.trained[node.Input[1]] {
		first, second := []int{m, k}, []int{m, n}
		if transB != 0 {
			first, second = second, first
		}
		p.push(node, weightGradient, "Gemm", first, second, onnx.AttrInt("transA", 1))
	}
}

// batched is a product of two activations.
func (p *productList) batched(n *onnx.Node, a, b, y []int) {
	p.push(n, forward, "MatMul", a, b)
	if p.trained[n.Input[0]] {
		p.push(n, inputGradient, "MatMul", y, swapped(b))
	}
	if p.trained[n.Input[1]] {
		p.push(n, weightGradient, "MatMul", swapped(a), y)
	}
}

// conv is Y[N,M,L] = X[N,C,L]∗W[M,C,K] of stride 1 and any number of spatial axes.
func (p *productList) conv(n *onnx.Node, x, w, y []int) error {
	strides, dilations, pads := n.Ints("strides"), n.Ints("dilations"), n.Ints("pads")
	for _, s := range strides {
		if s != 1 {
			return errors.New("strides are not expected here")
		}
	}
	if dilations == nil {
		dilations = slices.Repeat([]int{1}, len(w)-2)
	}
	if n.Int("group", 1) != 1 || len(dilations) != len(w)-2 || len(pads) != 2*len(dilations) {
		return errors.New("groups or implied pads are not expected here")
	}
	p.push(n, forward, "Conv", x, w, onnx.AttrInts("dilations", dilations...), onnx.AttrInts("pads", pads...))
	if p.trained[n.Input[0]] {
		back := make([]int, len(pads))
		for i := range back {
			k := i % len(dilations)
			back[i] = dilations[k]*(w[2+k]-1) - pads[i]
		}
		flipped := slices.Clone(w)
		flipped[0], flipped[1] = w[1], w[0]
		p.push(n, inputGradient, "Conv", y, flipped, onnx.AttrInts("dilations", dilations...), onnx.AttrInts("pads", back...))
	}
	if p.trained[n.Input[1]] {
		places := y[0] * size(y[2:])
		p.push(n, weightGradient, "Gemm", []int{places, w[0]}, []int{places, size(w[1:])}, onnx.AttrInt("transA", 1))
	}
	return nil
}

func size(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

func swapped(shape []int) []int {
	s := slices.Clone(shape)
	k := len(s)
	s[k-2], s[k-1] = s[k-1], s[k-2]
	return s
}

// model is the product as a graph of one node.
func (p Product) model() (*onnx.Model, error) {
	b := onnx.NewBuilder(p.Name, 17)
	x, w := b.Input("a", onnx.TypeOf(tensor.Float32, p.A...)), b.Input("b", onnx.TypeOf(tensor.Float32, p.B...))
	y := b.Op(p.Op, []onnx.Value{x, w}, p.attr...)
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	env, err := shape.Infer(m, nil)
	if err != nil {
		return nil, err
	}
	b.Output(y, env.Type(y))
	return b.Model()
}

// bareProducts are bound sessions of one node each.
type bareProducts struct {
	sessions []engine.Session
	bindings []engine.Binding
}

func bindProducts(c engine.Compiler, list []Product) (_ *bareProducts, err error) {
	bare := &bareProducts{}
	defer func() {
		if err != nil {
			bare.Close()
		}
	}()
	stream := rng.New(3).Stream()
	for _, p := range list {
		m, err := p.model()
		if err != nil {
			return nil, fmt.Errorf("product %s: %w", p.Name, err)
		}
		s, err := c.Compile(m, engine.Options{})
		if err != nil {
			return nil, fmt.Errorf("product %s: %w", p.Name, err)
		}
		bare.sessions = append(bare.sessions, s)
		in := []*tensor.Tensor{tensor.New(tensor.Float32, p.A...), tensor.New(tensor.Float32, p.B...)}
		for _, t := range in {
			stream.FillNormal32(t.Float32s(), 0, 1)
		}
		out := []*tensor.Tensor{tensor.New(tensor.Float32, s.Outputs()[0].Shape...)}
		b, err := s.Bind(out, in)
		if err != nil {
			return nil, fmt.Errorf("product %s: %w", p.Name, err)
		}
		bare.bindings = append(bare.bindings, b)
	}
	return bare, nil
}

// run computes every product once.
func (p *bareProducts) run() error {
	for _, b := range p.bindings {
		if err := b.Run(); err != nil {
			return err
		}
	}
	return nil
}

func (p *bareProducts) Close() error {
	var errs []error
	for _, b := range p.bindings {
		errs = append(errs, b.Close())
	}
	for _, s := range p.sessions {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}
