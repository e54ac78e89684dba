package safetensors

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// dtypes pairs the element types of the format with those of host tensors.
var dtypes = []struct {
	file DType
	host tensor.DType
}{
	{Bool, tensor.Bool}, {U8, tensor.Uint8}, {I8, tensor.Int8}, {U16, tensor.Uint16}, {I16, tensor.Int16}, {F16, tensor.Float16}, {BF16, tensor.BFloat16},
	{U32, tensor.Uint32}, {I32, tensor.Int32}, {F32, tensor.Float32}, {U64, tensor.Uint64}, {I64, tensor.Int64}, {F64, tensor.Float64},
	{F8E4M3, tensor.Float8E4M3FN}, {F8E5M2, tensor.Float8E5M2},
}

// Of returns a host tensor under a name, to be written; it views the tensor's memory. Strings,
// complex and packed elements have no form in a file.
func Of(name string, t *tensor.Tensor) (Tensor, error) {
	for _, d := range dtypes {
		if d.host == t.DType() {
			return Tensor{Name: name, DType: d.file, Shape: slices.Clone(t.Shape()), Data: t.Bytes()}, nil
		}
	}
	return Tensor{}, fmt.Errorf("array %q: a safetensors file has no %v", name, t.DType())
}

// Tensor reads an array into a new host tensor.
func (f *File) Tensor(name string) (*tensor.Tensor, error) {
	info, ok := f.Lookup(name)
	if !ok {
		return nil, fmt.Errorf("read array %q: the file has none of that name", name)
	}
	for _, d := range dtypes {
		if d.file == info.DType {
			t := tensor.New(d.host, info.Shape...)
			if err := f.ReadBytes(t.Bytes(), name); err != nil {
				return nil, err
			}
			return t, nil
		}
	}
	return nil, fmt.Errorf("read array %q: no tensor holds %s", name, info.DType)
}
