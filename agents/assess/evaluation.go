package assess

import (
	"context"
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/report"
)

// Evaluate lets the policies of an opened evaluation trade its split next to the baselines of the
// section eval. Environments other than trading are an error: see [run.Evaluation.Episodes].
func Evaluate(ctx context.Context, e *run.Evaluation) (_ *Assessment, err error) {
	c := e.Config()
	o, ok := e.Factory().(trading.Opened)
	if !ok {
		return nil, fmt.Errorf("the environment %s is not one of trading, and is evaluated by episodes", c.Env.Kind)
	}
	if err := CheckMetrics(c.Eval.Metrics); err != nil {
		return nil, err
	}
	spec, err := Spec(o, e.Split())
	if err != nil {
		return nil, err
	}
	index, err := LoadIndex(o, c.Eval.Baselines.Index)
	if err != nil {
		return nil, err
	}
	past := e.Past()
	req := Request{Env: o, Split: e.Split(), Config: c.Eval, Index: index, LookAhead: past.LookAhead, Trained: past.Trained, Chosen: past.Chosen, Key: e.Key()}
	actors := e.Actors()
	for i, p := range e.Policies() {
		trades, err := NewPolicy(p.Name, actors[i], c.Eval.Mode(), spec, wrap.FixedSkill(o))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.From, err)
		}
		defer func() { err = errors.Join(err, trades.Close()) }()
		req.Agents = append(req.Agents, trades)
	}
	return Run(ctx, req)
}

// AboutOf says where policies, data and code of an evaluation's assessment come from, and out of how
// many trials the first policy was chosen, as [Assessment.Document] takes it for a report.
func AboutOf(e *run.Evaluation, a *Assessment) (About, error) {
	b := About{Title: fmt.Sprintf("%s on %s", a.Agents[0].Name, a.Split), Seed: e.Config().Seed, Notes: e.Notes()}
	if s := e.Selection(); s != nil {
		b.Trials = a.Trials(s)
	} else {
		b.Trials = report.Trials{Count: 1, Counted: "The model does not say what it was chosen from: one trial is assumed, and the deflated Sharpe ratio is too kind if there were more."}
	}
	origins, err := e.Origins()
	for _, x := range origins {
		b.Provenance = append(b.Provenance, report.KeyValue{Key: x[0], Value: x[1]})
	}
	return b, err
}
