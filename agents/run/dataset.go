package run

import (
	"context"
	"fmt"
	"maps"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/train"
	"github.com/onnxrl/onnxrl/envs"
)

// dataset opens the data set of the document as the run's replay. Evaluations are told, too, how
// the policy does on the episodes that are held out. All seeds hold out the same ones.
func (r *Run) dataset(ctx context.Context, h *train.Hooks) (agents.Replay, error) {
	c := r.cfg.Dataset
	fail := func(err error) error { return fmt.Errorf("%s: %w", experiment.DatasetPath, err) }
	d, err := offline.Open(c.Path)
	if err != nil {
		return nil, fail(err)
	}
	spec, err := offline.SpecOf(r.plan.factory, envs.Train, 0)
	if err != nil {
		return nil, fail(err)
	}
	held := d.Split(c.Validation, c.Seed)
	s, err := offline.NewStore(ctx, d, spec, held, c.Share)
	if err != nil {
		return nil, fail(err)
	}
	if h.Evaluate == nil || c.Validation == 0 {
		return s, nil
	}
	judge, err := offline.NewJudge(ctx, d, spec, held)
	if err != nil {
		return nil, fail(err)
	}
	inside := h.Evaluate
	h.Evaluate = func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
		m, err := inside(ctx, a, at)
		if err != nil {
			return nil, err
		}
		own, err := judge.Metrics(ctx, a)
		if err != nil {
			return nil, err
		}
		maps.Copy(own, m)
		return own, nil
	}
	return s, nil
}
