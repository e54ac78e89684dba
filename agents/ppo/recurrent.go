package ppo

import (
	"fmt"
	"math"

	"onnxrl/agents"
	"onnxrl/agents/network"
	"onnxrl/models/layer"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// keepInput is 0 where an episode begins, so that the memory is forgotten, and else 1: float32 [batch, length].
const keepInput = "ppo.keep"

// memory appends the LSTM layers of a graph: one step of them, whose states are inputs and outputs, or so many that gradients go back through.
type memory struct {
	c Recurrent
	// length is 0 for one step.
	length int
	keep   []onnx.Value
	// names and next are the states and their new values, in the order of the graph; all are [batch, Hidden].
	names []string
	next  []onnx.Value
}

// newMemory declares the inputs that all states have in common.
func newMemory(g *layer.Graph, c Recurrent, length int) *memory {
	m := &memory{c: c, length: length}
	if length > 0 {
		m.keep = g.Split(g.Batched(keepInput, tensor.Float32, length), 1, ones(length)...)
	}
	return m
}

func ones(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = 1
	}
	return list
}

// layers appends all layers over x [rows, D]. owner precedes the names of the states.
func (m *memory) layers(g *layer.Graph, owner string, x onnx.Value) onnx.Value {
	for i := range m.c.Layers {
		x = m.layer(g.In(fmt.Sprintf("lstm%d", i)), fmt.Sprintf("%s_%%s%d", owner, i), x)
	}
	return x
}

// layer appends one layer (Hochreiter & Schmidhuber 1997, with a forget gate): i, f, o = σ(·), c = f∘c + i∘tanh(·), h = o∘tanh(c). What x contributes to the gates is computed for all steps at once.
func (m *memory) layer(g *layer.Graph, name string, x onnx.Value) onnx.Value {
	n := m.c.Hidden
	// PyTorch's initialisation of its LSTM.
	init := layer.Uniform(1 / math.Sqrt(float64(n)))
	h, c := m.state(g, fmt.Sprintf(name, "h")), m.state(g, fmt.Sprintf(name, "c"))
	pre := g.LinearBias("input", x, 4*n, init, init)
	recurrent := g.In("recurrent").Param("weight", init, 4*n, n)
	step := func(pre, h, c onnx.Value) (onnx.Value, onnx.Value) {
		gates := g.Split(g.Op("Gemm", []onnx.Value{h, recurrent, pre}, onnx.AttrInt("transB", 1)), 1, 3*n, n)
		ifo := g.Split(g.Activate("sigmoid", gates[0]), 1, n, n, n)
		c = g.Add(g.Mul(ifo[1], c), g.Mul(ifo[0], g.Activate("tanh", gates[1])))
		return g.Mul(ifo[2], g.Activate("tanh", c)), c
	}
	if m.length == 0 {
		h, c = step(pre, h, c)
		m.next = append(m.next, h, c)
		return h
	}
	steps := g.Split(g.Reshape(pre, -1, m.length, 4*n), 1, ones(m.length)...)
	out := make([]onnx.Value, m.length)
	for t := range steps {
		h, c = step(g.Squeeze(steps[t], 1), g.Mul(h, m.keep[t]), g.Mul(c, m.keep[t]))
		out[t] = g.Unsqueeze(h, 1)
	}
	return g.Reshape(g.Concat(1, out...), -1, n)
}

// state declares the input of a state.
func (m *memory) state(g *layer.Graph, name string) onnx.Value {
	m.names = append(m.names, name)
	return g.Observation(agents.StatePrefix+name, m.c.Hidden)
}

// outputs makes the new values of all states outputs of the graph.
func (m *memory) outputs(g *layer.Graph) {
	for i, v := range m.next {
		g.Output(agents.NextStatePrefix+m.names[i], g.Op("Identity", []onnx.Value{v}))
	}
}

// refuse says what a memory cannot be combined with.
func (c Recurrent) refuse(f *network.Frame, rounds int) error {
	switch {
	case c.Kind == None:
		return nil
	case f.Assets > 0:
		return fmt.Errorf("recurrent: %s is for observations that are not windows of assets, and %q of %s is one of %d", c.Kind, f.Spec.Observation[f.Series].Name, f.Spec.Name, f.Assets)
	case c.Length > rounds:
		return fmt.Errorf("recurrent.length: sequences of %d rounds in rollouts of %d", c.Length, rounds)
	}
	return nil
}

// rounds returns the length of sequences in rollouts of so many rounds; 0 without a memory.
func (c Recurrent) rounds(rollout int) int {
	if c.Kind == None {
		return 0
	}
	if c.Length == 0 {
		return rollout
	}
	return c.Length
}
