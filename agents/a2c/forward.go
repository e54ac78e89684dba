package a2c

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// forward computes the policy's distribution and values for the batches of n environments.
type forward struct {
	n    int
	prog *program.Program
	// obs are the buffers of the fields; nil for windows of a table, whose features come from the
	// bank.
	obs    []*tensor.Tensor
	mask   *tensor.Tensor
	series int
	bank   *bank
	z      [][]float32
	// value is [n].
	value []float32
}

// newForward compiles the acting network. bank may be nil.
func newForward(g *graphs, params *models.Params, s *agents.Setup, n int, k *bank) (*forward, error) {
	p, err := program.New(g.act, params, program.Config{Engine: s.Engine, Batch: n, BatchSymbol: layer.Batch, Shards: s.Split(program.SplitFLOPs).Shards(g.act, layer.Batch, n, 1)})
	if err != nil {
		return nil, err
	}
	f := &forward{n: n, prog: p, series: g.frame.Series, bank: k, mask: p.Input(agents.MaskInput)}
	for _, field := range g.frame.Spec.Observation {
		f.obs = append(f.obs, p.Input(field.Name))
	}
	for _, name := range g.features {
		f.z = append(f.z, p.Input(name).Float32s())
	}
	f.value = p.Output(agents.ValueOutput).Float32s()
	return f, nil
}

// current evaluates what the environments show.
func (f *forward) current(b *vector.Batch, now stamp) error {
	if len(b.Type) != f.n {
		return fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), f.n)
	}
	for i, t := range f.obs {
		if t == nil {
			continue
		}
		if err := b.Gather(i, t); err != nil {
			return err
		}
	}
	if f.bank != nil {
		for e, row := range b.Rows[f.series] {
			if err := f.fetch(e, int(row), now); err != nil {
				return err
			}
		}
	}
	if f.mask != nil {
		if b.Mask == nil {
			return errors.New("the batch has no mask")
		}
		copy(f.mask.Bytes(), b.Mask.Bytes())
	}
	return f.prog.Run()
}

// final evaluates the final observations of the episodes that ended; the rows of the others have no
// meaning.
func (f *forward) final(b *vector.Batch, now stamp) error {
	for i, t := range f.obs {
		if t == nil {
			continue
		}
		if err := b.GatherFinal(i, t); err != nil {
			return err
		}
	}
	if f.bank != nil {
		for _, e := range b.Ended {
			if err := f.fetch(e.Env, int(b.FinalRows[f.series][e.Env]), now); err != nil {
				return err
			}
		}
	}
	if f.mask != nil {
		if err := b.GatherFinalMask(f.mask); err != nil {
			return err
		}
	}
	return f.prog.Run()
}

// fetch copies the features of environment e's window.
func (f *forward) fetch(e, row int, now stamp) error {
	p, err := f.bank.find(row, now)
	if err != nil {
		return err
	}
	f.bank.copyTo(f.z, e, p, row)
	return nil
}

func (f *forward) close() error { return f.prog.Close() }
