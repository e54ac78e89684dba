package models

import (
	"errors"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// otherFloat reports whether a type is one of those that [InFloat32] replaces.
func otherFloat(d tensor.DType) bool {
	return d == tensor.Float64 || d == tensor.Float16 || d == tensor.BFloat16
}

// InFloat32 returns the model that computes in float32 what a float64, float16 or bfloat16 model
// computes, and reports whether anything had to change. A model whose parameters, inputs and
// outputs are float32 is returned as it is, whatever its nodes compute with in between.
//
// Training happens in this form. Weights in float32 take up updates that half precision would round
// away. Gradients need no loss scaling, because nothing overflows or vanishes that float32 can
// hold. Every engine and every gradient rule has the type. Contents that float32 cannot hold become
// the nearest finite number other than zero.
func InFloat32(m *onnx.Model) (_ *onnx.Model, changed bool, err error) {
	needed, err := needsFloat32(m)
	if err != nil || !needed {
		return m, false, err
	}
	c := m.ShallowClone()
	for i, f := range c.Functions {
		c.Functions[i] = proto.Clone(f).(*onnx.Function)
	}
	err = c.EachGraph(func(g *onnx.Graph) error {
		for i, p := range g.Initializer {
			var err error
			if g.Initializer[i], err = protoInFloat32(p); err != nil {
				return err
			}
		}
		for _, s := range g.SparseInitializer {
			if otherFloat(tensor.DType(s.GetValues().GetDataType())) {
				return fmt.Errorf("sparse initializer %q is %v, expected float32", s.Values.Name, tensor.DType(s.Values.DataType))
			}
		}
		for _, list := range [][]*onnx.ValueInfo{g.Input, g.Output, g.ValueInfo} {
			for _, v := range list {
				typeInFloat32(v)
			}
		}
		return nodesInFloat32(g.Node)
	})
	for _, f := range c.Functions {
		for _, v := range f.ValueInfo {
			typeInFloat32(v)
		}
		err = errors.Join(err, nodesInFloat32(f.Node))
	}
	if err != nil {
		return nil, false, fmt.Errorf("in float32: %w", err)
	}
	return c, true, nil
}

// nodesInFloat32 changes the attributes of nodes.
func nodesInFloat32(nodes []*onnx.Node) error {
	for _, n := range nodes {
		for i, a := range n.Attribute {
			var err error
			if n.Attribute[i], err = attributeInFloat32(a); err != nil {
				return fmt.Errorf("%s: %w", n.Describe(), err)
			}
		}
	}
	return nil
}

// needsFloat32 reports whether a parameter, an input or an output is of another floating-point
// type.
func needsFloat32(m *onnx.Model) (bool, error) {
	g := m.Graph
	for _, list := range [][]*onnx.ValueInfo{g.Inputs(), g.Output} {
		for _, v := range list {
			if t, ok := v.TensorType(); ok && otherFloat(t.DType) {
				return true, nil
			}
		}
	}
	var uses map[string]use
	for _, p := range g.Initializer {
		if !otherFloat(tensor.DType(p.DataType)) {
			continue
		}
		if uses == nil {
			uses = usesOf(g)
		}
		k, err := kindOf(p, uses[p.Name], "")
		if err != nil {
			return false, fmt.Errorf("initializer %q: %w", p.Name, err)
		}
		if k == isAParameter {
			return true, nil
		}
	}
	return false, nil
}

// protoInFloat32 returns a tensor in float32, or p itself when it is of none of the other types.
func protoInFloat32(p *onnx.TensorProto) (*onnx.TensorProto, error) {
	if !otherFloat(tensor.DType(p.DataType)) {
		return p, nil
	}
	t, err := onnx.TensorOf(p)
	if err != nil {
		return nil, fmt.Errorf("initializer %q: %w", p.Name, err)
	}
	x, err := tensor.ToFloat32(t)
	if err != nil {
		return nil, fmt.Errorf("initializer %q: %w", p.Name, err)
	}
	if t.DType() == tensor.Float64 {
		for i, v := range t.Float64s() {
			x.Float32s()[i] = nearestFloat32(v)
		}
	}
	out := onnx.ProtoOf(p.Name, x)
	out.DocString, out.MetadataProps = p.DocString, p.MetadataProps
	return out, nil
}

// nearestFloat32 rounds so that finite numbers stay finite, as masks must, and numbers other than
// zero stay other than zero, as divisors must.
func nearestFloat32(v float64) float32 {
	f := float32(v)
	switch {
	case math.IsInf(float64(f), 0) && !math.IsInf(v, 0):
		return float32(math.Copysign(math.MaxFloat32, v))
	case f == 0 && v != 0:
		return float32(math.Copysign(0x1p-126, v))
	}
	return f
}

// typeInFloat32 changes the declared type of a tensor.
func typeInFloat32(v *onnx.ValueInfo) {
	if t, ok := v.TensorType(); ok && otherFloat(t.DType) {
		t.DType = tensor.Float32
		v.Type = onnx.NewValueInfo("", t).Type
	}
}

// typeAttributes name the attributes that hold the number of a type.
var typeAttributes = map[string]bool{"to": true, "dtype": true, "output_datatype": true, "output_dtype": true, "stash_type": true, "softmax_precision": true}

// attributeInFloat32 returns an attribute that says float32 where it said another of the types, or
// a itself.
func attributeInFloat32(a *onnx.Attribute) (*onnx.Attribute, error) {
	switch {
	case a.T != nil && otherFloat(tensor.DType(a.T.DataType)):
		p, err := protoInFloat32(a.T)
		if err != nil {
			return nil, err
		}
		return &onnx.Attribute{Name: a.Name, Type: a.Type, T: p}, nil
	case typeAttributes[a.Name] && a.Type == onnx.AttributeProto_INT && otherFloat(tensor.DType(a.I)):
		return onnx.AttrInt(a.Name, int(tensor.Float32)), nil
	}
	return a, nil
}

// inTypeOf returns float32 content in the type of the initializer that it replaces, rounded to the
// nearest. Elements of a float64 initializer that have not changed keep all their digits.
func inTypeOf(old *onnx.TensorProto, x *tensor.Tensor) (*tensor.Tensor, error) {
	d := tensor.DType(old.DataType)
	if x.DType() != tensor.Float32 || !otherFloat(d) {
		return x, nil
	}
	out, err := tensor.FromFloat32(x, d)
	if err != nil || d != tensor.Float64 {
		return out, err
	}
	t, err := onnx.TensorOf(old)
	if err != nil {
		return nil, err
	}
	if t.Len() == out.Len() {
		for i, v := range t.Float64s() {
			if nearestFloat32(v) == x.Float32s()[i] {
				out.Float64s()[i] = v
			}
		}
	}
	return out, nil
}
