package onnx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Dim is one extent of a shape: known (Value ≥ 0), symbolic (Value < 0 and a Param naming it) or
// unknown (Value < 0, no Param).
type Dim struct {
	Value int
	Param string
}

// Known makes a known extent.
func Known(v int) Dim { return Dim{Value: v} }

// Symbol makes a symbolic extent; the empty name is the unknown extent.
func Symbol(name string) Dim { return Dim{Value: -1, Param: name} }

// IsKnown reports whether the extent is a number.
func (d Dim) IsKnown() bool { return d.Value >= 0 }

// String prints the number, the symbol, or "?".
func (d Dim) String() string {
	switch {
	case d.Value >= 0:
		return strconv.Itoa(d.Value)
	case d.Param != "":
		return d.Param
	}
	return "?"
}

// TensorType is what is known of a value: element type, and shape when Ranked. DType Undefined
// means the element type is not known.
type TensorType struct {
	DType  tensor.DType
	Ranked bool
	Dims   []Dim
}

// TypeOf makes a TensorType of known extents.
func TypeOf(d tensor.DType, shape ...int) TensorType {
	t := TensorType{DType: d, Ranked: true, Dims: make([]Dim, len(shape))}
	for i, v := range shape {
		t.Dims[i] = Known(v)
	}
	return t
}

// Static returns the extents when all are known.
func (t TensorType) Static() ([]int, bool) {
	if !t.Ranked {
		return nil, false
	}
	out := make([]int, len(t.Dims))
	for i, d := range t.Dims {
		if !d.IsKnown() {
			return nil, false
		}
		out[i] = d.Value
	}
	return out, true
}

// Equal compares element type and every extent, symbols by name; two unknown extents are not equal.
func (t TensorType) Equal(o TensorType) bool {
	return t.DType == o.DType && t.Ranked == o.Ranked && slices.EqualFunc(t.Dims, o.Dims, func(a, b Dim) bool {
		return a == b && (a.IsKnown() || a.Param != "")
	})
}

// String prints for instance "float32[batch,17]" or "int64[...]" where the rank is not known.
func (t TensorType) String() string {
	if !t.Ranked {
		return t.DType.String() + "[...]"
	}
	parts := make([]string, len(t.Dims))
	for i, d := range t.Dims {
		parts[i] = d.String()
	}
	return t.DType.String() + "[" + strings.Join(parts, ",") + "]"
}

// TensorType returns the tensor type that a value declares, and whether it declares one: sequences,
// maps, optionals and sparse tensors do not.
func (v *ValueInfoProto) TensorType() (TensorType, bool) {
	tt := v.GetType().GetTensorType()
	if tt == nil {
		return TensorType{}, false
	}
	out := TensorType{DType: tensor.DType(tt.ElemType)}
	if tt.Shape != nil {
		out.Ranked = true
		out.Dims = make([]Dim, len(tt.Shape.Dim))
		for i, d := range tt.Shape.Dim {
			switch x := d.GetValue().(type) {
			case *TensorShapeProto_Dimension_DimValue:
				out.Dims[i] = Symbol("")
				if x.DimValue >= 0 {
					out.Dims[i] = Known(int(x.DimValue))
				}
			case *TensorShapeProto_Dimension_DimParam:
				out.Dims[i] = Symbol(x.DimParam)
			default:
				out.Dims[i] = Symbol("")
			}
		}
	}
	return out, true
}

// NewValueInfo declares a value of tensor type.
func NewValueInfo(name Value, t TensorType) *ValueInfo {
	tt := &TypeProto_Tensor{ElemType: int32(t.DType)}
	if t.Ranked {
		tt.Shape = &TensorShapeProto{}
		for _, d := range t.Dims {
			pd := &TensorShapeProto_Dimension{}
			if d.IsKnown() {
				pd.Value = &TensorShapeProto_Dimension_DimValue{DimValue: int64(d.Value)}
			} else if d.Param != "" {
				pd.Value = &TensorShapeProto_Dimension_DimParam{DimParam: d.Param}
			}
			tt.Shape.Dim = append(tt.Shape.Dim, pd)
		}
	}
	return &ValueInfo{Name: string(name), Type: &TypeProto{Value: &TypeProto_TensorType{TensorType: tt}}}
}

// Bind returns the type with every symbol found in env replaced by its number. It is how a batch
// size is fixed before differentiation.
func (t TensorType) Bind(env map[string]int) TensorType {
	t.Dims = slices.Clone(t.Dims)
	for i, d := range t.Dims {
		if v, ok := env[d.Param]; ok && !d.IsKnown() && d.Param != "" {
			t.Dims[i] = Known(v)
		}
	}
	return t
}

// MustStatic is Static for callers that have checked; it panics with the type otherwise.
func (t TensorType) MustStatic() []int {
	s, ok := t.Static()
	if !ok {
		panic(fmt.Sprintf("onnx: type %v is not static", t))
	}
	return s
}
