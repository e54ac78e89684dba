package official

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Round joins executor and coordinator, which may be nil, into one graph. It reads what the two
// read, for scml.Threads negotiations, and its output action, float64 [Threads, size], is what
// package scml computes of theirs: residuals, 0 where they are no numbers and cut to −1 … 1,
// times weights, which are 1 more than what the coordinator says. Without a coordinator weights are
// 1. The models are not changed.
func Round(first, second *onnx.Model, size int) (*onnx.Model, error) {
	m, err := round(first, second, size)
	if err != nil {
		return nil, fmt.Errorf("the graph of a round: %w", err)
	}
	return m, nil
}

func round(first, second *onnx.Model, size int) (*onnx.Model, error) {
	layers := []struct {
		prefix string
		model  *onnx.Model
		wires  map[onnx.Value]onnx.Value
	}{{prefix: "executor/", model: first}, {prefix: "coordinator/", model: second}}
	if second == nil {
		layers = layers[:1]
	}
	opset := onnx.DefaultOpset
	for _, l := range layers {
		opset = max(opset, l.model.Opset(onnx.DomainStandard))
	}
	// A graph that only passes the inputs on comes first, so that both layers can read them, each
	// in its own form.
	b := onnx.NewBuilder("round", opset)
	inputs, given := map[string]onnx.Value{}, []onnx.Value{}
	for i := range layers {
		l := &layers[i]
		m, err := onnx.Upgrade(l.model, opset)
		if err == nil {
			m, err = bound(m, scml.Threads)
		}
		if err != nil {
			return nil, fmt.Errorf("the %s: %w", strings.TrimSuffix(l.prefix, "/"), err)
		}
		m.MetadataProps, m.Graph.MetadataProps = nil, nil
		l.model, l.wires = m, map[onnx.Value]onnx.Value{}
		for _, v := range m.Graph.Inputs() {
			t, _ := v.TensorType()
			shape := make([]int, len(t.Dims))
			for k, d := range t.Dims {
				shape[k] = d.Value
			}
			if inputs[v.Name] == "" {
				inputs[v.Name] = b.Input(v.Name, t)
			}
			x := b.Rename(b.Op("Reshape", []onnx.Value{inputs[v.Name], b.Ints(shape...)}), l.prefix+"given/"+v.Name)
			b.Output(x, t)
			l.wires[onnx.Value(v.Name)], given = x, append(given, x)
		}
	}
	m, err := b.Model()
	if err != nil {
		return nil, err
	}
	for i, l := range layers {
		o := onnx.ComposeOptions{PrefixB: l.prefix, Name: "round"}
		if i == 0 {
			o.KeepOutputs = given
		}
		if m, err = onnx.Compose(m, l.model, l.wires, o); err != nil {
			return nil, err
		}
	}
	b = onnx.Extend(m)
	// number is a layer's output in float64, 0 where it is no number and cut to −1 … 1.
	number := func(prefix string, size int) onnx.Value {
		x := b.Op("Reshape", []onnx.Value{onnx.Value(prefix + agents.ActionOutput), b.Ints(scml.Threads, size)})
		x = b.Op("Where", []onnx.Value{b.Op("IsNaN", []onnx.Value{x}), b.Float(0), x})
		return b.Op("Clip", []onnx.Value{b.Op("Cast", []onnx.Value{x}, to(tensor.Float64)), b.Const(tensor.Scalar(-1.0)), b.Const(tensor.Scalar(1.0))})
	}
	action := number("executor/", size)
	if second != nil {
		weight := b.Op("Add", []onnx.Value{number("coordinator/", 1), b.Const(tensor.Scalar(1.0))})
		// The weight of a thread is a float32.
		weight = b.Op("Cast", []onnx.Value{b.Op("Cast", []onnx.Value{weight}, to(tensor.Float32))}, to(tensor.Float64))
		action = b.Op("Mul", []onnx.Value{weight, action})
	}
	b.Output(b.Rename(action, agents.ActionOutput), onnx.TensorType{DType: tensor.Float64, Ranked: true, Dims: []onnx.Dim{onnx.Known(scml.Threads), onnx.Known(size)}})
	if m, err = b.Model(); err != nil {
		return nil, err
	}
	if m, err = onnx.Prune(m, agents.ActionOutput); err != nil {
		return nil, err
	}
	return m, onnx.Check(m)
}

func to(d tensor.DType) *onnx.Attribute { return onnx.AttrInt("to", int(d)) }

// bound gives the batch of a model its number.
func bound(m *onnx.Model, rows int) (*onnx.Model, error) {
	bind := map[string]int{}
	for _, v := range m.Graph.Inputs() {
		if t, ok := v.TensorType(); ok && len(t.Dims) > 0 && !t.Dims[0].IsKnown() && t.Dims[0].Param != "" {
			bind[t.Dims[0].Param] = rows
		}
	}
	return onnx.BindDims(m, bind)
}

// compared is how many times a joined graph is compared with its parts.
const compared = 32

// Tolerance is how far the joined graph may be from its parts: an engine fuses other nodes of it.
const Tolerance = 1e-5

// compare runs the graph of a round beside those of the layers, on inputs that are drawn, and
// returns the largest difference.
func compare(ctx context.Context, c engine.Compiler, joined, first, second *onnx.Model, size int) (worst float64, err error) {
	open := func(m *onnx.Model) (p *served.Policy) {
		if m != nil && err == nil {
			p, err = served.New(ctx, m, c, scml.Threads)
		}
		return p
	}
	whole, executes, weighs := open(joined), open(first), open(second)
	policies := slices.DeleteFunc([]*served.Policy{whole, executes, weighs}, func(p *served.Policy) bool { return p == nil })
	defer func() {
		for _, p := range policies {
			err = errors.Join(err, p.Close())
		}
	}()
	if err != nil {
		return 0, err
	}
	draws := rng.New(1).Split("round").Stream()
	for range compared {
		for _, name := range whole.Inputs() {
			to := whole.Input(name).Float32s()
			for i := range to {
				to[i] = float32(2*draws.Float64() - 1)
			}
		}
		for _, p := range policies {
			for _, name := range p.Inputs() {
				copy(p.Input(name).Float32s(), whole.Input(name).Float32s())
			}
			if err := p.Run(); err != nil {
				return 0, err
			}
		}
		got, residuals := whole.Output(agents.ActionOutput).Float64s(), executes.Output(agents.ActionOutput).Float32s()
		for i, x := range got {
			want := scml.Cut(residuals[i])
			if weighs != nil {
				want *= float64(scml.Weight(weighs.Output(agents.ActionOutput).Float32s()[i/size]))
			}
			worst = math.Max(worst, math.Abs(x-want)) // NaN stays.
		}
	}
	if !(worst <= Tolerance) {
		return worst, fmt.Errorf("the graph of a round differs from its layers by %g, at most %g was expected", worst, Tolerance)
	}
	return worst, nil
}
