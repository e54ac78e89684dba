package models

import (
	"fmt"
	"slices"
	"strings"

	"onnxrl/runtime/autodiff"
	"onnxrl/runtime/onnx"
	"onnxrl/runtime/tensor"
)

// Role says how a parameter changes.
type Role int

// The roles. Trainable parameters receive gradients; frozen ones never change and may be shared; buffers are overwritten by the graph's own outputs.
const (
	Trainable Role = iota
	Frozen
	Buffer
)

// String returns "trainable", "frozen" or "buffer".
func (r Role) String() string {
	switch r {
	case Trainable:
		return "trainable"
	case Frozen:
		return "frozen"
	}
	return "buffer"
}

// Spec describes one float32 parameter.
type Spec struct {
	Name  string
	Shape []int
	Role  Role
}

// Len returns the number of elements.
func (s Spec) Len() int {
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	return n
}

// Network is a graph with its parameters as inputs. It is immutable and safe to share.
type Network struct {
	// Model's inputs are the data inputs followed by the parameters in the order of Specs.
	Model *onnx.Model
	// Specs lists the parameters in the order in which the model held them.
	Specs []Spec
	// Inputs and Outputs name the data inputs and the outputs, in graph order.
	Inputs, Outputs []string
}

// Options select the parameters of a model and their roles. Patterns are globs in which * matches any run of characters.
type Options struct {
	// Train limits training to the parameters that match; empty means all candidates. A pattern that matches nothing is an error.
	Train []string `yaml:"train"`
	// Freeze excludes parameters from training, also those that Train matches. A pattern that matches nothing is an error.
	Freeze []string `yaml:"freeze"`
}

// FromModel finds a model's parameters and makes them inputs. It returns the network and the parameters' values, which share memory with m. m is not changed.
func FromModel(m *onnx.Model, o Options) (*Network, map[string]*tensor.Tensor, error) {
	if m.GetGraph() == nil {
		return nil, nil, fmt.Errorf("network from model: the model has no graph")
	}
	c := m.ShallowClone()
	buffers := runningStatistics(c.Graph)
	net := &Network{Model: c}
	values := map[string]*tensor.Tensor{}
	declared := map[string]bool{}
	for _, t := range c.Graph.Initializer {
		declared[t.Name] = true
	}
	// Old files list initializers among the inputs, and a file may give an input a default; both are inputs only once here.
	c.Graph.Input = slices.DeleteFunc(c.Graph.Input, func(v *onnx.ValueInfo) bool { return declared[v.Name] })
	for _, v := range c.Graph.Input {
		net.Inputs = append(net.Inputs, v.Name)
	}
	for _, v := range c.Graph.Output {
		net.Outputs = append(net.Outputs, v.Name)
	}
	var rest []*onnx.TensorProto
	for _, p := range c.Graph.Initializer {
		isBuffer := buffers[p.Name]
		if !isBuffer && !isParameter(p) || tensor.DType(p.DataType) != tensor.Float32 {
			rest = append(rest, p)
			continue
		}
		t, err := onnx.TensorOf(p)
		if err != nil {
			return nil, nil, fmt.Errorf("network from model: %w", err)
		}
		role := Trainable
		switch {
		case isBuffer:
			role = Buffer
		case len(o.Train) > 0 && !autodiff.MatchAny(o.Train, p.Name), autodiff.MatchAny(o.Freeze, p.Name):
			role = Frozen
		}
		net.Specs = append(net.Specs, Spec{Name: p.Name, Shape: t.Shape(), Role: role})
		values[p.Name] = t
	}
	if err := checkPatterns("train", o.Train, net.Specs); err != nil {
		return nil, nil, err
	}
	if err := checkPatterns("freeze", o.Freeze, net.Specs); err != nil {
		return nil, nil, err
	}
	c.Graph.Initializer = rest
	for _, s := range net.Specs {
		c.Graph.Input = append(c.Graph.Input, onnx.NewValueInfo(onnx.Value(s.Name), onnx.TypeOf(tensor.Float32, s.Shape...)))
	}
	return net, values, nil
}

// checkPatterns reports a pattern that matches no parameter, with the parameters there are.
func checkPatterns(what string, patterns []string, specs []Spec) error {
	for _, pat := range patterns {
		ok := slices.ContainsFunc(specs, func(s Spec) bool { return autodiff.Match(pat, s.Name) })
		if !ok {
			var names []string
			for _, s := range specs {
				names = append(names, s.Name)
			}
			if len(names) > 12 {
				names = append(names[:12], "…")
			}
			return fmt.Errorf("%s pattern %q matches no parameter; the model has %s", what, pat, strings.Join(names, ", "))
		}
	}
	return nil
}

// isParameter tells weights from an exporter's constants by rank and name.
func isParameter(p *onnx.TensorProto) bool {
	if len(p.Dims) == 0 {
		return false
	}
	last := p.Name[strings.LastIndexByte(p.Name, '/')+1:]
	return !strings.HasPrefix(last, "Constant") && !strings.HasPrefix(p.Name, "const/")
}

// runningStatistics returns the names of running means and variances in a graph and its sub-graphs.
func runningStatistics(g *onnx.Graph) map[string]bool {
	out := map[string]bool{}
	for _, n := range g.Node {
		if n.OpType == "BatchNormalization" && onnx.NormalizeDomain(n.Domain) == "" {
			out[string(n.In(3))] = true
			out[string(n.In(4))] = true
		}
		for _, s := range n.Subgraphs() {
			for k := range runningStatistics(s) {
				out[k] = true
			}
		}
	}
	return out
}

// Bake returns the model with the given parameter values as initializers: the form that is served. Values share memory with v. Every parameter needs a value of its shape.
func (n *Network) Bake(value func(name string) *tensor.Tensor) (*onnx.Model, error) {
	m := n.Model.ShallowClone()
	isParam := map[string]bool{}
	for _, s := range n.Specs {
		t := value(s.Name)
		if t == nil || t.DType() != tensor.Float32 || !slices.Equal(t.Shape(), s.Shape) {
			return nil, fmt.Errorf("bake parameter %q: expected float32%v, got %v", s.Name, s.Shape, t)
		}
		isParam[s.Name] = true
		m.Graph.Initializer = append(m.Graph.Initializer, onnx.ProtoOf(s.Name, t))
	}
	m.Graph.Input = slices.DeleteFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return isParam[v.Name] })
	return m, nil
}
