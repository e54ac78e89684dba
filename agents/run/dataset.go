package run

import (
	"context"
	"maps"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/train"
)

// dataset opens the data set of the document as the run's replay. Evaluations also measure the
// policy on the episodes that are held out. All seeds hold out the same ones.
func (r *Run) dataset(ctx context.Context, h *train.Hooks) (agents.Replay, error) {
	given, judge, err := r.plan.kinds.Learn(ctx, r.plan.factory, *r.cfg.Dataset)
	if err != nil {
		return nil, err
	}
	if h.Evaluate == nil || judge == nil {
		return given, nil
	}
	inside := h.Evaluate
	h.Evaluate = func(ctx context.Context, a agents.Agent, at int64) (map[string]float64, error) {
		m, err := inside(ctx, a, at)
		if err != nil {
			return nil, err
		}
		own, err := judge(ctx, a)
		if err != nil {
			return nil, err
		}
		maps.Copy(own, m)
		return own, nil
	}
	return given, nil
}
