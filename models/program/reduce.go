package program

import (
	"fmt"
	"math"
	"slices"

	"onnxrl/models"
	"onnxrl/runtime/optim/kernel"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// reduce adds the shards' gradients and unbatched float outputs to those of the first shard, in shard order.
func (p *Program) reduce() {
	for _, s := range p.shards[1:] {
		for i, g := range s.grads {
			Add(p.grads[i].Floats(), g.Floats())
		}
		for _, pair := range s.sums {
			Add(pair[0], pair[1])
		}
	}
}

// Add adds src to dst, element by element. It panics when the lengths differ.
func Add(dst, src []float32) { kernel.Axpy(dst, src, 1) }

// proveSeparable compares the sharded program with the unsharded one on a random batch.
func (p *Program) proveSeparable(ref *Program) error {
	restore := p.saveBuffers()
	defer restore()
	stream := rng.New(0x5eed).Split("separable").Stream()
	for _, name := range p.Inputs() {
		t := p.inputs[name]
		if t.DType() == tensor.Float32 {
			x := t.Float32s()
			for i := range x {
				x[i] = float32(stream.Normal())
			}
		}
		copy(ref.inputs[name].Bytes(), t.Bytes())
	}
	if err := ref.Run(); err != nil {
		return err
	}
	restore()
	if err := p.Run(); err != nil {
		return err
	}
	for i, g := range p.grads {
		if at, ok := differs(ref.grads[i].Floats(), g.Floats()); ok {
			return fmt.Errorf("%w: with %d shards the gradient of %q differs", ErrNotSeparable, p.cfg.Shards, paramAt(g, at))
		}
	}
	for name, t := range ref.outputs {
		if t.DType() == tensor.Float32 {
			if _, ok := differs(t.Float32s(), p.outputs[name].Float32s()); ok {
				return fmt.Errorf("%w: with %d shards output %q differs; weigh samples by an input instead of taking a mean", ErrNotSeparable, p.cfg.Shards, name)
			}
		}
	}
	for _, t := range p.inputs {
		clear(t.Bytes())
	}
	return nil
}

// saveBuffers remembers running statistics and returns a function that puts them back.
func (p *Program) saveBuffers() func() {
	seg := p.params.Segment(models.Buffer)
	if seg == nil {
		return func() {}
	}
	old := slices.Clone(seg.Floats())
	return func() { copy(seg.Floats(), old) }
}

// differs compares with a tolerance relative to the largest magnitude, far above rounding and far below what a wrong sum would show.
func differs(want, got []float32) (int, bool) {
	var scale float64
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	for i := range want {
		d := math.Abs(float64(want[i]) - float64(got[i]))
		if d > 1e-3*scale+1e-7 || math.IsNaN(float64(want[i])) != math.IsNaN(float64(got[i])) {
			return i, true
		}
	}
	return 0, false
}

// paramAt names the parameter that element at of a segment belongs to.
func paramAt(s *models.Segment, at int) string {
	name := ""
	for i, spec := range s.Specs() {
		if off, _ := s.Range(i); off <= at {
			name = spec.Name
		}
	}
	return name
}
