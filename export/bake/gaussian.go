package bake

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Gaussian says that an output is an action that a normal distribution is made into, by squashing,
// rescaling or clipping.
type Gaussian struct {
	// Output is float32 [batch, …], what the graph makes of the mean.
	Output string
	// Mean and LogStd are float32 outputs of equal shape [batch, n], of the distribution before it
	// is made an action.
	Mean, LogStd string
}

// SampleGaussian returns m with a way to draw actions: another input, NoiseInput, of the form of
// the mean, and another output, SampleOutput, of the form of the action, as last. The noise is
// drawn from the standard normal distribution; with zeros the sample is the action. What lies
// between the mean and the action in the graph is there twice, the second time behind mean +
// exp(log_std)·noise, so it may be anything that depends on the distribution through its mean
// alone. A policy with gSDE keeps its noise for several steps; here every row has its own, with the
// same deviation.
func SampleGaussian(m *onnx.Model, g Gaussian) (*onnx.Model, error) {
	out, err := g.sample(m)
	if err != nil {
		return nil, fmt.Errorf("sample %q by %q and %q: %w", g.Output, g.Mean, g.LogStd, err)
	}
	return out, nil
}

func (g Gaussian) sample(m *onnx.Model) (*onnx.Model, error) {
	action, mean, logStd := outputType(m, g.Output), outputType(m, g.Mean), outputType(m, g.LogStd)
	if action.DType != tensor.Float32 || mean.DType != tensor.Float32 || logStd.DType != tensor.Float32 || len(mean.Dims) != 2 || !slices.Equal(mean.Dims, logStd.Dims) {
		return nil, fmt.Errorf("they are %v, %v and %v, expected float32, the latter two of one shape [batch n]", action, mean, logStd)
	}
	if err := free(m); err != nil {
		return nil, err
	}
	// An output may be another name of the value that the action is made of.
	origin := source(m.Graph, g.Mean)
	path := between(m.Graph, origin, g.Output)
	if g.Mean != g.Output && len(path) == 0 {
		return nil, errors.New("the action does not depend on the mean")
	}
	m = m.ShallowClone()
	b := onnx.Extend(m)
	noise := b.Input(NoiseInput, mean)
	outer := b.SetScope(SampleOutput + "/")
	drawn := b.Op("Add", []onnx.Value{onnx.Value(g.Mean), b.Op("Mul", []onnx.Value{b.Op("Exp", []onnx.Value{onnx.Value(g.LogStd)}), noise})})
	copies := map[string]string{origin: string(drawn), g.Mean: string(drawn)}
	for _, n := range path {
		c := n.ShallowClone()
		c.Name = string(b.Fresh(SampleOutput + "/" + n.OpType))
		for i, in := range c.Input {
			if to, ok := copies[in]; ok {
				c.Input[i] = to
			}
		}
		for i, out := range c.Output {
			if out != "" {
				copies[out] = string(b.Fresh(SampleOutput + "/" + out))
				c.Output[i] = copies[out]
			}
		}
		b.Append(c)
	}
	b.SetScope(outer)
	b.Output(b.Rename(onnx.Value(copies[g.Output]), SampleOutput), action)
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	m.SetMeta(MetaNoise, "normal")
	describeSquash(m, path)
	return m, onnx.Check(m)
}

// source goes back from a value through nodes that only rename it.
func source(g *onnx.Graph, v string) string {
	for {
		i := slices.IndexFunc(g.Node, func(n *onnx.Node) bool { return n.OpType == "Identity" && n.Output[0] == v })
		if i < 0 {
			return v
		}
		v = g.Node[i].Input[0]
	}
}

// between lists the nodes that depend on one value and lead to another, in the graph's order.
func between(g *onnx.Graph, from, to string) []*onnx.Node {
	behind := map[string]bool{from: true}
	var down []*onnx.Node
	for _, n := range g.Node {
		if slices.ContainsFunc(n.Input, func(in string) bool { return behind[in] }) {
			down = append(down, n)
			for _, out := range n.Output {
				behind[out] = out != ""
			}
		}
	}
	needed := map[string]bool{to: true}
	var path []*onnx.Node
	for _, n := range slices.Backward(down) {
		if slices.ContainsFunc(n.Output, func(out string) bool { return needed[out] }) {
			path = append(path, n)
			for _, in := range n.Input {
				needed[in] = true
			}
		}
	}
	slices.Reverse(path)
	return path
}
