package ppo

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// keepInput is 0 where an episode begins, so that the memory is forgotten, and else 1: float32
// [batch, length].
const keepInput = "ppo.keep"

// recurrence appends the LSTM layers of a graph: one step of them, whose states are inputs and
// outputs, or so many that gradients go back through.
type recurrence struct {
	c Recurrent
	// length is 0 for one step.
	length int
	keep   []onnx.Value
	// states and next are the states and their new values, in the order of the graph.
	states []models.State
	next   []onnx.Value
}

// newRecurrence declares the inputs that all states have in common.
func newRecurrence(g *layer.Graph, c Recurrent, length int) *recurrence {
	m := &recurrence{c: c, length: length}
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
func (m *recurrence) layers(g *layer.Graph, owner string, x onnx.Value) onnx.Value {
	for i := range m.c.Layers {
		x = m.layer(g.In(fmt.Sprintf("lstm%d", i)), fmt.Sprintf("%s_%%s%d", owner, i), x)
	}
	return x
}

// layer appends one layer (Hochreiter & Schmidhuber 1997, with a forget gate): i, f, o = σ(·), c =
// f∘c + i∘tanh(·), h = o∘tanh(c). What x contributes to the gates is computed for all steps at
// once.
func (m *recurrence) layer(g *layer.Graph, name string, x onnx.Value) onnx.Value {
	n := m.c.Hidden
	// PyTorch's initialisation of its LSTM.
	init := layer.Uniform(1 / math.Sqrt(float64(n)))
	h, c := m.state(g, models.ZeroState(fmt.Sprintf(name, "h"), n)), m.state(g, models.ZeroState(fmt.Sprintf(name, "c"), n))
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

// state declares the input of a state, [batch, shape…].
func (m *recurrence) state(g *layer.Graph, s models.State) onnx.Value {
	m.states = append(m.states, s)
	return g.Observation(s.Input, s.Shape...)
}

// policy appends a user-supplied policy that has a memory: the model for one step, or once for each
// of a sequence, with the states that it gave the step before.
func (m *recurrence) policy(g *layer.Graph, t *network.Torso, in network.Inputs, sde bool, width int) (network.Features, error) {
	var states []onnx.Value
	for _, s := range t.PolicyStates() {
		states = append(states, m.state(g, s))
	}
	if m.length == 0 {
		z, next, err := t.PolicyStep(g, in, states, sde, width)
		m.next = append(m.next, next...)
		return z, err
	}
	steps := make([]network.Inputs, m.length)
	for k := range steps {
		steps[k].Obs = make([]onnx.Value, len(in.Obs))
	}
	for i, x := range in.Obs {
		if !t.PolicyReads(i) {
			continue
		}
		for k, step := range m.steps(g, x) {
			steps[k].Obs[i] = step
		}
	}
	if in.Mask != "" {
		for k, step := range m.steps(g, in.Mask) {
			steps[k].Mask = step
		}
	}
	var given, whole []onnx.Value
	for k, step := range steps {
		for i, s := range states {
			states[i] = g.Mul(s, g.Reshape(m.keep[k], append([]int{-1}, ones(len(g.Dims(s))-1)...)...))
		}
		z, next, err := t.PolicyStep(g, step, states, sde, width)
		if err != nil {
			return z, err
		}
		given, states = append(given, g.Unsqueeze(z.Given, 1)), slices.Clone(next)
		if z.Pooled != "" {
			whole = append(whole, g.Unsqueeze(z.Pooled, 1))
		}
		// The first step makes the parameters.
		g = g.Again()
	}
	z := network.Features{Given: g.Reshape(g.Concat(1, given...), -1, width)}
	if len(whole) > 0 {
		z.Pooled = g.Reshape(g.Concat(1, whole...), -1, g.Extent(whole[0], 2))
	}
	return z, g.Err()
}

// steps returns the rows [batch·length, …] of a sequence as one value [batch, …] for each step.
func (m *recurrence) steps(g *layer.Graph, x onnx.Value) []onnx.Value {
	shape := []int{-1, m.length}
	for i := range g.Dims(x)[1:] {
		shape = append(shape, g.Extent(x, 1+i))
	}
	parts := g.Split(g.Reshape(x, shape...), 1, ones(m.length)...)
	for k, p := range parts {
		parts[k] = g.Squeeze(p, 1)
	}
	return parts
}

// outputs makes the new values of all states outputs of the graph.
func (m *recurrence) outputs(g *layer.Graph) {
	for i, v := range m.next {
		g.Output(m.states[i].Output, g.Op("Identity", []onnx.Value{v}))
	}
}

// refuseMemory says what a memory cannot be combined with.
func (c Config) refuseMemory(t *network.Torso) error {
	f, r, own := t.Frame(), c.Recurrent, t.PolicyStates()
	switch {
	case r.Kind == None && len(own) == 0:
		return nil
	case r.Kind != None && t.HasPolicy() && len(own) == 0:
		return fmt.Errorf("recurrent.kind: %s, but the user-supplied policy has no memory: no inputs %s…", r.Kind, models.StatePrefix)
	case r.Kind != None && t.HasPolicy() && r.Critic == Shared:
		return fmt.Errorf("recurrent.critic: %s, but what the user-supplied policy remembers cannot be read by the value: %s gives the value %s layers of its own, and recurrent.kind: %s none", Shared, Separate, r.Kind, None)
	case r.Kind != None && f.Assets+f.Among > 0:
		return fmt.Errorf("recurrent: %s is for observations that are not windows of assets, and %q of %s is one of %d", r.Kind, f.Spec.Observation[f.Series].Name, f.Spec.Name, f.Assets+f.Among)
	case r.Length > c.NSteps:
		return fmt.Errorf("recurrent.length: sequences of %d rounds in rollouts of %d", r.Length, c.NSteps)
	}
	return nil
}

// rounds returns the length of sequences in rollouts of so many rounds.
func (r Recurrent) rounds(rollout int) int {
	if r.Length == 0 {
		return rollout
	}
	return r.Length
}
