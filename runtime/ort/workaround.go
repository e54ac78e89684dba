//go:build cgo

package ort

import (
	"strconv"

	"onnxrl/runtime/onnx"
)

// oldestIR is a version of the file format that every ONNX Runtime from 1.18 on reads and that can say everything a runtime needs.
const oldestIR = 10

// lowerIR returns m with a version of the file format that ONNX Runtime does not refuse: it looks at the number alone, onnx's own builders write the newest one, and what the versions since
// have added are annotations for tools. The model is copied when something has to change.
func lowerIR(m *onnx.Model) *onnx.Model {
	if m.IrVersion <= oldestIR {
		return m
	}
	c := m.ShallowClone()
	c.IrVersion = oldestIR
	return c
}

// newestOpset is the newest opset that ONNX Runtime 1.27 calls released.
const newestOpset = 26

// nameSplits gives every absent output of a Split a name, in sub-graphs too: ONNX Runtime 1.27 crashes the process on a Split whose first output is absent. The model is copied when something
// has to change.
func nameSplits(m *onnx.Model) *onnx.Model {
	if !hasUnnamedSplit(m.Graph) {
		return m
	}
	c := m.ShallowClone()
	n := 0
	fillSplits(c.Graph, &n)
	return c
}

func isSplit(n *onnx.Node) bool { return n.OpType == "Split" && onnx.NormalizeDomain(n.Domain) == "" }

func hasUnnamedSplit(g *onnx.Graph) bool {
	for _, n := range g.Node {
		if isSplit(n) {
			for _, o := range n.Output {
				if o == "" {
					return true
				}
			}
		}
		for _, s := range n.Subgraphs() {
			if hasUnnamedSplit(s) {
				return true
			}
		}
	}
	return false
}

func fillSplits(g *onnx.Graph, count *int) {
	for _, n := range g.Node {
		if isSplit(n) {
			for i, o := range n.Output {
				if o == "" {
					n.Output[i] = "onnxrl/unused/" + strconv.Itoa(*count)
					*count++
				}
			}
		}
		for _, s := range n.Subgraphs() {
			fillSplits(s, count)
		}
	}
}
