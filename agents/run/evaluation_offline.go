package run

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/ope"
)

// OfflineEvaluation are the policies of an evaluation with the data that judge them.
type OfflineEvaluation struct {
	// Data are those of the data set, and Manifest what it says of itself.
	Data     *ope.Data
	Manifest offline.Manifest
	// Gamma is the discount factor of the policies, or else of the data's behaviour, or else 0.99.
	Gamma float64
	// Stochastic says that the policies draw, as eval.deterministic has it.
	Stochastic bool
	// Notes say what the numbers are not worth.
	Notes []string

	e *Evaluation
}

// Offline reads a data set to evaluate the opened policies by, without acting.
func (e *Evaluation) Offline(ctx context.Context, dir string) (*OfflineEvaluation, error) {
	d, err := offline.Open(dir)
	if err != nil {
		return nil, err
	}
	spec, err := offline.SpecOf(e.factory, e.o.Split, e.cfg.Eval.MaxEpisodeSteps)
	if err != nil {
		return nil, err
	}
	x := &OfflineEvaluation{Manifest: d.Manifest, Gamma: ope.Defaults().Gamma, Stochastic: e.cfg.Eval.Mode().Draws(), e: e}
	if d.Gamma != 0 {
		x.Gamma = d.Gamma
	}
	if s, ok := e.cfg.Agent.Lookup("gamma"); ok {
		if err := s.Decode(&x.Gamma); err != nil {
			return nil, err
		}
	}
	if c := e.cfg.Dataset; c != nil {
		// The data that a policy learnt from may lie elsewhere by now.
		if learnt, err := offline.Open(c.Path); err == nil && learnt.Digest == d.Digest {
			x.Notes = append(x.Notes, fmt.Sprintf("The policies learnt from this data set (dataset.path: %s): estimates of them are too high.", c.Path))
		}
	}
	if x.Data, err = ope.Read(ctx, d, spec); err != nil {
		return nil, err
	}
	if n := x.Data.Truncated; n > 0 {
		x.Notes = append(x.Notes, fmt.Sprintf("%d of %d episodes were cut off: fqe, dr and wdr have the value of what would follow, and behaviour, pdis and wpdis have not.", n, x.Data.Episodes()))
	}
	return x, nil
}

// Estimate estimates the values of the policies, in the order of Policies. progress, unless nil, is
// asked for each policy who is to be told of the updates of fitted Q evaluation.
func (x *OfflineEvaluation) Estimate(ctx context.Context, c ope.Config, progress func(policy EvaluatedPolicy) func(done int, loss float64)) (list [][]ope.Estimate, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	e := x.e
	tools := ope.Tools{Engine: e.engine, Encoders: e.kinds.Setup(e.cfg, e.engine).Encoders}
	for _, p := range e.policies {
		own, err := ope.Ask(ctx, p.actors, e.engine, x.Data, x.Stochastic)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.From, err)
		}
		if progress != nil {
			tools.Progress = progress(p.EvaluatedPolicy)
		}
		out, err := ope.Evaluate(ctx, c, x.Data, own, tools)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.From, err)
		}
		list = append(list, out)
	}
	return list, nil
}
