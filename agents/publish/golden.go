package publish

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents/served"
	"github.com/onnxrl/onnxrl/export/bake"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// goldenRows is the number of rows that a version can be verified with.
const goldenRows = 4

// golden picks the most decided of some rows that are spread over the samples, so that no engine's
// rounding makes another choice, and keeps what the model gives for them one by one. It is nil
// where no row is decided.
func golden(p *served.Policy, r *recorder, heads []int) (*artifact.Golden, error) {
	type candidate struct {
		row    int
		margin float64
	}
	var list []candidate
	for row := 0; row < r.rows; row += max(1, r.rows/(4*goldenRows)) {
		if err := r.run(p, row); err != nil {
			return nil, err
		}
		c := candidate{row: row, margin: 1}
		if by := p.Output(scores(p.Outputs())); by != nil && heads != nil {
			c.margin = bake.LeastMargin(by.Float32s(), heads)
		}
		if c.margin > bake.Margin {
			list = append(list, c)
		}
	}
	slices.SortStableFunc(list, func(a, b candidate) int { return cmp.Compare(b.margin, a.margin) })
	list = list[:min(goldenRows, len(list))]
	if len(list) == 0 {
		return nil, nil
	}
	slices.SortFunc(list, func(a, b candidate) int { return a.row - b.row })
	g := &artifact.Golden{Inputs: map[string]*tensor.Tensor{}, Outputs: map[string]*tensor.Tensor{}}
	stack := func(to map[string]*tensor.Tensor, names []string, get func(string) *tensor.Tensor) {
		for _, name := range names {
			to[name] = tensor.New(get(name).DType(), append([]int{len(list)}, get(name).Shape()[1:]...)...)
		}
	}
	stack(g.Inputs, p.Inputs(), p.Input)
	stack(g.Outputs, p.Outputs(), p.Output)
	for i, c := range list {
		if err := r.run(p, c.row); err != nil {
			return nil, err
		}
		for _, name := range p.Inputs() {
			copy(g.Inputs[name].Rows(i, i+1).Bytes(), p.Input(name).Bytes())
		}
		for _, name := range p.Outputs() {
			copy(g.Outputs[name].Rows(i, i+1).Bytes(), p.Output(name).Bytes())
		}
	}
	return g, nil
}

// run gives a policy of one row a recorded observation, unscaled.
func (r *recorder) run(p *served.Policy, row int) error {
	p.Begin(0)
	for k, name := range r.inputs {
		to := p.Input(name)
		if to == nil {
			continue
		}
		from := r.samples[k]
		if r.unscaled[k] != nil {
			from = r.unscaled[k]
		}
		if err := to.CopyFrom(from.Rows(row, row+1)); err != nil {
			return fmt.Errorf("golden input %q: %w", name, err)
		}
	}
	return p.Run()
}
