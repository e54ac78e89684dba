package train

import "context"

// BestPolicy copies the best parameters into the policy, as [Trainer.UseBest] does, and returns it
// as a [Publisher] is given it: for publishing after the run. In a run that is never validated it
// is the present policy. The trainer cannot be continued from there.
func (t *Trainer) BestPolicy(ctx context.Context) (Policy, error) {
	if err := t.UseBest(ctx); err != nil {
		return Policy{}, err
	}
	p := t.Policy()
	if e := t.best; e != nil {
		p.EnvSteps, p.LearnerSteps, p.Metric, p.Score, p.Metrics = e.EnvSteps, e.LearnerSteps, t.cfg.Validation.Metric, e.Score, e.Metrics
		p.Evaluations = int64(t.s.Evaluations)
	}
	return p, nil
}

// Policy returns the present policy, whose parameters change with the learner's.
func (t *Trainer) Policy() Policy {
	net, params := t.learner.Policy()
	return Policy{Network: net, Params: params, Normalizers: t.Normalizers(), EnvSteps: t.EnvSteps(), LearnerSteps: t.s.LearnerSteps, Evaluations: int64(t.s.Evaluations)}
}
