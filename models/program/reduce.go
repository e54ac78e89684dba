package program

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
	"github.com/onnxrl/onnxrl/runtime/pool"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// reduce adds the shards' gradients and unbatched float outputs to those of the first shard, in
// shard order. Share k of the gradients is added by worker k of the pool. Parameters that an
// objective is not differentiated by are left alone.
func (p *Program) reduce(k int) {
	for _, s := range p.shards[1:] {
		for i, g := range s.grads {
			dst, src := p.grads[i].Floats(), g.Floats()
			for _, span := range p.spans[i] {
				lo, hi := pool.Share(span[1]-span[0], k, p.pool.Size())
				Add(dst[span[0]+lo:span[0]+hi], src[span[0]+lo:span[0]+hi])
			}
		}
		if k > 0 {
			continue
		}
		for _, pair := range s.sums {
			Add(pair[0], pair[1])
		}
	}
}

// spansOf returns where the gradients of each objective lie in the layout of the trainable
// parameters. Neighbours are one span, together with the padding between them.
func spansOf(trainable *models.Segment, outputs [][]autodiff.Output) [][][2]int {
	spans := make([][][2]int, len(outputs))
	for k, outs := range outputs {
		named := map[string]bool{}
		for _, o := range outs {
			named[o.Wrt] = true
		}
		joins := false
		for i, spec := range trainable.Specs() {
			off, n := trainable.Range(i)
			if !named[spec.Name] {
				joins = false
				continue
			}
			if last := len(spans[k]) - 1; joins {
				spans[k][last][1] = off + n
			} else {
				spans[k] = append(spans[k], [2]int{off, off + n})
			}
			joins = true
		}
	}
	return spans
}

// Add adds src to dst, element by element. It panics when the lengths differ.
func Add(dst, src []float32) { kernel.Axpy(dst, src, 1) }

// proveSeparable compares the sharded program with the unsharded one on the first random batch that
// gives finite results.
func (p *Program) proveSeparable(ref *Program) error {
	restore := p.saveBuffers()
	defer restore()
	var err error
	for i, draw := range engine.Draws {
		stream := rng.New(0x5eed).Split("separable", i).Stream()
		for _, name := range p.Inputs() {
			draw.Fill(stream, p.inputs[name])
		}
		for name, t := range p.inputs {
			copy(ref.inputs[name].Bytes(), t.Bytes())
		}
		if err = ref.Run(); err != nil {
			continue
		}
		if err = ref.finite(); err == nil {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("%w, as far as can be told: a run on random rows failed: %w", ErrNotSeparable, err)
	}
	restore()
	if err := p.Run(); err != nil {
		return err
	}
	for i, g := range p.grads {
		for _, span := range p.spans[i] {
			if at, ok := differs(ref.grads[i].Floats()[span[0]:span[1]], g.Floats()[span[0]:span[1]]); ok {
				return fmt.Errorf("%w: with %d shards the gradient of %q differs", ErrNotSeparable, p.cfg.Shards, paramAt(g, span[0]+at))
			}
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

// finite reports the first gradient or output that holds a number that is not finite.
func (p *Program) finite() error {
	for _, g := range p.grads {
		if !allFinite(g.Floats()) {
			return errors.New("a gradient is not finite")
		}
	}
	for name, t := range p.outputs {
		if t.DType() == tensor.Float32 && !allFinite(t.Float32s()) {
			return fmt.Errorf("output %q is not finite", name)
		}
	}
	return nil
}

// allFinite uses that the sum of squares is finite exactly if every element is.
func allFinite(x []float32) bool {
	s := kernel.SumSquares(x)
	return !math.IsNaN(s) && !math.IsInf(s, 0)
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

// differs compares with a tolerance relative to the largest magnitude, far above rounding and far
// below what a wrong sum would show.
func differs(want, got []float32) (int, bool) {
	var scale float64
	for _, v := range want {
		scale = max(scale, math.Abs(float64(v)))
	}
	for i := range want {
		d := math.Abs(float64(want[i]) - float64(got[i]))
		if !(d <= 1e-3*scale+1e-7) {
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
