package ablate

import (
	"context"
	"errors"
	"time"

	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Experiments is the [Runner] that trains each run of a study as package run trains a document, and
// publishes nothing.
type Experiments struct{ study.Trainer }

// Evaluate implements [Runner]: the policy is that of the newest checkpoint, the end of training.
// The best one on the validation range would be evaluated there with the luck that made it the
// best.
func (e Experiments) Evaluate(ctx context.Context, dir string, c experiment.Config) (o *Outcome, err error) {
	p, err := e.Plan(ctx, dir, c, run.Hooks{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	tr, step, err := p.Restore(ctx, c.Seed)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, tr.Close()) }()
	m, err := e.Kinds.Compare(ctx, p.Factory(), tr.Agent(), step, c.Eval)
	if err != nil {
		return nil, err
	}
	o = &Outcome{Bars: m.Bars, Metrics: numbers(m.Metrics), ReferenceName: m.ReferenceName, Reference: numbers(m.Reference), LookAhead: m.LookAhead}
	if m.Bars > 0 {
		o.From, o.To = m.Period.First.Format(time.DateOnly), m.Period.Last.Format(time.DateOnly)
	}
	return o, nil
}

// numbers are metrics that may be no numbers in JSON; nil of nil.
func numbers(m map[string]float64) map[string]performance.Number {
	if m == nil {
		return nil
	}
	out := map[string]performance.Number{}
	for k, v := range m {
		out[k] = performance.Number(v)
	}
	return out
}
