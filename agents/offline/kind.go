package offline

import (
	"context"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/replay"
	"github.com/onnxrl/onnxrl/envs"
)

// Kind is how documents name a data set of this format.
var Kind = replay.DatasetKind{Name: "parquet", Open: func(dir string) (replay.Recorded, error) {
	d, err := Open(dir)
	if err != nil {
		return nil, err
	}
	return d, nil
}}

// Source implements replay.Recorded.
func (d *Dataset) Source() (digest string, parents []string) { return d.Digest, d.Parents }

// Learn implements replay.Recorded. Equal sections hold out the same episodes.
func (d *Dataset) Learn(ctx context.Context, f envs.Factory, c replay.Dataset) (agents.Replay, func(context.Context, agents.Agent) (map[string]float64, error), error) {
	spec, err := SpecOf(f, envs.Train, 0)
	if err != nil {
		return nil, nil, err
	}
	held := d.Split(c.Validation, c.Seed)
	s, err := NewStore(ctx, d, spec, held, c.Share)
	if err != nil {
		return nil, nil, err
	}
	if c.Validation == 0 {
		return s, nil, nil
	}
	j, err := NewJudge(ctx, d, spec, held)
	if err != nil {
		return nil, nil, err
	}
	return s, func(ctx context.Context, a agents.Agent) (map[string]float64, error) { return j.Metrics(ctx, a) }, nil
}
