package fit

import (
	"errors"
	"io"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/dataset"
	"github.com/onnxrl/onnxrl/models/loss"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// batch is a program of one batch size with its buffers looked up once.
type batch struct {
	*program.Program
	rows int
	// fields are filled by the loader, in its order; weight is the sample weights, which the loader
	// fills when weighted is set.
	fields   []*tensor.Tensor
	weight   []float32
	weighted bool
	loss     []float32
	metrics  []float32Metric
	masks    []mask
}

// float32Metric is the buffer of a metric.
type float32Metric struct {
	name  string
	value []float32
}

// mask is the buffer of a dropout mask and where its randomness comes from.
type mask struct {
	data []float32
	drop float64
	key  rng.Key
}

// newBatch looks up the buffers of a program over the loader's fields.
func newBatch(p *program.Program, rows int, fields []string, metrics []string, masks []models.DropoutMask, key rng.Key) *batch {
	b := &batch{Program: p, rows: rows, weight: p.Input(loss.WeightInput).Float32s(), loss: p.Output(loss.Output).Float32s()}
	for _, name := range fields {
		b.fields = append(b.fields, p.Input(name))
		b.weighted = b.weighted || name == loss.WeightInput
	}
	for _, name := range metrics {
		b.metrics = append(b.metrics, float32Metric{name, p.Output(name).Float32s()})
	}
	for _, m := range masks {
		b.masks = append(b.masks, mask{p.Input(m.Input).Float32s(), m.Ratio, key.Split(m.Input)})
	}
	return b
}

// load takes the next rows and weighs them so that the losses of all batches that make up total
// rows add up to a mean over them.
func (b *batch) load(l *dataset.Loader, total int) error {
	n, err := l.Next(b.rows, b.fields)
	if err == nil && n != b.rows {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	w := 1 / float32(total)
	for i := range b.weight {
		if b.weighted {
			b.weight[i] *= w
		} else {
			b.weight[i] = w
		}
	}
	return nil
}

// drawMasks fills the dropout masks for the run of the given number, from a stream of their own
// each.
func (b *batch) drawMasks(run uint64) {
	var s rng.Stream
	for _, m := range b.masks {
		s.Seed(m.key.Split("run", int(run)))
		keep := float32(1 / (1 - m.drop))
		for i := range m.data {
			m.data[i] = 0
			if s.Float64() >= m.drop {
				m.data[i] = keep
			}
		}
	}
}

// programs are the batches of a part of the data: of the configured size, and of what is left at
// the end of an epoch. Either may be nil.
type programs struct{ full, tail *batch }

// of returns the batch for the next rows.
func (p programs) of(rows int) *batch {
	if p.full != nil && rows >= p.full.rows {
		return p.full
	}
	return p.tail
}

// build makes the batches that an epoch of so many rows consists of.
func build(rows, size int, compile func(rows int) (*batch, error)) (p programs, err error) {
	if rows >= size {
		if p.full, err = compile(size); err != nil {
			return p, err
		}
	}
	if rows%size != 0 {
		p.tail, err = compile(rows % size)
	}
	return p, err
}

func (p programs) close() error {
	var errs []error
	for _, b := range []*batch{p.full, p.tail} {
		if b != nil {
			errs = append(errs, b.Close())
		}
	}
	return errors.Join(errs...)
}
