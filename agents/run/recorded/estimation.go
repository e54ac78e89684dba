package recorded

import (
	"context"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/offline"
	"github.com/onnxrl/onnxrl/agents/ope"
	"github.com/onnxrl/onnxrl/agents/run"
)

// Estimation are the policies of an evaluation with the data that judge them.
type Estimation struct {
	// Data are those of the data set, and Manifest what it says of itself.
	Data     *ope.Data
	Manifest offline.Manifest
	// Gamma is the discount factor of the policies, or else of the data's behaviour, or else 0.99.
	Gamma float64
	// Stochastic says that the policies draw, as eval.deterministic has it.
	Stochastic bool
	// Notes say what the numbers are not worth.
	Notes []string

	e *run.Evaluation
}

// Open reads a data set to evaluate the policies of an opened evaluation by, without acting.
func Open(ctx context.Context, e *run.Evaluation, dir string) (*Estimation, error) {
	cfg := e.Config()
	d, err := offline.Open(dir)
	if err != nil {
		return nil, err
	}
	spec, err := offline.SpecOf(e.Factory(), e.Split(), cfg.Eval.MaxEpisodeSteps)
	if err != nil {
		return nil, err
	}
	x := &Estimation{Manifest: d.Manifest, Gamma: ope.Defaults().Gamma, Stochastic: cfg.Eval.Mode().Draws(), e: e}
	if d.Gamma != 0 {
		x.Gamma = d.Gamma
	}
	if s, ok := cfg.Agent.Lookup("gamma"); ok {
		if err := s.Decode(&x.Gamma); err != nil {
			return nil, err
		}
	}
	if c := cfg.Dataset; c != nil {
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
func (x *Estimation) Estimate(ctx context.Context, c ope.Config, progress func(policy run.EvaluatedPolicy) func(done int, loss float64)) (list [][]ope.Estimate, err error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	setup := x.e.Setup()
	tools := ope.Tools{Engine: setup.Engine, Encoders: setup.Encoders}
	actors := x.e.Actors()
	for i, p := range x.e.Policies() {
		own, err := ope.Ask(ctx, actors[i], setup.Engine, x.Data, x.Stochastic)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.From, err)
		}
		if progress != nil {
			tools.Progress = progress(p)
		}
		out, err := ope.Evaluate(ctx, c, x.Data, own, tools)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.From, err)
		}
		list = append(list, out)
	}
	return list, nil
}
