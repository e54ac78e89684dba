package oip

import (
	"fmt"

	"github.com/onnxrl/onnxrl/export/serve"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// datatypes are the protocol's names, and Triton's BF16, in the order of the specification.
var datatypes = [...]struct {
	name  string
	dtype tensor.DType
}{
	{"BOOL", tensor.Bool},
	{"UINT8", tensor.Uint8}, {"UINT16", tensor.Uint16}, {"UINT32", tensor.Uint32}, {"UINT64", tensor.Uint64},
	{"INT8", tensor.Int8}, {"INT16", tensor.Int16}, {"INT32", tensor.Int32}, {"INT64", tensor.Int64},
	{"FP16", tensor.Float16}, {"FP32", tensor.Float32}, {"FP64", tensor.Float64},
	{"BYTES", tensor.String}, {"BF16", tensor.BFloat16},
}

// Datatype returns the protocol's name of an element type, or "" for types that it has no name for.
func Datatype(d tensor.DType) string {
	for i := range datatypes {
		if datatypes[i].dtype == d {
			return datatypes[i].name
		}
	}
	return ""
}

// ParseDatatype is the inverse of [Datatype].
func ParseDatatype(name string) (tensor.DType, error) {
	for i := range datatypes {
		if datatypes[i].name == name {
			return datatypes[i].dtype, nil
		}
	}
	return tensor.Undefined, fmt.Errorf("unknown datatype %q, expected BOOL, UINT8 to UINT64, INT8 to INT64, FP16, FP32, FP64, BF16 or BYTES", name)
}

// bad makes the error for a body that is wrong.
func bad(format string, args ...any) error {
	return &serve.Error{Code: serve.InvalidArgument, Err: fmt.Errorf(format, args...)}
}
