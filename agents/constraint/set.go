package constraint

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

// Set are the constraints of a learner over n environments: what their episodes cost, and the
// multipliers. It is not safe for concurrent use. Nothing is allocated between two episodes.
type Set struct {
	list []*limit
	// here says which rows were present when the round began.
	here []bool
}

// limit is one constraint.
type limit struct {
	c Config
	// column is the cost's place in envs.Spec.Costs.
	column int
	// spent is what the episodes that go on have cost, [n], ended what those did that ended since
	// λ last moved, or the steps that were taken, and recent the newest before these, with a window.
	spent, ended, recent []float64
	// sorted is scratch.
	sorted []float64
	*multiplier
	estimate estimate
	// The names of the metrics.
	costTag, lambdaTag, varTag, cvarTag string
}

// estimate is what is known of the episodes.
type estimate struct {
	// Episodes counts those of all estimates; 0 says that there is none.
	Episodes int64 `json:"episodes"`
	// Mean is that of the newest estimate, and VaR and CVaR are, where the measure is cvar.
	Mean float64 `json:"mean"`
	VaR  float64 `json:"var"`
	CVaR float64 `json:"cvar"`
}

// New returns the constraints of a configuration on environments of a spec. Costs that the
// environment does not have, or that are limited twice, are errors.
func New(list []Config, spec *envs.Spec, n int) (*Set, error) {
	s := &Set{here: make([]bool, n)}
	for i, c := range list {
		column := slices.Index(spec.Costs, c.Cost)
		switch {
		case len(spec.Costs) == 0:
			return nil, fmt.Errorf("agent.constraints[%d].cost: %q, but steps of %s have no costs beside the reward", i, c.Cost, spec.Name)
		case column < 0:
			return nil, fmt.Errorf("agent.constraints[%d].cost: %q is no cost of %s, which has %q", i, c.Cost, spec.Name, spec.Costs)
		case slices.ContainsFunc(list[:i], func(o Config) bool { return o.Cost == c.Cost }):
			return nil, fmt.Errorf("agent.constraints[%d].cost: %q is limited already", i, c.Cost)
		}
		m, err := newMultiplier(c)
		if err != nil {
			return nil, err
		}
		tag := "constraint/" + c.Cost + "/"
		s.list = append(s.list, &limit{c: c, column: column, spent: make([]float64, n), multiplier: m, costTag: tag + "cost", lambdaTag: tag + "lambda", varTag: tag + "var", cvarTag: tag + "cvar"})
	}
	return s, nil
}

// Len is the number of constraints.
func (s *Set) Len() int { return len(s.list) }

// Column is the place of constraint k's cost in envs.Spec.Costs.
func (s *Set) Column(k int) int { return s.list[k].column }

// Begin takes in the batch that a decision is taken on: rows that begin an episode have spent
// nothing.
func (s *Set) Begin(b *vector.Batch) {
	for e, t := range b.Type {
		s.here[e] = b.Present == nil || b.Present[e]
		if t == envs.Mid {
			continue
		}
		for _, l := range s.list {
			l.spent[e] = 0
		}
	}
}

// Spent is what environment e's episode has cost before the step that has begun.
func (s *Set) Spent(k, e int) float64 { return s.list[k].spent[e] }

// End takes in what the decision led to.
func (s *Set) End(b *vector.Batch) {
	for e, t := range b.Type {
		if !s.here[e] {
			continue
		}
		for _, l := range s.list {
			cost := b.Costs[e][l.column]
			l.spent[e] += cost
			switch {
			case l.c.Over == Step:
				l.ended = append(l.ended, cost)
			case t == envs.Last:
				l.ended = append(l.ended, l.spent[e])
			}
		}
	}
}

// Forget drops the episodes that ended since the multipliers last moved.
func (s *Set) Forget() {
	for _, l := range s.list {
		l.ended = l.ended[:0]
	}
}

// Update moves the multipliers for which enough episodes have ended, and estimates their measures.
func (s *Set) Update() error {
	for _, l := range s.list {
		// Of too few there is no tail.
		if len(l.ended) < l.c.Episodes || len(l.recent)+len(l.ended) < l.c.least() {
			continue
		}
		sample := l.ended
		if l.c.Window > 0 {
			l.recent = append(l.recent, l.ended...)
			if n := len(l.recent) - l.c.Window; n > 0 {
				l.recent = append(l.recent[:0], l.recent[n:]...)
			}
			l.sorted = append(l.sorted[:0], l.recent...)
			sample = l.sorted
		} else {
			l.recent = l.recent[:0]
		}
		est := &l.estimate
		sum := 0.0
		for _, x := range sample {
			sum += x
		}
		est.Episodes += int64(len(l.ended))
		est.Mean = sum / float64(len(sample))
		measure := est.Mean
		if l.c.Measure == CVaR {
			est.VaR, est.CVaR = Tail(sample, l.c.Alpha)
			measure = est.CVaR
		}
		l.ended = l.ended[:0]
		if est.Episodes <= int64(l.c.WarmupEpisodes) {
			continue
		}
		if err := l.move(&l.c, measure); err != nil {
			return fmt.Errorf("multiplier of %s: %w", l.c.Cost, err)
		}
	}
	return nil
}

// Lambda is the multiplier of constraint k.
func (s *Set) Lambda(k int) float64 { return float64(s.list[k].lambda[0]) }

// Rescale is 1/(1 + Σ λ), by which whatever has the costs' multiplied by λ in it is scaled, so that
// its size does not depend on them.
func (s *Set) Rescale() float64 {
	sum := 1.0
	for _, l := range s.list {
		sum += float64(l.lambda[0])
	}
	return 1 / sum
}

// Alpha is the share of episodes or steps that are not in the tail of constraint k.
func (s *Set) Alpha(k int) float64 { return s.list[k].c.Alpha }

// Excess is the largest of what measures are above their limits, as a part of the limit, 0 within a
// twentieth of it, and the largest number there is where one was not estimated yet. A nil Set has
// none.
func (s *Set) Excess() (most float64) {
	if s == nil {
		return 0
	}
	for _, l := range s.list {
		if l.estimate.Episodes == 0 {
			return math.MaxFloat64
		}
		measure := l.estimate.Mean
		if l.c.Measure == CVaR {
			measure = l.estimate.CVaR
		}
		if over := (measure - l.c.Limit) / max(math.Abs(l.c.Limit), 1e-9); over > 0.05 {
			most = max(most, over)
		}
	}
	return most
}

// Threshold is the ν that constraint k charges against, given the quantile of the cost: that, but not
// more than the limit. No ν above the limit can have ν + E[(cost − ν)⁺]/(1 − alpha) below it, and
// where the CVaR is at the limit the quantile is not above it. So nothing but the way there changes:
// while the tail is far beyond the limit, all episodes beyond it are charged, and not a share of 1 −
// alpha of those that there were.
func (s *Set) Threshold(k int, quantile float64) float64 { return min(quantile, s.list[k].c.Limit) }

// Charge is what a step that cost so much, in an episode that had cost before, counts for: of a
// mean, the cost; of a cvar, what it adds to (episode's cost − ν)⁺/(1 − alpha), or (cost − ν)⁺/(1 −
// alpha) where steps are measured, nothing before there is a first estimate of ν.
func (s *Set) Charge(k int, before, cost float64) float64 {
	l := s.list[k]
	if l.c.Measure == Mean {
		return cost
	}
	if l.estimate.Episodes == 0 {
		return 0
	}
	v := s.Threshold(k, l.estimate.VaR)
	if l.c.Over == Step {
		return max(cost-v, 0) / (1 - l.c.Alpha)
	}
	return (max(before+cost-v, 0) - max(before-v, 0)) / (1 - l.c.Alpha)
}

// Measure writes the metrics: of each constraint constraint/NAME/lambda and, once there is an
// estimate, constraint/NAME/cost, the mean over episodes, and of a cvar constraint/NAME/cvar and
// constraint/NAME/var.
func (s *Set) Measure(m agents.Metrics) {
	for _, l := range s.list {
		m[l.lambdaTag] = float64(l.lambda[0])
		if l.estimate.Episodes == 0 {
			continue
		}
		m[l.costTag] = l.estimate.Mean
		if l.c.Measure == CVaR {
			m[l.cvarTag], m[l.varTag] = l.estimate.CVaR, l.estimate.VaR
		}
	}
}

// Editable returns an *agents.RebuildError where Edit cannot take a configuration: other limits,
// numbers of episodes, rates, gains and bounds it can, but neither more nor fewer constraints nor
// other costs, measures, numbers of quantiles and methods. A nil Set has none.
func (s *Set) Editable(list []Config) error {
	if s == nil && len(list) == 0 {
		return nil
	}
	if s == nil || len(list) != len(s.list) {
		return &agents.RebuildError{Path: "constraints"}
	}
	for i, l := range s.list {
		key := ""
		switch c := &list[i]; {
		case c.Cost != l.c.Cost:
			key = "cost"
		case c.Measure != l.c.Measure:
			key = "measure"
		case c.Over != l.c.Over:
			key = "over"
		case c.Quantiles != l.c.Quantiles:
			key = "quantiles"
		case c.Method != l.c.Method:
			key = "method"
		default:
			continue
		}
		return &agents.RebuildError{Path: fmt.Sprintf("constraints[%d].%s", i, key)}
	}
	return nil
}

// Edit takes a configuration that Editable allows, from now on.
func (s *Set) Edit(list []Config) {
	for i := range list {
		s.list[i].c = list[i]
	}
}

// saved is what a constraint is saved as, beside arrays and the optimiser.
type saved struct {
	Estimate estimate   `json:"estimate"`
	PID      controller `json:"pid"`
}

// SaveState implements checkpoint.Stater.
func (s *Set) SaveState(w *checkpoint.Writer) error {
	for i, l := range s.list {
		w := w.Scope(fmt.Sprint(i))
		w.PutJSON("state", saved{l.estimate, l.pid})
		w.PutFloat32s("lambda", l.lambda)
		w.PutFloat64s("spent", l.spent)
		w.PutFloat64s("ended", l.ended)
		if l.c.Window > 0 {
			w.PutFloat64s("recent", l.recent)
		}
		network.SaveOptimizer(w.Scope("optim"), l.opt)
	}
	return nil
}

// LoadState implements checkpoint.Stater.
func (s *Set) LoadState(r *checkpoint.Reader) error {
	for i, l := range s.list {
		r := r.Scope(fmt.Sprint(i))
		var x saved
		if err := r.JSON("state", &x); err != nil {
			return err
		}
		if err := r.Float32sInto("lambda", l.lambda, 1); err != nil {
			return err
		}
		if err := r.Float64sInto("spent", l.spent, len(l.spent)); err != nil {
			return err
		}
		ended, _, err := r.Float64s("ended")
		if err != nil {
			return err
		}
		l.estimate, l.pid, l.ended, l.recent = x.Estimate, x.PID, append(l.ended[:0], ended...), l.recent[:0]
		if r.Has("recent") {
			recent, _, err := r.Float64s("recent")
			if err != nil {
				return err
			}
			l.recent = append(l.recent, recent...)
		}
		if err := network.LoadOptimizer(r.Scope("optim"), l.opt); err != nil {
			return err
		}
	}
	return nil
}
