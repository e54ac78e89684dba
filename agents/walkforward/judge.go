package walkforward

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/agents/assess"
	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/agents/experiment"
	"github.com/onnxrl/onnxrl/agents/publish"
	"github.com/onnxrl/onnxrl/agents/run"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/wrap"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// judge lets the best policies of a cell's runs trade its test ranges.
func (s *Study) judge(ctx context.Context, c *Cell) (o *Outcome, err error) {
	o = &Outcome{}
	best, score := 0, math.Inf(-1)
	for i, seed := range s.Plan.Seeds {
		one, err := s.seedOutcome(c, seed)
		if err != nil {
			return nil, err
		}
		if v := float64(one.Validation); v > score {
			best, score = i, v
		}
		o.Seeds = append(o.Seeds, one)
	}
	for i := range c.tests {
		if err := s.test(ctx, c, i, best, o); err != nil {
			return nil, fmt.Errorf("judge %s: %w", c.Name, err)
		}
	}
	return o, nil
}

// seedOutcome reads what a finished run says of itself.
func (s *Study) seedOutcome(c *Cell, seed uint64) (o SeedOutcome, err error) {
	if !c.Population.IsZero() {
		return s.populationOutcome(c, seed)
	}
	dir := s.seedDir(c, seed)
	var sum run.RunSummary
	if err := run.ReadJSON(filepath.Join(dir, run.FinishedFile), &sum); err != nil {
		return o, err
	}
	var l run.Lineage
	if err := run.ReadJSON(filepath.Join(dir, run.LineageFile), &l); err != nil {
		return o, err
	}
	o = SeedOutcome{Seed: seed, EnvSteps: sum.EnvSteps, BestEnvSteps: sum.BestEnvSteps, Metric: sum.Metric, Validation: performance.Number(math.NaN())}
	if v, ok := sum.Validation[sum.Metric]; ok {
		o.Validation = performance.Number(v)
	}
	if l.Init != nil {
		if rel, err := filepath.Rel(s.Dir, l.Init.Ref); err == nil {
			o.Init = filepath.ToSlash(rel)
		}
	}
	return o, nil
}

// tested is a cell's experiment for one of its test ranges.
func (s *Study) tested(c *Cell, i int) (e experiment.Config, err error) {
	if !c.Population.IsZero() {
		return s.testedPopulation(c, c.tests[i])
	}
	text, err := configs.Marshal(c.Config)
	if err != nil || i == 0 {
		return c.Config, err
	}
	doc, err := configs.Parse(c.Name, text)
	if err == nil {
		err = doc.SetValue("env.data.split", c.tests[i])
	}
	if err != nil {
		return e, err
	}
	return s.Trainer.Kinds.Decode(doc)
}

// test adds the records of one test range. The seed best is the one that validation chooses.
func (s *Study) test(ctx context.Context, c *Cell, i, best int, o *Outcome) (err error) {
	e, err := s.tested(c, i)
	if err != nil {
		return err
	}
	e, factory, _, err := s.Trainer.Kinds.Open(ctx, e)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, factory.Close()) }()
	env, ok := factory.(trading.Opened)
	if !ok {
		return fmt.Errorf("the environment %s is not one of trading", e.Env.Kind)
	}
	spec, err := assess.Spec(env, envs.Test)
	if err != nil {
		return err
	}
	var list []backtest.Policy
	add := func(name string, a evaluate.Actors) error {
		p, err := assess.NewPolicy(name, a, e.Eval.Mode(), spec, wrap.FixedSkill(factory))
		if err == nil {
			list = append(list, p)
		}
		return err
	}
	defer func() {
		for _, p := range list {
			err = errors.Join(err, p.(*assess.Policy).Close())
		}
	}()
	ensemble := evaluate.Ensemble{By: s.Plan.Study.Ensemble.By, Action: spec.Action}
	for k, seed := range s.Plan.Seeds {
		if !c.Population.IsZero() {
			if o.Seeds[k].MAPD, err = s.apart(ctx, c, factory, seed); err != nil {
				return fmt.Errorf("seed %d: %w", seed, err)
			}
		}
		agent, free, err := s.restore(ctx, c, factory, seed)
		if err != nil {
			return fmt.Errorf("seed %d: %w", seed, err)
		}
		defer func() { err = errors.Join(err, free()) }()
		ensemble.Members = append(ensemble.Members, agent)
		if err := add(fmt.Sprintf("seed %d", seed), agent); err != nil {
			return err
		}
	}
	if by := ensemble.By; by == evaluate.ByMean || by == evaluate.ByMajority {
		if err := add("ensemble by "+by, ensemble); err != nil {
			return err
		}
	}
	index, err := assess.LoadIndex(env, e.Eval.Baselines.Index)
	if err != nil {
		return err
	}
	// Sensitivities are for reports of one run.
	e.Eval.Lag, e.Eval.CostSweepBP = nil, nil
	a, err := assess.Run(ctx, assess.Request{Env: env, Split: envs.Test, Config: e.Eval, Agents: list, Index: index, Key: rng.New(0).Split("test")})
	if err != nil {
		return err
	}
	o.PeriodsPerYear, o.RiskFree = a.Config.PeriodsPerYear, a.Config.RiskFree
	o.LookAhead, o.Seen, o.Notes = a.LookAhead, append(o.Seen, a.Seen...), a.DataNotes
	o.Tests = append(o.Tests, s.records(a, env.Source().Market(), best))
	return nil
}

// restore opens the best policy of a run, or what a population has published.
func (s *Study) restore(ctx context.Context, c *Cell, factory envs.Factory, seed uint64) (_ evaluate.Actors, free func() error, err error) {
	if !c.Population.IsZero() {
		sum, err := s.populationOf(c, seed)
		return publish.ModelFile(ctx, sum.Published, s.Trainer.Options.Engine, factory, envs.Test), func() error { return nil }, err
	}
	t := s.Trainer
	t.Options.Factory = factory
	p, err := t.Plan(ctx, s.seedDir(c, seed), c.seeded(seed), run.Hooks{})
	if err != nil {
		return nil, nil, err
	}
	tr, _, err := p.Restore(ctx, seed)
	if err != nil {
		return nil, nil, errors.Join(err, p.Close())
	}
	free = func() error { return errors.Join(tr.Close(), p.Close()) }
	if err := tr.UseBest(ctx); err != nil {
		return nil, nil, errors.Join(err, free())
	}
	return tr.Agent(), free, nil
}

// records are those of an assessment: the agent, the seeds that it is made of, equal weight, the
// index and the simple rules. Rules that differ by their seeds only are one.
func (s *Study) records(a *assess.Assessment, m *trading.Market, best int) Test {
	var t Test
	for _, d := range a.Benchmark.Dates {
		t.Dates = append(t.Dates, label(d))
	}
	var seeds []Record
	for i, r := range a.Agents {
		role := RoleSeed
		if i >= len(s.Plan.Seeds) {
			role = RoleEnsemble
		}
		seeds = append(seeds, newRecord(r, m, role))
	}
	agent := seeds[len(seeds)-1]
	switch n := len(s.Plan.Seeds); {
	case s.Plan.Study.Ensemble.By == ByValidation:
		agent = seeds[best]
		agent.Name = "ensemble by " + ByValidation
	case s.Plan.Study.Ensemble.By == "" && n > 1:
		agent = average(seeds)
		agent.Name = fmt.Sprintf("equal capital in %d seeds", n)
	case n == 1:
		agent.Name = "agent"
	}
	agent.Role = RoleAgent
	t.Records = append(t.Records, agent)
	t.Records = append(t.Records, seeds[:len(s.Plan.Seeds)]...)
	t.Records = append(t.Records, newRecord(a.Benchmark, m, RoleBenchmark))
	groups := map[string][]Record{}
	for _, b := range a.Baselines {
		role := RoleRule
		if b.IsIndex() {
			role = RoleIndex
		}
		r := newRecord(b.Record, m, role)
		if b.Group == "" {
			t.Records = append(t.Records, r)
			continue
		}
		groups[b.Group] = append(groups[b.Group], r)
	}
	for _, name := range slices.Sorted(keysOf(groups)) {
		r := average(groups[name])
		r.Name = fmt.Sprintf("%s, %d seeds", name, len(groups[name]))
		t.Records = append(t.Records, r)
	}
	return t
}

func keysOf(m map[string][]Record) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// label writes a date, or the time where it is not midnight.
func label(t time.Time) string {
	if h, m, sec := t.Clock(); h == 0 && m == 0 && sec == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.RFC3339)
}

func newRecord(r *backtest.Record, m *trading.Market, role string) Record {
	out := Record{Name: r.Name, Role: role, Participation: performance.Number(participation(r, m))}
	for t, v := range r.Value {
		out.Value, out.Cash = append(out.Value, v/r.Value[0]), append(out.Cash, r.Cash[t]/v)
		if t < len(r.Turnover) {
			out.Turnover, out.Fees = append(out.Turnover, r.Turnover[t]/v), append(out.Fees, r.Fees[t]/v)
		}
	}
	// At the first bar all is cash by definition.
	n, bars := len(r.Assets), len(r.Value)-1
	for t := 1; t <= bars; t++ {
		sum, most := 0.0, 0.0
		for _, w := range r.Weights[t*n : (t+1)*n] {
			sum, most = sum+w*w, max(most, w)
		}
		out.Herfindahl, out.Largest = out.Herfindahl+sum/float64(bars), out.Largest+most/float64(bars)
	}
	return out
}

// participation is the 95 % quantile over the trades of their share of a bar's turnover in money,
// for a capital of 1.
func participation(r *backtest.Record, m *trading.Market) float64 {
	if r.IsIndex() {
		return math.NaN()
	}
	var shares []float64
	bar, at := 0, 0
	for _, t := range r.Trades {
		for m.Dates[bar].Before(t.Date) {
			bar++
		}
		for at+1 < len(r.Dates) && r.Dates[at+1].Before(t.Date) {
			at++
		}
		if v := m.VolumeAt(bar, t.Asset); v > 0 {
			shares = append(shares, t.Shares/r.Value[at]/v)
		}
	}
	return performance.Quantile(shares, 0.95)
}

// average is the portfolio that has an equal part of its capital in each of some records at their
// beginning.
func average(list []Record) Record {
	n := float64(len(list))
	first := list[0]
	out := Record{Role: first.Role, Value: make([]float64, len(first.Value)), Cash: make([]float64, len(first.Value)), Turnover: make([]float64, len(first.Turnover)), Fees: make([]float64, len(first.Turnover))}
	for _, r := range list {
		for t, v := range r.Value {
			out.Value[t] += v / n
		}
		out.Herfindahl, out.Largest, out.Participation = out.Herfindahl+r.Herfindahl/n, out.Largest+r.Largest/n, max(out.Participation, r.Participation/performance.Number(n))
	}
	for _, r := range list {
		for t, v := range r.Value {
			w := v / n / out.Value[t]
			out.Cash[t] += w * r.Cash[t]
			if t < len(out.Turnover) {
				out.Turnover[t] += w * r.Turnover[t]
				out.Fees[t] += w * r.Fees[t]
			}
		}
	}
	return out
}
