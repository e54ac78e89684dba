package vector

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// places are the rows of a batch that environments of this process write into.
type places struct {
	spec  envs.Spec
	batch *Batch
	arena *tensor.Arena
	rows  []envRow
}

// envRow is where one environment, or one agent, writes.
type envRow struct {
	step, first envs.TimeStep
	action      *tensor.Tensor
	health      health
	// obs and final are the bytes of the observation's rows, by field; nil for windows that are not
	// copied.
	obs, final [][]byte
}

func newPlaces(spec envs.Spec, n int, windows bool) (places, error) {
	b, arena, err := newBatch(spec, n, windows)
	if err != nil {
		return places{}, err
	}
	p := places{spec, b, arena, make([]envRow, n)}
	for i := range p.rows {
		p.rows[i] = p.row(i)
	}
	return p, nil
}

func (v *places) row(i int) envRow {
	b, n := v.batch, len(v.spec.Observation)
	p := envRow{action: row(b.Actions, i), obs: make([][]byte, n), final: make([][]byte, n)}
	p.step = envs.TimeStep{Obs: make([]*tensor.Tensor, n), Rows: make([]int64, n), Costs: b.Costs[i], Info: b.Info[i]}
	if b.Mask != nil {
		p.step.Mask = row(b.Mask, i)
	}
	for f := range n {
		if b.Obs[f] == nil {
			continue
		}
		view := row(b.Obs[f], i)
		p.obs[f], p.final[f] = view.Bytes(), row(b.Final[f], i).Bytes()
		if v.spec.Observation[f].Window == nil {
			p.step.Obs[f] = view
		}
	}
	p.health = newHealth(&p.step)
	// The first step of a following episode writes over the observation and the mask, but not over
	// costs and diagnostics of the step that ended the last one.
	p.first = p.step
	p.first.Costs, p.first.Info = make([]float64, len(v.spec.Costs)), make([]float64, len(v.spec.Info))
	return p
}

// publish makes the windows of ts part of the batch; everything else is there already.
func (v *places) publish(i int, ts *envs.TimeStep) {
	for f, rows := range v.batch.Rows {
		if rows == nil {
			continue
		}
		rows[i] = ts.Rows[f]
		if dst := v.rows[i].obs[f]; dst != nil {
			copy(dst, ts.Obs[f].Bytes())
		}
	}
}

// keepFinal keeps the final observation and mask of row i.
func (v *places) keepFinal(i int) {
	p, b := &v.rows[i], v.batch
	for f := range v.spec.Observation {
		if b.FinalRows[f] != nil {
			b.FinalRows[f][i] = p.step.Rows[f]
		}
		if p.final[f] != nil {
			copy(p.final[f], p.step.Obs[f].Bytes())
		}
	}
	if b.FinalMask != nil {
		b.PutFinalMask(i, p.step.Mask.Bytes())
	}
}

// blank gives row i the observation of an agent that is not present, whatever was left there.
func (v *places) blank(i int) {
	for f, o := range v.spec.Observation {
		dst := v.rows[i].obs[f]
		if o.Window == nil {
			clear(dst)
			continue
		}
		first := o.Window.Len() - 1
		v.batch.Rows[f][i] = int64(first)
		if dst != nil {
			copy(dst, o.Window.At(first).Bytes())
		}
	}
	if v.batch.Mask != nil {
		n := v.batch.Mask.Shape()[1]
		for k := range n {
			v.batch.Mask.Bools()[i*n+k] = true
		}
	}
}

// idle says of row i that it took no step.
func (v *places) idle(i int) {
	b := v.batch
	b.Type[i], b.Reward[i], b.Discount[i] = envs.First, 0, 1
	clear(b.Costs[i])
}

// away is the step of a row whose agent was not present and still is not.
func (v *places) away(i int) {
	v.idle(i)
	v.blank(i)
	clear(v.batch.Info[i])
}
