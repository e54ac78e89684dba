package onnx

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// TensorOfSparse returns the dense form of a sparse tensor. Indices may be linear (shape [nnz]) or
// coordinates (shape [nnz, rank]), as the format allows. A dense size above maxBytes is refused: a
// few bytes of sparse data can describe any shape.
func TensorOfSparse(s *SparseTensorProto, maxBytes int) (*tensor.Tensor, error) {
	t, err := tensorOfSparse(s, maxBytes)
	if err != nil {
		return nil, fmt.Errorf("sparse tensor %q: %w", s.GetValues().GetName(), err)
	}
	return t, nil
}

func tensorOfSparse(s *SparseTensorProto, maxBytes int) (*tensor.Tensor, error) {
	shape, n, err := protoShape(&TensorProto{Dims: s.GetDims()})
	if err != nil {
		return nil, err
	}
	vals, err := TensorOf(s.GetValues())
	if err != nil {
		return nil, err
	}
	size := vals.DType().Size()
	if size == 0 {
		return nil, fmt.Errorf("values of type %v are not supported", vals.DType())
	}
	if n > maxBytes/size {
		return nil, fmt.Errorf("its dense form, %v%v, exceeds %d bytes", vals.DType(), shape, maxBytes)
	}
	idx, err := TensorOf(s.GetIndices())
	if err != nil {
		return nil, err
	}
	at, err := sparsePositions(idx, shape, n, vals.Len())
	if err != nil {
		return nil, err
	}
	out := tensor.New(vals.DType(), shape...)
	for i, pos := range at {
		copy(out.Bytes()[pos*size:(pos+1)*size], vals.Bytes()[i*size:])
	}
	return out, nil
}

// sparsePositions returns where the nnz elements of a sparse tensor of n elements stand in its dense
// form, or an error for indices that do not fit the shape.
func sparsePositions(idx *tensor.Tensor, shape []int, n, nnz int) ([]int, error) {
	if idx.DType() != tensor.Int64 {
		return nil, fmt.Errorf("indices are %v, int64 is expected", idx.DType())
	}
	linear := idx.Rank() == 1 && idx.Len() == nnz
	if !linear && (idx.Rank() != 2 || idx.Shape()[0] != nnz || idx.Shape()[1] != len(shape)) {
		return nil, fmt.Errorf("indices have shape %v, [%d] or [%d,%d] is expected", idx.Shape(), nnz, nnz, len(shape))
	}
	out, at := make([]int, nnz), idx.Int64s()
	for i := range out {
		if linear {
			if at[i] < 0 || at[i] >= int64(n) {
				return nil, fmt.Errorf("index %d of %d elements", at[i], n)
			}
			out[i] = int(at[i])
			continue
		}
		for k, d := range shape {
			x := at[i*len(shape)+k]
			if x < 0 || x >= int64(d) {
				return nil, fmt.Errorf("index %d on axis %d of extent %d", x, k, d)
			}
			out[i] = out[i]*d + int(x)
		}
	}
	return out, nil
}

// checkSparse checks both parts of a sparse tensor, and that its indices lie within its shape. What is
// in other files and was not read is not looked at.
func checkSparse(s *SparseTensorProto) error {
	for _, part := range []*TensorProto{s.GetValues(), s.GetIndices()} {
		if err := checkTensor(part); err != nil {
			return err
		}
	}
	shape, n, err := protoShape(&TensorProto{Dims: s.GetDims()})
	if err == nil {
		var idx *tensor.Tensor
		if idx, err = TensorOf(s.GetIndices()); err == nil {
			_, nnz, _ := protoShape(s.GetValues())
			_, err = sparsePositions(idx, shape, n, nnz)
		} else if s.GetIndices().GetDataLocation() == TensorProto_EXTERNAL {
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("tensor %q: %w", s.GetValues().GetName(), err)
	}
	return nil
}

// Densify returns a model whose sparse initializers are dense ones, which every engine reads. Each
// dense form may take at most maxBytes.
func Densify(m *Model, maxBytes int) (*Model, error) {
	c := m.ShallowClone()
	err := eachGraph(c.Graph, func(g *Graph) error {
		for _, s := range g.SparseInitializer {
			t, err := TensorOfSparse(s, maxBytes)
			if err != nil {
				return err
			}
			g.Initializer = append(g.Initializer, ProtoOf(s.GetValues().GetName(), t))
		}
		g.SparseInitializer = nil
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("densify: %w", err)
	}
	return c, nil
}
