package grpcapi

import (
	"fmt"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/export/serve/grpcapi/inference"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// fromContents makes the tensor of typed contents. Only the list of the datatype may have elements.
func fromContents(in *inference.ModelInferRequest_InferInputTensor) (*tensor.Tensor, error) {
	d, shape, err := described(in)
	if err != nil {
		return nil, err
	}
	n, err := tensor.Len(shape)
	if err != nil {
		return nil, err
	}
	c := in.GetContents()
	lists := [...]struct {
		name string
		n    int
	}{
		{"bool_contents", len(c.GetBoolContents())}, {"int_contents", len(c.GetIntContents())}, {"int64_contents", len(c.GetInt64Contents())}, {"uint_contents", len(c.GetUintContents())},
		{"uint64_contents", len(c.GetUint64Contents())}, {"fp32_contents", len(c.GetFp32Contents())}, {"fp64_contents", len(c.GetFp64Contents())}, {"bytes_contents", len(c.GetBytesContents())},
	}
	want := listOf(d)
	if want == "" {
		return nil, fmt.Errorf("%s has no typed contents; send it in raw_input_contents", in.GetDatatype())
	}
	for _, l := range lists {
		switch {
		case l.name == want && l.n != n:
			return nil, fmt.Errorf("%s has %d elements, but shape %v has %d", l.name, l.n, shape, n)
		case l.name != want && l.n > 0:
			return nil, fmt.Errorf("%s has elements, but %s lie in %s", l.name, in.GetDatatype(), want)
		}
	}
	switch d {
	case tensor.Bool:
		return tensor.Of(nonNil(c.GetBoolContents()), shape...), nil
	case tensor.Int8:
		return narrow[int8](d, c.GetIntContents(), shape)
	case tensor.Int16:
		return narrow[int16](d, c.GetIntContents(), shape)
	case tensor.Int32:
		return tensor.Of(nonNil(c.GetIntContents()), shape...), nil
	case tensor.Int64:
		return tensor.Of(nonNil(c.GetInt64Contents()), shape...), nil
	case tensor.Uint8:
		return narrow[uint8](d, c.GetUintContents(), shape)
	case tensor.Uint16:
		return narrow[uint16](d, c.GetUintContents(), shape)
	case tensor.Uint32:
		return tensor.Of(nonNil(c.GetUintContents()), shape...), nil
	case tensor.Uint64:
		return tensor.Of(nonNil(c.GetUint64Contents()), shape...), nil
	case tensor.Float32:
		return tensor.Of(nonNil(c.GetFp32Contents()), shape...), nil
	case tensor.Float64:
		return tensor.Of(nonNil(c.GetFp64Contents()), shape...), nil
	}
	if err := serve.CheckStrings(n); err != nil {
		return nil, err
	}
	v := make([]string, n)
	for i, b := range c.GetBytesContents() {
		v[i] = string(b)
	}
	return tensor.OfStrings(v, shape...), nil
}

// listOf names the list that elements of a type lie in; "" where there is none.
func listOf(d tensor.DType) string {
	switch d {
	case tensor.Bool:
		return "bool_contents"
	case tensor.Int8, tensor.Int16, tensor.Int32:
		return "int_contents"
	case tensor.Int64:
		return "int64_contents"
	case tensor.Uint8, tensor.Uint16, tensor.Uint32:
		return "uint_contents"
	case tensor.Uint64:
		return "uint64_contents"
	case tensor.Float32:
		return "fp32_contents"
	case tensor.Float64:
		return "fp64_contents"
	case tensor.String:
		return "bytes_contents"
	}
	return ""
}

// nonNil gives an empty tensor memory of its own.
func nonNil[T any](v []T) []T {
	if v == nil {
		return []T{}
	}
	return v
}

func narrow[T int8 | int16 | uint8 | uint16, W int32 | uint32](d tensor.DType, wide []W, shape []int) (*tensor.Tensor, error) {
	v := make([]T, len(wide))
	for i, w := range wide {
		if v[i] = T(w); W(v[i]) != w {
			return nil, fmt.Errorf("element %d is %d, which is not within %v", i, w, d)
		}
	}
	return tensor.Of(v, shape...), nil
}
