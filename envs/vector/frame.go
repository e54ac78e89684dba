package vector

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Frame is a Batch that its owner fills, for policies that act in environments outside a vector,
// where no episode is to follow another by itself, and for implementations of Env in other
// packages.
type Frame struct {
	batch *Batch
	arena *tensor.Arena
}

// NewFrame returns a frame of n rows for environments of a spec. With windows they are copied into
// the batch, as with Options.Windows.
func NewFrame(spec envs.Spec, n int, windows bool) (*Frame, error) {
	if err := spec.Validate(); err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	if n < 1 {
		return nil, fmt.Errorf("frame: %d rows, expected at least 1", n)
	}
	b, arena, err := newBatch(spec, n, windows)
	if err != nil {
		return nil, fmt.Errorf("frame: %w", err)
	}
	return &Frame{batch: b, arena: arena}, nil
}

// Batch returns the batch, which is the same for the life of the frame. Its Ended is empty, with
// room for every environment, and stays so unless the owner fills it.
func (f *Frame) Batch() *Batch { return f.batch }

// Put copies a step into row i. The step must fit the spec, and may lack its last fields, which
// stay as they are; it does not allocate.
func (f *Frame) Put(i int, ts *envs.TimeStep) error {
	b := f.batch
	for k, rows := range b.Rows[:len(ts.Obs)] {
		if rows != nil {
			rows[i] = ts.Rows[k]
		}
		if dst := b.Obs[k]; dst != nil {
			if err := put(dst, i, ts.Obs[k]); err != nil {
				return fmt.Errorf("frame: observation %q: %w", b.spec.Observation[k].Name, err)
			}
		}
	}
	if b.Mask != nil {
		if err := put(b.Mask, i, ts.Mask); err != nil {
			return fmt.Errorf("frame: mask: %w", err)
		}
	}
	b.Type[i], b.Reward[i], b.Discount[i] = ts.Type, ts.Reward, ts.Discount
	copy(b.Costs[i], ts.Costs)
	copy(b.Info[i], ts.Info)
	return nil
}

// put copies one element into row i of a batched tensor.
func put(dst *tensor.Tensor, i int, src *tensor.Tensor) error {
	all, one := dst.Bytes(), src.Bytes()
	size := len(all) / dst.Shape()[0]
	if src.DType() != dst.DType() || len(one) != size {
		return fmt.Errorf("%v does not fit a row of %v", src, dst)
	}
	copy(all[i*size:], one)
	return nil
}

// Close frees the buffers. It fails, and can be repeated, while a binding still holds them.
func (f *Frame) Close() error { return f.arena.Close() }
