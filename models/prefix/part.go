package prefix

import (
	"fmt"
	"maps"
	"slices"

	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Block is the number of rows that are computed together.
const Block = 16

// window is the input of a part's graph.
const window = "window"

// Part is what depends on a window and on parameters that stay as they are.
type Part struct {
	// Outputs are what it computes, and Bytes what these take for a row.
	Outputs []Output
	Bytes   int
	// FLOPs is the arithmetic of its products for a row.
	FLOPs float64

	r      *registry
	steps  []*step
	params []string
	values []*value
}

// Output is one value of a part.
type Output struct {
	// Index is its number for [InputName].
	Index int
	// Shape is that of a row's piece.
	Shape []int
}

// parts groups the values that cross by the parameters that they depend on.
func (r *registry) parts(crossing []*value) []*Part {
	group := map[*value]*value{}
	var find func(v *value) *value
	find = func(v *value) *value {
		p, ok := group[v]
		if !ok || p == v {
			return v
		}
		group[v] = find(p)
		return group[v]
	}
	for _, v := range crossing {
		for _, s := range above(v) {
			for _, x := range slices.Concat(s.in, s.out) {
				if x != nil && x.weighted && s.out[0].weighted {
					group[find(x)] = find(s.out[0])
				}
			}
		}
	}
	byGroup := map[*value]*Part{}
	var list []*Part
	for i, v := range crossing {
		p := byGroup[find(v)]
		if p == nil {
			p = &Part{r: r}
			byGroup[find(v)] = p
			list = append(list, p)
		}
		p.values = append(p.values, v)
		p.Outputs = append(p.Outputs, Output{i, v.row})
		p.Bytes += 4 * elements(v.row)
	}
	for _, p := range list {
		seen := map[*step]bool{}
		for _, v := range p.values {
			for _, s := range above(v) {
				if seen[s] {
					continue
				}
				seen[s] = true
				p.steps = append(p.steps, s)
				for _, x := range s.in {
					if x != nil && x.param != "" && !slices.Contains(p.params, x.param) {
						p.params = append(p.params, x.param)
					}
				}
			}
		}
		// Values are numbered as they appear, so what a step reads comes before it.
		slices.SortFunc(p.steps, func(a, b *step) int { return a.out[0].id - b.out[0].id })
		if m, err := p.graph(nil); err == nil {
			p.FLOPs = program.FLOPs(m, nil) / Block
		}
	}
	return list
}

func elements(shape []int) int {
	n := 1
	for _, d := range shape {
		n *= d
	}
	return n
}

// above returns the steps that a value depends on.
func above(v *value) []*step {
	seen := map[*step]bool{}
	todo := []*value{v}
	for len(todo) > 0 {
		s := todo[len(todo)-1].from
		todo = todo[:len(todo)-1]
		if s == nil || seen[s] {
			continue
		}
		seen[s] = true
		for _, x := range s.in {
			if x != nil {
				todo = append(todo, x)
			}
		}
	}
	return slices.SortedFunc(maps.Keys(seen), func(a, b *step) int { return a.out[0].id - b.out[0].id })
}

// Params are the parameters that the part depends on, by the names that [Options.Constant] gave.
func (p *Part) Params() []string { return slices.Clone(p.params) }

// Model returns the part over a block of windows, its parameters baked in: value returns those. The
// names in it are its own, so that equal parts of different networks are the same model. Memory is
// not shared with the values.
func (p *Part) Model(value func(param string) *tensor.Tensor) (*onnx.Model, error) {
	params := map[string]*tensor.Tensor{}
	for _, name := range p.params {
		t := value(name)
		if t == nil {
			return nil, fmt.Errorf("frozen part: parameter %q has no value", name)
		}
		params[name] = t.Clone()
	}
	return p.graph(params)
}

// graph makes the part's graph, with zero-valued inputs for parameters that are not given.
func (p *Part) graph(params map[string]*tensor.Tensor) (*onnx.Model, error) {
	m := &onnx.Model{IrVersion: p.r.model.IrVersion, Graph: &onnx.Graph{Name: "frozen"}}
	m.SetOpset(onnx.DomainStandard, p.r.model.Opset(onnx.DomainStandard))
	g := m.Graph
	g.Input = append(g.Input, onnx.NewValueInfo(window, onnx.TypeOf(tensor.Float32, append([]int{Block}, p.r.shape...)...)))
	names := map[*value]string{}
	name := func(v *value) (string, error) {
		if v == nil {
			return "", nil
		}
		if n, ok := names[v]; ok {
			return n, nil
		}
		names[v] = fmt.Sprint("v", len(names))
		switch {
		case v.from != nil:
		case v.constant != nil:
			t, err := onnx.TensorOf(v.constant)
			if err != nil {
				return "", err
			}
			g.Initializer = append(g.Initializer, onnx.ProtoOf(names[v], t.Clone()))
		case v.param != "" && params != nil:
			g.Initializer = append(g.Initializer, onnx.ProtoOf(names[v], params[v.param]))
		case v.param != "":
			shape := p.r.shapes[v.param]
			g.Input = append(g.Input, onnx.NewValueInfo(onnx.Value(names[v]), onnx.TypeOf(tensor.Float32, shape...)))
		default:
			names[v] = window
		}
		return names[v], nil
	}
	for _, s := range p.steps {
		n := s.node.ShallowClone()
		n.Name, n.DocString = "", ""
		for i, v := range s.in {
			var err error
			if n.Input[i], err = name(v); err != nil {
				return nil, err
			}
		}
		for i, v := range s.out {
			if n.Output[i] != "" {
				n.Output[i], _ = name(v)
			}
		}
		g.Node = append(g.Node, n)
	}
	for _, v := range p.values {
		dims := append([]int{Block}, v.row...)
		if v.folded {
			dims = append([]int{Block * v.row[0]}, v.row[1:]...)
		}
		g.Output = append(g.Output, onnx.NewValueInfo(onnx.Value(names[v]), onnx.TypeOf(tensor.Float32, dims...)))
	}
	return m, nil
}
