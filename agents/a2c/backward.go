package a2c

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
)

// backward carries the gradient of features back into the encoder, a few chunks at a time.
type backward struct {
	rows *rows
	prog *program.Program
	// dz are the cotangents of the features of chunks at once, [chunks·series, chunk, width] for
	// each encoder.
	dz     [][]float32
	chunks int
	width  int
	// starts are the distinct chunks of a rollout in the order of their first samples, and at the
	// place of each sample's chunk among them.
	starts, at []int
	// ranges are where the encoder's parameters lie in the gradient: offset and length.
	ranges [][2]int
	grads  *models.Segment
}

// newBackward compiles the encoder's gradient. The learner's gradients receive the sum over the
// chunks.
func newBackward(l *learner, samples int) (*backward, error) {
	g, s, grads := l.g, &l.Setup, l.Grads
	series, _ := columns(g.Frame)
	// A chunk of many windows is enough for one run; windows by themselves are run several at a
	// time.
	chunks := 1
	if g.chunk == 1 {
		_, chunks = runs(samples, max(s.Threads, 1), arithmetic(g.encode, series))
	}
	r := newRows(l, chunks)
	p, err := program.New(g.encodeGrad, l.Params, program.Config{
		Engine: s.Engine, Batch: chunks * r.series, BatchSymbol: layer.Batch, Shards: r.shards, Weights: g.features,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: onpolicy.LossOutput}}}},
	})
	if err != nil {
		return nil, err
	}
	r.x = p.Input(rowsInput)
	b := &backward{rows: r, prog: p, width: g.width, grads: grads, chunks: chunks, starts: make([]int, 0, samples), at: make([]int, samples)}
	for _, name := range g.features {
		b.dz = append(b.dz, p.Input(name).Float32s())
	}
	inEncoder := map[string]bool{}
	for _, s := range g.encodeGrad.Specs {
		inEncoder[s.Name] = true
	}
	for i, s := range grads.Specs() {
		if inEncoder[s.Name] {
			off, n := grads.Range(i)
			b.ranges = append(b.ranges, [2]int{off, n})
		}
	}
	return b, nil
}

// run adds up the gradients of all chunks in which some sample's window lies. Sample i is the
// window that ends with row last[i], in the chunk that begins at start[i]; d has the gradients
// [samples, series, width] of its features, for each encoder. between is called before each run of
// the program; its error ends the work.
func (b *backward) run(between func(done, of int) error, d [][]float32, last, start []int64) error {
	b.sort(start)
	for from := 0; from < len(b.starts); from += b.chunks {
		if err := between(from, len(b.starts)); err != nil {
			return err
		}
		to := min(from+b.chunks, len(b.starts))
		for k, s := range b.starts[from:to] {
			b.rows.fill(k, s)
		}
		for e, dz := range b.dz {
			clear(dz)
			for i, at := range b.at {
				if at >= from && at < to {
					b.scatter(dz, d[e][i*b.rows.series*b.width:], at-from, int(last[i]-start[i]))
				}
			}
		}
		if err := b.prog.Run(); err != nil {
			return fmt.Errorf("encoder's gradient: %w", err)
		}
		src, dst := b.prog.Gradients(0).Floats(), b.grads.Floats()
		for _, r := range b.ranges {
			if lo, hi := r[0], r[0]+r[1]; from == 0 {
				copy(dst[lo:hi], src[lo:hi])
			} else {
				program.Add(dst[lo:hi], src[lo:hi])
			}
		}
	}
	return nil
}

// sort finds the distinct chunks. The chunk of a sample is nearly always one of the last ones seen.
func (b *backward) sort(start []int64) {
	b.starts = b.starts[:0]
	for i, from := range start {
		s, k := int(from), len(b.starts)-1
		for k >= 0 && b.starts[k] != s {
			k--
		}
		if k < 0 {
			k = len(b.starts)
			b.starts = append(b.starts, s)
		}
		b.at[i] = k
	}
}

// scatter adds the gradient of one window's features, [series, width], at its place in chunk k.
func (b *backward) scatter(dz, d []float32, k, window int) {
	for i := range b.rows.series {
		program.Add(dz[((k*b.rows.series+i)*b.rows.chunk+window)*b.width:][:b.width], d[i*b.width:][:b.width])
	}
}
