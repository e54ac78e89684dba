package shape

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func gather(c *call) error {
	t, idx := c.typ(0), c.typ(1)
	if !t.Ranked || !idx.Ranked {
		c.setUnranked(0, t.DType)
		return nil
	}
	a, err := axisOf(c.int("axis", 0), len(t.Dims))
	if err != nil {
		return fmt.Errorf("gather from %v: %w", t, err)
	}
	if err := c.checkIndices(t, a, 1); err != nil {
		return err
	}
	c.setDims(0, t.DType, slices.Concat(t.Dims[:a], idx.Dims, t.Dims[a+1:])...)
	return nil
}

// checkIndices refuses constant indices of the second input outside [-n, n), where n is the extent
// of the axis that they belong to: that of element i is first + i modulo count.
func (c *call) checkIndices(t onnx.TensorType, first, count int) error {
	vs, _ := c.values(1)
	for i, v := range vs {
		axis := first + i%count
		if axis >= len(t.Dims) || !t.Dims[axis].IsKnown() || !v.known {
			continue
		}
		if n := int64(t.Dims[axis].Value); v.n < -n || v.n >= n {
			return fmt.Errorf("axis %d of %v: index %d is out of range for %d elements", axis, t, v.n, n)
		}
	}
	return nil
}

// gatherElements has the shape of the indices.
func gatherElements(c *call) error {
	t, idx := c.typ(0), c.typ(1)
	if err := c.alongAxis(t, idx); err != nil {
		return err
	}
	out := withDType(idx, t.DType)
	if !idx.Ranked && t.Ranked {
		out.Ranked, out.Dims = true, unknownDims(len(t.Dims))
	}
	c.set(0, out)
	return nil
}

// alongAxis checks an index tensor that has the rank of the data and is not longer than it on other
// axes than the attribute's.
func (c *call) alongAxis(t, idx onnx.TensorType) error {
	if !t.Ranked {
		return nil
	}
	axis, err := axisOf(c.int("axis", 0), len(t.Dims))
	if err != nil {
		return fmt.Errorf("index %v: %w", t, err)
	}
	if !idx.Ranked {
		return nil
	}
	if len(idx.Dims) != len(t.Dims) {
		return fmt.Errorf("indices %v must have the rank of %v", idx, t)
	}
	for i, d := range idx.Dims {
		if i != axis && d.IsKnown() && t.Dims[i].IsKnown() && d.Value > t.Dims[i].Value {
			return fmt.Errorf("indices %v are longer than %v on axis %d", idx, t, i)
		}
	}
	return c.checkIndices(t, axis, 1)
}

func gatherND(c *call) error {
	t, idx := c.typ(0), c.typ(1)
	out, err := c.tailOf(t, idx, c.int("batch_dims", 0))
	c.set(0, withDType(out, t.DType))
	return err
}

// tailOf is the shape of what index tuples in the last axis of idx point at: idx without that axis,
// then the axes of t that the tuples leave.
func (c *call) tailOf(t, idx onnx.TensorType, batch int) (onnx.TensorType, error) {
	if !t.Ranked || !idx.Ranked {
		return onnx.TensorType{}, nil
	}
	q := len(idx.Dims)
	if q == 0 || len(t.Dims) == 0 {
		return onnx.TensorType{}, fmt.Errorf("indices %v into %v: both need at least one axis", idx, t)
	}
	if batch < 0 || batch >= q || batch >= len(t.Dims) {
		return onnx.TensorType{}, fmt.Errorf("batch_dims %d must be below the ranks of %v and %v", batch, t, idx)
	}
	for i := range batch {
		if _, ok := mergeDim(t.Dims[i], idx.Dims[i]); !ok {
			return onnx.TensorType{}, fmt.Errorf("%v and indices %v differ on batch axis %d", t, idx, i)
		}
	}
	last := idx.Dims[q-1]
	if !last.IsKnown() {
		return onnx.TensorType{}, nil
	}
	k := last.Value + batch
	if last.Value > len(t.Dims) || k > len(t.Dims) {
		return onnx.TensorType{}, fmt.Errorf("index tuples of %d elements into %v after %d batch axes", last.Value, t, batch)
	}
	if last.Value > 0 {
		if err := c.checkIndices(t, batch, last.Value); err != nil {
			return onnx.TensorType{}, err
		}
	}
	return onnx.TensorType{Ranked: true, Dims: slices.Concat(idx.Dims[:q-1], t.Dims[k:])}, nil
}

// scatterElements keeps the shape of the data; indices and updates have one shape.
func scatterElements(c *call) error {
	t, idx, up := c.typ(0), c.typ(1), c.typ(2)
	if err := c.alongAxis(t, idx); err != nil {
		return err
	}
	if err := fits(withDType(up, tensor.Undefined), withDType(idx, tensor.Undefined), "updates", "indices"); err != nil {
		return err
	}
	return same(c)
}

func scatterND(c *call) error {
	t, idx, up := c.typ(0), c.typ(1), c.typ(2)
	want, err := c.tailOf(t, idx, 0)
	if err != nil {
		return err
	}
	if err := fits(withDType(up, tensor.Undefined), want, "updates", "data at the indices"); err != nil {
		return fmt.Errorf("scatter into %v: %w", t, err)
	}
	return same(c)
}

// fits returns an error when two types that must have one shape do not.
func fits(a, b onnx.TensorType, na, nb string) error {
	if _, err := merge(a, b); err != nil {
		return fmt.Errorf("%s have shape %v, %s %v", na, withDType(a, tensor.Undefined), nb, withDType(b, tensor.Undefined))
	}
	return nil
}

// tensorScatter writes updates into a cache along one axis.
func tensorScatter(c *call) error {
	t, up := c.typ(0), c.typ(1)
	if t.Ranked && up.Ranked {
		axis, err := axisOf(c.int("axis", -2), len(t.Dims))
		if err != nil {
			return err
		}
		if axis == 0 {
			return fmt.Errorf("axis 0 is the batch")
		}
		if len(t.Dims) != len(up.Dims) {
			return fmt.Errorf("update %v must have the rank of the cache %v", up, t)
		}
		for i, d := range up.Dims {
			if i != axis {
				if _, ok := mergeDim(d, t.Dims[i]); !ok {
					return fmt.Errorf("update %v and cache %v differ on axis %d", up, t, i)
				}
			} else if d.IsKnown() && t.Dims[i].IsKnown() && d.Value > t.Dims[i].Value {
				return fmt.Errorf("update %v is longer than the cache %v", up, t)
			}
		}
	}
	return same(c)
}

func oneHot(c *call) error {
	idx := c.typ(0)
	d := c.dtype(2)
	if t := c.typ(2); t.Ranked && !(len(t.Dims) == 1 && (!t.Dims[0].IsKnown() || t.Dims[0].Value == 2)) {
		return fmt.Errorf("values are %v, want the two values off and on", t)
	}
	if t := c.typ(1); t.Ranked && len(t.Dims) > 0 && !(len(t.Dims) == 1 && (!t.Dims[0].IsKnown() || t.Dims[0].Value == 1)) {
		return fmt.Errorf("depth is %v, want a scalar", t)
	}
	if !idx.Ranked {
		c.setUnranked(0, d)
		return nil
	}
	a, err := axisOf(c.int("axis", -1), len(idx.Dims)+1)
	if err != nil {
		return err
	}
	depth := onnx.Symbol("")
	if v, ok := c.values(1); ok && len(v) == 1 {
		if v[0].known && v[0].n < 0 {
			return fmt.Errorf("depth is %d", v[0].n)
		}
		depth = v[0].dim()
	} else if f, ok := c.scalars(1); ok && len(f) == 1 && f[0] >= 0 && f[0] < 1<<40 {
		depth = onnx.Known(int(f[0]))
	}
	c.setDims(0, d, slices.Insert(slices.Clone(idx.Dims), a, depth)...)
	return nil
}
