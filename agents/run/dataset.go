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

// openDataset opens the data set of a section as a replay, and what judges policies by the episodes
// that are held out, nil where none are.
func openDataset(ctx context.Context, f envs.Factory, c *offline.Config) (s *offline.Store, j *offline.Judge, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("%s: %w", experiment.DatasetPath, err)
		}
	}()
	d, err := offline.Open(c.Path)
	if err != nil {
		return nil, nil, err
	}
	spec, err := offline.SpecOf(f, envs.Train, 0)
	if err != nil {
		return nil, nil, err
	}
	held := d.Split(c.Validation, c.Seed)
	if s, err = offline.NewStore(ctx, d, spec, held, c.Share); err != nil || c.Validation == 0 {
		return s, nil, err
	}
	j, err = offline.NewJudge(ctx, d, spec, held)
	return s, j, err
}

// dataset opens the data set of the document as the run's replay. Evaluations are told, too, how
// the policy does on the episodes that are held out. All seeds hold out the same ones.
func (r *Run) dataset(ctx context.Context, h *train.Hooks) (agents.Replay, error) {
	s, judge, err := openDataset(ctx, r.plan.factory, r.cfg.Dataset)
	if err != nil {
		return nil, err
	}
	if h.Evaluate == nil || judge == nil {
		return s, nil
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
