//go:build cgo

package ort

import (
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// oldestIR is a version of the file format that every ONNX Runtime from 1.18 on reads and that can
// say everything a runtime needs.
const oldestIR = 10

// lowerIR returns m with a version of the file format that ONNX Runtime does not refuse. It looks
// at the number alone, onnx's own builders write the newest one, and the versions since have
// added annotations for tools only. The model is copied when something has to change.
func lowerIR(m *onnx.Model) *onnx.Model {
	if m.IrVersion <= oldestIR {
		return m
	}
	c := m.ShallowClone()
	c.IrVersion = oldestIR
	return c
}

// newestOpset is the newest opset that all usable releases of ONNX Runtime, from 1.28 on, call
// released.
const newestOpset = 26

// nameSplits gives every absent output of a Split a name, in sub-graphs too: ONNX Runtime 1.32
// crashes the process on a Split whose first output is absent. The model is copied when something
// has to change.
func nameSplits(m *onnx.Model) *onnx.Model {
	unnamed := func(n *onnx.Node) bool {
		return n.OpType == "Split" && onnx.NormalizeDomain(n.Domain) == "" && slices.Contains(n.Output, "")
	}
	return insertBefore(m, "onnxrl/unused/", unnamed, func(n *onnx.Node, prefix string) []*onnx.Node {
		for i, o := range n.Output {
			if o == "" {
				n.Output[i] = prefix + strconv.Itoa(i)
			}
		}
		return nil
	})
}

// copyStatistics gives every BatchNormalization in training mode running statistics of its own,
// sub-graphs included. ONNX Runtime 1.32 lets the node write the new statistics over the old ones
// unless the new ones are outputs of the graph. Where the old ones are inputs of the graph it
// writes into the caller's memory. The model is copied when something has to change.
func copyStatistics(m *onnx.Model) *onnx.Model {
	training := func(n *onnx.Node) bool {
		return n.OpType == "BatchNormalization" && onnx.NormalizeDomain(n.Domain) == "" && n.Int("training_mode", 0) != 0 && len(n.Input) == 5
	}
	return insertBefore(m, "onnxrl/statistics/", training, func(n *onnx.Node, prefix string) []*onnx.Node {
		var copies []*onnx.Node
		for i := 3; i < 5; i++ {
			// A concatenation of one tensor is a copy that no optimisation of ONNX Runtime removes.
			out := prefix + strconv.Itoa(i)
			copies = append(copies, &onnx.Node{
				OpType: "Concat", Name: out, Input: []string{n.Input[i]}, Output: []string{out},
				Attribute: []*onnx.Attribute{onnx.AttrInt("axis", 0)},
			})
			n.Input[i] = out
		}
		return copies
	})
}

// insertBefore puts what make returns before every node that match accepts, in sub-graphs and
// functions too. make may change the node; the values that it adds begin with the prefix that it
// is given, which differs from node to node. The model is copied when something has to change.
func insertBefore(m *onnx.Model, prefix string, match func(*onnx.Node) bool, make func(n *onnx.Node, prefix string) []*onnx.Node) *onnx.Model {
	found := false
	eachNodes(m, func(nodes []*onnx.Node) []*onnx.Node {
		found = found || slices.ContainsFunc(nodes, match)
		return nodes
	})
	if !found {
		return m
	}
	c := m.ShallowClone()
	for i, f := range c.Functions {
		c.Functions[i] = proto.Clone(f).(*onnx.Function)
	}
	count := 0
	eachNodes(c, func(nodes []*onnx.Node) (out []*onnx.Node) {
		for _, n := range nodes {
			if match(n) {
				out = append(out, make(n, prefix+strconv.Itoa(count)+"/")...)
				count++
			}
			out = append(out, n)
		}
		return out
	})
	return c
}

// eachNodes puts what f returns in place of the nodes of every graph and function.
func eachNodes(m *onnx.Model, f func([]*onnx.Node) []*onnx.Node) {
	// The walk never fails, because this function does not.
	_ = m.EachGraph(func(g *onnx.Graph) error {
		g.Node = f(g.Node)
		return nil
	})
	for _, fn := range m.Functions {
		fn.Node = f(fn.Node)
	}
}
