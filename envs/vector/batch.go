package vector

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// newBatch lays out the buffers of n environments in one arena.
func newBatch(spec envs.Spec, n int, windows bool) (*Batch, *tensor.Arena, error) {
	b := &Batch{
		Obs: make([]*tensor.Tensor, len(spec.Observation)), Final: make([]*tensor.Tensor, len(spec.Observation)),
		Rows: make([][]int64, len(spec.Observation)), FinalRows: make([][]int64, len(spec.Observation)),
		Type: make([]envs.StepType, n), Reward: make([]float64, n), Discount: make([]float64, n), Costs: make([][]float64, n), Info: make([][]float64, n),
		Ended: make([]Episode, 0, n), spec: spec,
	}
	divide := func(to [][]float64, k int) {
		all := make([]float64, n*k)
		for i := range to {
			to[i] = all[i*k : (i+1)*k : (i+1)*k]
		}
	}
	divide(b.Costs, len(spec.Costs))
	divide(b.Info, len(spec.Info))

	type buffer struct {
		t     **tensor.Tensor
		dtype tensor.DType
		shape []int
	}
	batched := func(shape []int) []int { return append([]int{n}, shape...) }
	buffers := []buffer{{&b.Actions, spec.Action.DType(), batched(spec.Action.Shape())}}
	if spec.Masked {
		shape := []int{n, envs.MaskLen(spec.Action)}
		buffers = append(buffers, buffer{&b.Mask, tensor.Bool, shape}, buffer{&b.FinalMask, tensor.Bool, shape})
	}
	for i, f := range spec.Observation {
		if f.Window != nil {
			b.Rows[i], b.FinalRows[i] = make([]int64, n), make([]int64, n)
		}
		if f.Window == nil || windows {
			shape := batched(f.Space.Shape())
			buffers = append(buffers, buffer{&b.Obs[i], f.Space.DType(), shape}, buffer{&b.Final[i], f.Space.DType(), shape})
		}
	}
	size := 0
	for _, u := range buffers {
		k, err := tensor.Len(u.shape)
		if err != nil {
			return nil, nil, err
		}
		size += tensor.AlignUp(u.dtype.ByteLen(k))
	}
	arena, err := tensor.NewArena(size)
	if err != nil {
		return nil, nil, err
	}
	off := 0
	for _, u := range buffers {
		if *u.t, err = arena.Tensor(u.dtype, off, u.shape...); err != nil {
			return nil, nil, err
		}
		off += tensor.AlignUp(len((*u.t).Bytes()))
	}
	return b, arena, nil
}

// row returns row i of a batched tensor, without the batch extent.
func row(t *tensor.Tensor, i int) *tensor.Tensor { return t.Rows(i, i+1).Reshape(t.Shape()[1:]...) }

func (b *Batch) accepts(i int, dst *tensor.Tensor) error {
	f := &b.spec.Observation[i]
	if dst.DType() != f.Space.DType() || dst.Rank() == 0 || dst.Shape()[0] != len(b.Type) || !hasShape(f.Space, dst.Shape()[1:]) {
		return fmt.Errorf("gather observation %q: into %v, expected %v[%d %v]", f.Name, dst, f.Space.DType(), len(b.Type), f.Space.Shape())
	}
	return nil
}

// hasShape compares without allocating: these spaces make their shapes again whenever they
// are asked.
func hasShape(s envs.Space, shape []int) bool {
	switch s := s.(type) {
	case envs.MultiDiscrete:
		return len(shape) == 1 && shape[0] == len(s.N)
	case envs.MultiBinary:
		return len(shape) == 1 && shape[0] == s.N
	}
	return slices.Equal(shape, s.Shape())
}

func (b *Batch) gather(i int, dst *tensor.Tensor, obs []*tensor.Tensor, rows [][]int64) error {
	if err := b.accepts(i, dst); err != nil {
		return err
	}
	if obs[i] != nil {
		return dst.CopyFrom(obs[i])
	}
	w, out := b.spec.Observation[i].Window, dst.Bytes()
	for _, last := range rows[i] {
		out = out[copy(out, w.At(int(last)).Bytes()):]
	}
	return nil
}

// PutFinalMask writes row i of FinalMask, for implementations of Env: mask, of envs.MaskLen
// elements, after a truncation, which Discount[i] must say already, and otherwise every action. It
// is called where actions are masked.
func (b *Batch) PutFinalMask(i int, mask []byte) {
	row := b.FinalMask.Bytes()[i*len(mask) : (i+1)*len(mask)]
	if b.Discount[i] > 0 {
		copy(row, mask)
		return
	}
	for k := range row {
		row[k] = 1
	}
}

func (b *Batch) gatherFinalMask(dst *tensor.Tensor) error {
	switch {
	case b.FinalMask == nil:
		return fmt.Errorf("gather the final mask: the actions of %s are not masked", b.spec.Name)
	case dst.DType() != tensor.Bool || !slices.Equal(dst.Shape(), b.FinalMask.Shape()):
		return fmt.Errorf("gather the final mask: into %v, expected bool%v", dst, b.FinalMask.Shape())
	}
	to, from := dst.Bytes(), b.FinalMask.Bytes()
	size := len(from) / len(b.Type)
	for _, e := range b.Ended {
		copy(to[e.Env*size:(e.Env+1)*size], from[e.Env*size:])
	}
	return nil
}

func (b *Batch) gatherEnded(i int, dst *tensor.Tensor) error {
	if err := b.accepts(i, dst); err != nil {
		return err
	}
	out := dst.Bytes()
	size := len(out) / len(b.Type)
	for _, e := range b.Ended {
		to := out[e.Env*size : (e.Env+1)*size]
		if b.Final[i] != nil {
			copy(to, b.Final[i].Bytes()[e.Env*size:])
		} else {
			copy(to, b.spec.Observation[i].Window.At(int(b.FinalRows[i][e.Env])).Bytes())
		}
	}
	return nil
}
