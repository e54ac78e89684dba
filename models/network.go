package models

import (
	"fmt"
	"github.com/onnxrl/onnxrl/runtime/glob"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Role says how a parameter changes.
type Role int

// The roles. Trainable parameters receive gradients, and frozen ones do not: they stay as they are,
// or follow others, as target networks do. Buffers are overwritten by the graph's own outputs. A
// base is what adapters belong to: it never changes, and networks with other adapters may share it.
const (
	Trainable Role = iota
	Frozen
	Buffer
	Base
)

// String returns "trainable", "frozen", "buffer" or "base".
func (r Role) String() string {
	switch r {
	case Trainable:
		return "trainable"
	case Frozen:
		return "frozen"
	case Base:
		return "base"
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

// equal reports whether two specs describe the same parameter, whatever its role.
func (s Spec) equal(t Spec) bool { return s.Name == t.Name && slices.Equal(s.Shape, t.Shape) }

// Network is a graph with its parameters as inputs. It is immutable and safe to share.
type Network struct {
	// Model's inputs are the data inputs followed by the parameters in the order of Specs.
	Model *onnx.Model
	// Specs lists the parameters in the order in which the model held them.
	Specs []Spec
	// Inputs and Outputs name the data inputs and the outputs, in graph order.
	Inputs, Outputs []string
	// Constants names the float32 initializers of rank 1 or more that were taken for an exporter's
	// constants and so are no parameters. Buffers names those that the network's code computed
	// once, such as position tables; see the package comment.
	Constants, Buffers []string
	// Notes say what whoever trains the network should know of how it was made, such as what was
	// done to a file that is part of it.
	Notes []string
}

// Options select the parameters of a model and their roles. Patterns are globs in which * matches
// any run of characters and ? any one.
type Options struct {
	// Train limits training to the parameters that match; empty means all. A pattern without
	// wildcards also makes a parameter of a float32 initializer that would be taken for a constant.
	// A pattern that matches nothing is an error.
	Train []string `yaml:"train"`
	// Freeze excludes parameters from training, also those that Train matches. A pattern that
	// matches nothing is an error.
	Freeze []string `yaml:"freeze"`
}

// FromModel finds a model's parameters and makes them inputs. It returns the network and the
// parameters' values, which share memory with m. m is not changed.
func FromModel(m *onnx.Model, o Options) (*Network, map[string]*tensor.Tensor, error) {
	if m.GetGraph() == nil {
		return nil, nil, fmt.Errorf("network from model: the model has no graph")
	}
	uses, kinds := usesOf(m.Graph), declaredKinds(m.Graph)
	var specs []Spec
	var constants, buffers []string
	values := map[string]*tensor.Tensor{}
	for _, p := range m.Graph.Initializer {
		if tensor.DType(p.DataType) != tensor.Float32 {
			continue
		}
		role := Trainable
		switch use := uses[p.Name]; {
		case use.statistics():
			role = Buffer
		case slices.Contains(o.Train, p.Name):
		default:
			kind, err := kindOf(p, use, kinds[p.Name])
			if err != nil {
				return nil, nil, fmt.Errorf("network from model: %w", err)
			}
			switch {
			case kind == isABuffer:
				buffers = append(buffers, p.Name)
			case kind == isAConstant && len(p.Dims) > 0:
				constants = append(constants, p.Name)
			}
			if kind != isAParameter {
				continue
			}
		}
		if role == Trainable && (len(o.Train) > 0 && !glob.MatchAny(o.Train, p.Name) || glob.MatchAny(o.Freeze, p.Name)) {
			role = Frozen
		}
		t, err := onnx.TensorOf(p)
		if err != nil {
			return nil, nil, fmt.Errorf("network from model: %w", err)
		}
		specs = append(specs, Spec{Name: p.Name, Shape: t.Shape(), Role: role})
		values[p.Name] = t
	}
	for _, list := range []struct {
		what     string
		patterns []string
	}{{"train", o.Train}, {"freeze", o.Freeze}} {
		if err := checkPatterns(list.what, list.patterns, specs); err != nil {
			return nil, nil, err
		}
	}
	net, err := WithSpecs(m, specs)
	if err != nil {
		return nil, nil, err
	}
	net.Constants, net.Buffers = constants, buffers
	return net, values, nil
}

// WithSpecs makes inputs of exactly the given parameters, which m must hold as initializers:
// another graph over the parameters of a network, for instance with losses attached. m is not
// changed.
func WithSpecs(m *onnx.Model, specs []Spec) (*Network, error) {
	net := &Network{Specs: specs}
	names := make([]onnx.Value, len(specs))
	for i, s := range specs {
		names[i] = onnx.Value(s.Name)
	}
	// Old files list initializers among the inputs, and a file may give an input a default; neither
	// is a data input.
	for _, v := range m.Graph.Inputs() {
		net.Inputs = append(net.Inputs, v.Name)
	}
	for _, v := range m.Graph.Output {
		net.Outputs = append(net.Outputs, v.Name)
	}
	plain := m.ShallowClone()
	plain.Graph.Input = plain.Graph.Inputs()
	var err error
	if net.Model, err = onnx.InitializersToInputs(plain, names); err != nil {
		return nil, fmt.Errorf("network from model: %w", err)
	}
	return net, nil
}

// checkPatterns reports a pattern that matches no parameter, with the parameters there are.
func checkPatterns(what string, patterns []string, specs []Spec) error {
	for _, pat := range patterns {
		if slices.ContainsFunc(specs, func(s Spec) bool { return glob.Match(pat, s.Name) }) {
			continue
		}
		var names []string
		for _, s := range specs {
			names = append(names, s.Name)
		}
		if len(names) > 12 {
			names = append(names[:12], "…")
		}
		return fmt.Errorf("%s pattern %q matches no parameter; the model has %s", what, pat, strings.Join(names, ", "))
	}
	return nil
}

// Bake returns the model with the given parameter values as initializers: the form that is served.
// Values share memory with what value returns. Every parameter needs a value of its shape.
func (n *Network) Bake(value func(name string) *tensor.Tensor) (*onnx.Model, error) {
	values := make(map[onnx.Value]*tensor.Tensor, len(n.Specs))
	for _, s := range n.Specs {
		t := value(s.Name)
		if t == nil || t.DType() != tensor.Float32 || !slices.Equal(t.Shape(), s.Shape) {
			return nil, fmt.Errorf("bake parameter %q: expected float32%v, got %v", s.Name, s.Shape, t)
		}
		values[onnx.Value(s.Name)] = t
	}
	return onnx.InputsToInitializers(n.Model, values)
}

// Reweigh returns m with the content of its initializers replaced where value returns a tensor.
// That must have the shape of the old content and its type, or float32 for another floating-point
// type, to which it is then rounded. Everything else is as it was. It is how a trained model is
// written back into the form that it came in.
func Reweigh(m *onnx.Model, value func(name string) *tensor.Tensor) (*onnx.Model, error) {
	c := m.ShallowClone()
	for i, old := range c.Graph.Initializer {
		t := value(old.Name)
		if t == nil {
			continue
		}
		t, err := inTypeOf(old, t)
		if err != nil {
			return nil, fmt.Errorf("reweigh %q: %w", old.Name, err)
		}
		p := onnx.ProtoOf(old.Name, t)
		if p.DataType != old.DataType || !slices.Equal(p.Dims, old.Dims) {
			return nil, fmt.Errorf("reweigh %q: it has type %v and shape %v, the new content is %v", old.Name, tensor.DType(old.DataType), old.Dims, t)
		}
		p.DocString, p.MetadataProps = old.DocString, old.MetadataProps
		c.Graph.Initializer[i] = p
	}
	return c, nil
}
