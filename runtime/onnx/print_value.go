package onnx

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// valueName prints a value's name: %name, %"odd name", or _ when it is absent.
func valueName(v string) string {
	if v == "" {
		return "_"
	}
	return "%" + bare(v)
}

// bare quotes a name that would be misread in the text.
func bare(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool {
		return !unicode.IsPrint(r) || r == utf8Error || strings.ContainsRune(` ,%"<>{}=()`+"`", r)
	}) {
		return strconv.Quote(s)
	}
	return s
}

const utf8Error = '\uFFFD'

// typeText prints a declared type of any kind.
func typeText(t *TypeProto) string {
	switch {
	case t.GetTensorType() != nil:
		tt, _ := (&ValueInfo{Type: t}).TensorType()
		return tt.String()
	case t.GetSparseTensorType() != nil:
		s := t.GetSparseTensorType()
		tt, _ := (&ValueInfo{Type: &TypeProto{Value: &TypeProto_TensorType{TensorType: &TypeProto_Tensor{ElemType: s.ElemType, Shape: s.Shape}}}}).TensorType()
		return "sparse " + tt.String()
	case t.GetSequenceType() != nil:
		return "seq(" + typeText(t.GetSequenceType().ElemType) + ")"
	case t.GetOptionalType() != nil:
		return "optional(" + typeText(t.GetOptionalType().ElemType) + ")"
	case t.GetMapType() != nil:
		m := t.GetMapType()
		return fmt.Sprintf("map(%v, %s)", tensor.DType(m.KeyType), typeText(m.ValueType))
	case t.GetOpaqueType() != nil:
		return fmt.Sprintf("opaque(%q, %q)", t.GetOpaqueType().Domain, t.GetOpaqueType().Name)
	}
	return "?"
}

// attribute prints name=value.
func (p *printer) attribute(a *Attribute) string {
	if a.RefAttrName != "" {
		return bare(a.Name) + "=@" + bare(a.RefAttrName)
	}
	return bare(a.Name) + "=" + attributeText(a, p.most)
}

func attributeText(a *Attribute, most int) string {
	switch a.Type {
	case AttributeProto_FLOAT:
		return floatText(float64(a.F), 32)
	case AttributeProto_INT:
		return strconv.FormatInt(a.I, 10)
	case AttributeProto_STRING:
		return strconv.Quote(string(a.S))
	case AttributeProto_TENSOR:
		return tensorText(a.T, most)
	case AttributeProto_SPARSE_TENSOR:
		return sparseText(a.SparseTensor, most)
	case AttributeProto_TYPE_PROTO:
		return typeText(a.Tp)
	case AttributeProto_FLOATS:
		return list(a.Floats, func(v float32) string { return floatText(float64(v), 32) })
	case AttributeProto_INTS:
		return list(a.Ints, func(v int64) string { return strconv.FormatInt(v, 10) })
	case AttributeProto_STRINGS:
		return list(a.Strings, func(v []byte) string { return strconv.Quote(string(v)) })
	case AttributeProto_TENSORS:
		return list(a.Tensors, func(t *TensorProto) string { return tensorText(t, most) })
	case AttributeProto_SPARSE_TENSORS:
		return list(a.SparseTensors, func(t *SparseTensorProto) string { return sparseText(t, most) })
	case AttributeProto_TYPE_PROTOS:
		return list(a.TypeProtos, typeText)
	}
	return "?"
}

func list[T any](v []T, f func(T) string) string {
	s := make([]string, len(v))
	for i, x := range v {
		s[i] = f(x)
	}
	return "[" + strings.Join(s, ", ") + "]"
}

func floatText(v float64, bits int) string { return strconv.FormatFloat(v, 'g', -1, bits) }

// tensorText prints type, shape, and elements or a digest of them.
func tensorText(t *TensorProto, most int) string {
	if t == nil {
		return "?"
	}
	typ := dtypeOf(t).String() + "[" + strings.Trim(strings.ReplaceAll(fmt.Sprint(t.Dims), " ", ","), "[]") + "]"
	if t.DataLocation == TensorProto_EXTERNAL && t.RawData == nil {
		ref, err := parseExternal(t)
		if err != nil {
			return typ + " external(?)"
		}
		return fmt.Sprintf("%s external(%q, %d)", typ, ref.location, ref.offset)
	}
	if err := checkTensor(t); err != nil {
		return typ + " invalid"
	}
	if _, n, _ := protoShape(t); n > most && t.RawData != nil {
		// Unaligned raw data would be copied by TensorOf.
		return typ + " #" + digest(t.RawData)
	}
	x, err := TensorOf(t)
	if err != nil {
		return typ + " invalid"
	}
	if x.Len() <= most {
		if s, ok := elementsText(x); ok {
			return typ + " = " + s
		}
	}
	return typ + " #" + Digest(x)
}

// Digest returns the first ten hexadecimal digits of the SHA-256 of a tensor's elements. Type and
// shape are not part of it.
func Digest(x *tensor.Tensor) string {
	b := x.Bytes()
	if x.DType() == tensor.String {
		b = []byte(fmt.Sprintf("%q", x.Strings()))
	}
	return digest(b)
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:5])
}

func sparseText(t *SparseTensorProto, most int) string {
	return fmt.Sprintf("sparse%v values %s indices %s", t.GetDims(), tensorText(t.GetValues(), most), tensorText(t.GetIndices(), most))
}

// elementsText prints the elements of types that Go can print.
func elementsText(x *tensor.Tensor) (string, bool) {
	var s string
	switch x.DType() {
	case tensor.Float32:
		s = list(x.Float32s(), func(v float32) string { return floatText(float64(v), 32) })
	case tensor.Float64:
		s = list(x.Float64s(), func(v float64) string { return floatText(v, 64) })
	case tensor.Float16:
		s = list(tensor.Data[uint16](x), func(v uint16) string { return floatText(float64(tensor.Float16ToFloat32(v)), 32) })
	case tensor.BFloat16:
		s = list(tensor.Data[uint16](x), func(v uint16) string { return floatText(float64(tensor.BFloat16ToFloat32(v)), 32) })
	case tensor.Bool:
		// Any non-zero byte is true, and reading another one as a Go bool would be undefined.
		s = list(x.Bytes(), func(v byte) string { return strconv.FormatBool(v != 0) })
	case tensor.String:
		s = list(x.Strings(), strconv.Quote)
	case tensor.Int8:
		s = integers[int8](x)
	case tensor.Int16:
		s = integers[int16](x)
	case tensor.Int32:
		s = integers[int32](x)
	case tensor.Int64:
		s = integers[int64](x)
	case tensor.Uint8:
		s = integers[uint8](x)
	case tensor.Uint16:
		s = integers[uint16](x)
	case tensor.Uint32:
		s = integers[uint32](x)
	case tensor.Uint64:
		s = integers[uint64](x)
	default:
		return "", false
	}
	if x.Rank() == 0 {
		s = s[1 : len(s)-1]
	}
	return s, true
}

func integers[T int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64](x *tensor.Tensor) string {
	return list(tensor.Data[T](x), func(v T) string { return fmt.Sprint(v) })
}
