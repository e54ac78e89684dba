package shape

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// declaredFact reads a declared type of any kind, with symbols bound.
func (e *Env) declaredFact(v *onnx.ValueInfo) (Fact, error) {
	f, err := factOfType(v.GetType())
	if err != nil {
		return f, fmt.Errorf("value %q: %w", v.GetName(), err)
	}
	if len(e.bind) > 0 {
		f.Type = f.Type.Bind(e.bind)
	}
	if err := checkDims(f.Type.Dims); err != nil {
		return f, fmt.Errorf("value %q: %w", v.GetName(), err)
	}
	return f, nil
}

func factOfType(t *onnx.TypeProto) (Fact, error) {
	kind := Tensor
	for range 4 {
		switch {
		case t.GetSequenceType() != nil:
			switch kind {
			case Tensor:
				kind = Sequence
			case Optional:
				kind = OptionalSequence
			default:
				return Fact{}, errors.New("sequences of sequences are not supported")
			}
			t = t.GetSequenceType().GetElemType()
			continue
		case t.GetOptionalType() != nil:
			if kind != Tensor {
				return Fact{}, errors.New("sequences of optionals are not supported")
			}
			kind, t = Optional, t.GetOptionalType().GetElemType()
			continue
		case t.GetMapType() != nil:
			return Fact{Kind: Map}, nil
		}
		break
	}
	if s := t.GetSparseTensorType(); s != nil {
		t = &onnx.TypeProto{Value: &onnx.TypeProto_TensorType{TensorType: &onnx.TypeProto_Tensor{ElemType: s.GetElemType(), Shape: s.GetShape()}}}
	}
	if t.GetTensorType() == nil {
		return Fact{Kind: kind}, nil
	}
	tt, _ := (&onnx.ValueInfo{Type: t}).TensorType()
	return Fact{Type: tt, Kind: kind}, nil
}

// mergeDeclared fills what was not inferred from a declared type; it returns an error where the two
// contradict each other.
func (e *Env) mergeDeclared(f *Fact, v *onnx.ValueInfo) error {
	if v.GetType().GetValue() == nil {
		return nil
	}
	d, err := e.declaredFact(v)
	if err != nil {
		return err
	}
	if d.Kind != f.Kind {
		return &contradiction{"a " + d.Kind.String(), "a " + f.Kind.String()}
	}
	t, err := merge(f.Type, d.Type)
	if err != nil {
		return &contradiction{d.Type.String(), f.Type.String()}
	}
	f.Type = t
	return nil
}

// merge combines two descriptions of one value. Known extents win over symbols, symbols over the
// unknown, and a's symbols over b's.
func merge(a, b onnx.TensorType) (onnx.TensorType, error) {
	if a.DType == tensor.Undefined {
		a.DType = b.DType
	} else if b.DType != tensor.Undefined && a.DType != b.DType {
		return a, fmt.Errorf("%v and %v are different element types", a, b)
	}
	if !b.Ranked {
		return a, nil
	}
	if !a.Ranked {
		b.DType = a.DType
		return b, nil
	}
	if len(a.Dims) != len(b.Dims) {
		return a, fmt.Errorf("%v and %v have different ranks", a, b)
	}
	dims := a.Dims
	for i, x := range a.Dims {
		m, ok := mergeDim(x, b.Dims[i])
		if !ok {
			return a, fmt.Errorf("%v and %v differ on axis %d", a, b, i)
		}
		if m != x {
			if &dims[0] == &a.Dims[0] {
				// Facts share their extents; a changed list is a new one.
				dims = append([]onnx.Dim(nil), a.Dims...)
			}
			dims[i] = m
		}
	}
	a.Dims = dims
	return a, nil
}

// mergeDim combines two descriptions of one extent; ok is false when they are different numbers.
func mergeDim(x, y onnx.Dim) (onnx.Dim, bool) {
	switch {
	case x.IsKnown():
		return x, !y.IsKnown() || x.Value == y.Value
	case y.IsKnown(), x.Param == "":
		return y, true
	}
	return x, true
}

// join returns the type of a value that is either a or b: what the two agree on.
func join(a, b Fact) (Fact, error) {
	if a.Kind != b.Kind {
		return a, fmt.Errorf("it is once a %v and once a %v", a.Kind, b.Kind)
	}
	out := Fact{Kind: a.Kind, Type: onnx.TensorType{DType: a.Type.DType}}
	if a.Type.DType == tensor.Undefined {
		out.Type.DType = b.Type.DType
	} else if b.Type.DType != tensor.Undefined && a.Type.DType != b.Type.DType {
		return a, fmt.Errorf("it is once %v and once %v", a.Type, b.Type)
	}
	if !a.Type.Ranked || !b.Type.Ranked || len(a.Type.Dims) != len(b.Type.Dims) {
		return out, nil
	}
	out.Type.Ranked = true
	out.Type.Dims = make([]onnx.Dim, len(a.Type.Dims))
	for i, d := range a.Type.Dims {
		if d != b.Type.Dims[i] {
			d = onnx.Symbol("")
		}
		out.Type.Dims[i] = d
	}
	return out, nil
}

// checkDims refuses shapes that no tensor can have.
func checkDims(dims []onnx.Dim) error {
	if len(dims) > maxRank {
		return fmt.Errorf("rank %d is above the limit of %d", len(dims), maxRank)
	}
	n := 1
	for i, d := range dims {
		if !d.IsKnown() {
			continue
		}
		if d.Value > maxExtent {
			return fmt.Errorf("extent %d of axis %d is out of range", d.Value, i)
		}
		if d.Value != 0 && n > maxExtent/d.Value {
			return fmt.Errorf("shape %v has too many elements", onnx.TensorType{Ranked: true, Dims: dims})
		}
		n *= d.Value
	}
	return nil
}

// elements returns the number of elements of a static type.
func elements(t onnx.TensorType) (int, bool) {
	if !t.Ranked {
		return 0, false
	}
	n := 1
	for _, d := range t.Dims {
		if !d.IsKnown() {
			return 0, false
		}
		if d.Value != 0 && n > maxExtent/d.Value {
			n = maxExtent
			continue
		}
		n *= d.Value
	}
	return n, true
}
