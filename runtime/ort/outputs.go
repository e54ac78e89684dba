//go:build cgo

package ort

import (
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// makeOutputs returns m with an Identity node for every output of a graph, a body or a function that
// is an input of it or a value of a graph around it. ONNX Runtime puts the fed tensor in the place of
// the caller's memory for such an output, which then keeps what it held before, as the memory of a
// Scan does. It refuses values of a graph around. Initializers it copies. Outputs of the main graph
// that change have another name, in the same place. A name that is listed twice, or that nothing
// defines, is left to the check of the model. With keepNames the outputs of the main graph stay as
// they are. The model is copied when something has to change.
func makeOutputs(m *onnx.Model, keepNames bool) *onnx.Model {
	if !(&outputMaker{keepNames: keepNames}).model(m) {
		return m
	}
	c := m.ShallowClone()
	(&outputMaker{keepNames: keepNames, change: true}).model(c)
	return c
}

// outputMaker walks through a model, whose graphs it changes where change says so. The functions
// of a model are copied before.
type outputMaker struct {
	keepNames bool
	change    bool
	count     int
}

// definitions are the values that a graph can name.
type definitions struct {
	parent *definitions
	made   map[string]bool // outputs of its nodes, and its initializers
	given  map[string]bool // its inputs
}

func (d *definitions) has(name string) bool {
	return d != nil && (d.made[name] || d.given[name] || d.parent.has(name))
}

// model reports whether something is to be changed, or was.
func (o *outputMaker) model(m *onnx.Model) bool {
	found := o.graph(m.Graph, nil)
	for i, f := range m.Functions {
		d := define(nil, f.Node)
		for _, v := range f.Input {
			d.given[v] = true
		}
		if o.change {
			f = proto.CloneOf(f)
			m.Functions[i] = f
		}
		found = o.bodies(f.Node, d) || found
		for _, k := range d.unmade(f.Output) {
			found = true
			if o.change {
				n := o.identity(f.Output[k])
				f.Output[k] = n.Output[0]
				f.Node = append(f.Node, n)
			}
		}
	}
	return found
}

func (o *outputMaker) graph(g *onnx.Graph, around *definitions) bool {
	d := define(around, g.Node)
	for _, v := range g.Input {
		d.given[v.Name] = true
	}
	for _, t := range g.Initializer {
		d.made[t.Name] = true
	}
	for _, t := range g.SparseInitializer {
		d.made[t.GetValues().GetName()] = true
	}
	found := o.bodies(g.Node, d)
	if around == nil && o.keepNames {
		return found
	}
	names := valueNames(g.Output)
	for _, k := range d.unmade(names) {
		found = true
		if o.change {
			n := o.identity(names[k])
			g.Output[k] = proto.CloneOf(g.Output[k])
			g.Output[k].Name = n.Output[0]
			g.Node = append(g.Node, n)
		}
	}
	return found
}

func (o *outputMaker) bodies(nodes []*onnx.Node, d *definitions) bool {
	found := false
	for _, n := range nodes {
		for _, g := range n.Subgraphs() {
			found = o.graph(g, d) || found
		}
	}
	return found
}

func (o *outputMaker) identity(of string) *onnx.Node {
	out := "onnxrl/output/" + strconv.Itoa(o.count)
	o.count++
	return &onnx.Node{OpType: "Identity", Name: out, Input: []string{of}, Output: []string{out}}
}

func define(around *definitions, nodes []*onnx.Node) *definitions {
	d := &definitions{around, map[string]bool{}, map[string]bool{}}
	for _, n := range nodes {
		for _, v := range n.Output {
			d.made[v] = true
		}
	}
	return d
}

// unmade lists the outputs, by their places, that are neither made in the graph nor initializers.
func (d *definitions) unmade(outputs []string) (places []int) {
	seen := map[string]bool{}
	for i, v := range outputs {
		if seen[v] {
			return nil
		}
		if seen[v] = true; v != "" && !d.made[v] && d.has(v) {
			places = append(places, i)
		}
	}
	return places
}
