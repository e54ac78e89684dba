package a2c

import (
	"fmt"

	"onnxrl/models"
	"onnxrl/models/layer"
	"onnxrl/models/program"
	"onnxrl/runtime/autodiff"
	"onnxrl/runtime/engine"
)

// backward carries the gradient of features back into the encoder, chunk by chunk.
type backward struct {
	rows *rows
	prog *program.Program
	// dz are the cotangents of a chunk's features, [padded, chunk, width] for each encoder.
	dz    [][]float32
	width int
	// ranges are where the encoder's parameters lie in the gradient: offset and length.
	ranges [][2]int
	grads  *models.Segment
}

// newBackward compiles the encoder's gradient. grads receives the sum over the chunks.
func newBackward(g *graphs, params *models.Params, grads *models.Segment, eng engine.Compiler, threads int) (*backward, error) {
	r := newRows(g, threads)
	p, err := program.New(g.encodeGrad, params, program.Config{
		Engine: eng, Batch: r.padded, BatchSymbol: layer.Batch, Shards: r.shards,
		Objectives: []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}}},
	})
	if err != nil {
		return nil, err
	}
	r.x = p.Input(rowsInput)
	b := &backward{rows: r, prog: p, width: g.width, grads: grads}
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

// run adds up the gradients of all chunks in which some sample's window lies, in the order of their first samples. Sample i is the window that ends with row last[i], in the chunk that begins at start[i]; d has the gradients [samples, series, width] of its features, for each encoder.
func (b *backward) run(d [][]float32, last []int64, start []int) error {
	first := true
	for i, s := range start {
		if seen(start[:i], s) {
			continue
		}
		for e, dz := range b.dz {
			clear(dz)
			for j := i; j < len(start); j++ {
				if start[j] == s {
					b.scatter(dz, d[e][j*b.rows.series*b.width:], int(last[j])-s)
				}
			}
		}
		b.rows.fill(s)
		if err := b.prog.Run(); err != nil {
			return fmt.Errorf("encoder's gradient: %w", err)
		}
		src, dst := b.prog.Gradients(0).Floats(), b.grads.Floats()
		for _, r := range b.ranges {
			if lo, hi := r[0], r[0]+r[1]; first {
				copy(dst[lo:hi], src[lo:hi])
			} else {
				program.Add(dst[lo:hi], src[lo:hi])
			}
		}
		first = false
	}
	return nil
}

// scatter adds the gradient of one window's features, [series, width], at its place in the chunk.
func (b *backward) scatter(dz, d []float32, at int) {
	for i := range b.rows.series {
		program.Add(dz[(i*b.rows.chunk+at)*b.width:][:b.width], d[i*b.width:][:b.width])
	}
}

// seen reports whether a chunk is that of an earlier sample. Samples of a rollout lie in few chunks, nearly always those of the samples just before.
func seen(earlier []int, s int) bool {
	for i := len(earlier) - 1; i >= 0; i-- {
		if earlier[i] == s {
			return true
		}
	}
	return false
}

func (b *backward) close() error { return b.prog.Close() }
