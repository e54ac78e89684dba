package onnx

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TensorOf decodes a TensorProto whose data is inside the message. Raw data is shared where its
// alignment allows, and must then not be changed; typed fields (float_data, int64_data, …) are
// converted. External data must have been resolved first; see [Load] and [Model.ResolveExternal].
func TensorOf(p *TensorProto) (*tensor.Tensor, error) {
	t, err := tensorOf(p)
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", p.GetName(), err)
	}
	return t, nil
}

func tensorOf(p *TensorProto) (*tensor.Tensor, error) {
	d := tensor.DType(p.GetDataType())
	shape, n, err := protoShape(p)
	if err != nil {
		return nil, err
	}
	if err := checkData(p, d, shape, n); err != nil {
		return nil, err
	}
	if d == tensor.String {
		s := make([]string, n)
		for i, b := range p.StringData {
			s[i] = string(b)
		}
		return tensor.OfStrings(s, shape...), nil
	}
	if p.RawData != nil || n == 0 {
		if d.Size() <= 1 || aligned(p.RawData, d.Size()) {
			return tensor.OfBytes(d, p.RawData, shape...)
		}
		t := tensor.New(d, shape...)
		copy(t.Bytes(), p.RawData)
		return t, nil
	}
	t := tensor.New(d, shape...)
	b := t.Bytes()
	switch d {
	case tensor.Float32, tensor.Complex64:
		for i, v := range p.FloatData[:len(b)/4] {
			binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
		}
	case tensor.Float64, tensor.Complex128:
		for i, v := range p.DoubleData[:len(b)/8] {
			binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(v))
		}
	case tensor.Int64:
		copy(t.Int64s(), p.Int64Data)
	case tensor.Uint64:
		copy(tensor.Data[uint64](t), p.Uint64Data)
	case tensor.Uint32:
		for i, v := range p.Uint64Data {
			binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
		}
	case tensor.Int32:
		copy(t.Int32s(), p.Int32Data)
	case tensor.Uint16, tensor.Int16, tensor.Float16, tensor.BFloat16:
		for i, v := range p.Int32Data {
			binary.LittleEndian.PutUint16(b[2*i:], uint16(v))
		}
	case tensor.Bool:
		for i, v := range p.Int32Data {
			if v != 0 {
				b[i] = 1
			}
		}
	default:
		for i, v := range p.Int32Data {
			b[i] = byte(v)
		}
	}
	return t, nil
}

// checkTensor reports whether a tensor's data, when it lies in the message, is what its type and
// shape ask for. It allocates nothing to speak of.
func checkTensor(p *TensorProto) error {
	_, n, err := protoShape(p)
	if err == nil && !(p.GetDataLocation() == TensorProto_EXTERNAL && p.RawData == nil) {
		shape, _, _ := protoShape(p)
		err = checkData(p, dtypeOf(p), shape, n)
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", p.GetName(), err)
	}
	return nil
}

// checkData compares the data a message holds with what n elements of type d need, before anything
// of that size is allocated. A lying shape in a small file must not be able to ask for much memory.
func checkData(p *TensorProto, d tensor.DType, shape []int, n int) error {
	if p.GetSegment() != nil {
		return fmt.Errorf("segmented tensors are not supported")
	}
	if p.GetDataLocation() == TensorProto_EXTERNAL && p.RawData == nil {
		return fmt.Errorf("external data is not loaded")
	}
	if d == tensor.String {
		if len(p.GetStringData()) != n {
			return fmt.Errorf("shape %v needs %d strings, string_data holds %d", shape, n, len(p.GetStringData()))
		}
		return nil
	}
	if d.Bits() == 0 {
		return fmt.Errorf("element type %d is not known", p.GetDataType())
	}
	if p.GetRawData() != nil || n == 0 {
		if want := d.ByteLen(n); len(p.GetRawData()) != want {
			return fmt.Errorf("%v%v needs %d bytes, raw_data holds %d", d, shape, want, len(p.GetRawData()))
		}
		return nil
	}
	have, per := 0, 1
	switch d {
	case tensor.Float32:
		have = len(p.GetFloatData())
	case tensor.Complex64:
		have, per = len(p.GetFloatData()), 2
	case tensor.Float64:
		have = len(p.GetDoubleData())
	case tensor.Complex128:
		have, per = len(p.GetDoubleData()), 2
	case tensor.Int64:
		have = len(p.GetInt64Data())
	case tensor.Uint32, tensor.Uint64:
		have = len(p.GetUint64Data())
	default:
		have = len(p.GetInt32Data())
		if d.Bits() < 8 {
			// One int32 carries one packed byte.
			if want := d.ByteLen(n); have != want {
				return fmt.Errorf("%v%v needs %d packed bytes, int32_data holds %d", d, shape, want, have)
			}
			return nil
		}
	}
	if have != n*per {
		return fmt.Errorf("%v%v needs %d numbers, the data field holds %d", d, shape, n*per, have)
	}
	return nil
}

// protoShape returns a tensor's shape and number of elements. It refuses counts whose size in bytes
// could overflow.
func protoShape(p *TensorProto) ([]int, int, error) {
	shape := make([]int, len(p.GetDims()))
	for i, v := range p.GetDims() {
		if v < 0 || v > maxElements {
			return nil, 0, fmt.Errorf("extent %d of axis %d is out of range", v, i)
		}
		shape[i] = int(v)
	}
	n, err := tensor.Len(shape)
	if err != nil {
		return nil, 0, err
	}
	if int64(n) > maxElements {
		return nil, 0, fmt.Errorf("shape %v has too many elements", shape)
	}
	return shape, n, nil
}

// maxElements keeps the size in bits of the widest element type, 128, inside an int64.
const maxElements = 1 << 48

// ProtoOf encodes a tensor as a TensorProto with raw data that shares the tensor's memory; strings
// are copied.
func ProtoOf(name string, t *tensor.Tensor) *TensorProto {
	p := &TensorProto{Name: name, DataType: int32(t.DType()), Dims: Int64s(t.Shape())}
	if t.DType() == tensor.String {
		for _, s := range t.Strings() {
			p.StringData = append(p.StringData, []byte(s))
		}
		return p
	}
	p.RawData = t.Bytes()
	if p.RawData == nil {
		p.RawData = []byte{}
	}
	return p
}

func dtypeOf(p *TensorProto) tensor.DType { return tensor.DType(p.GetDataType()) }
