package walkforward

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/study"
	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The targets of the owner of the population system (specs of the system, "expected figures").
const (
	wantedDistance = 0.25
	wantedDrawdown = -0.15
)

// Target is something that was wanted of a population. The JSON keys are stable.
type Target struct {
	Variant string `json:"variant"`
	// Wanted says of which figure what, Value is the figure.
	Wanted string             `json:"wanted"`
	Value  performance.Number `json:"value"`
	Met    bool               `json:"met"`
}

// populations reports whether some ways of training are populations.
func (s *Study) populations() bool {
	for i := range s.Plan.Cells {
		if !s.Plan.Cells[i].Population.IsZero() {
			return true
		}
	}
	return false
}

// trials counts the configurations that populations have chosen among, by variant and seed those of
// the fold with most.
func (s *Study) trials() (n int) {
	most := map[[2]int]int{}
	for i, o := range s.outcomes() {
		if o == nil {
			continue
		}
		for k, one := range o.Seeds {
			at := [2]int{s.Plan.Cells[i].Variant, k}
			most[at] = max(most[at], one.Trials)
		}
	}
	for _, k := range most {
		n += k
	}
	return n
}

// targets compares every population with what was wanted of it.
func (sum *Summary) targets(s *Study) {
	for v, p := range sum.pools {
		if p == nil || s.Plan.Cells[v].Population.IsZero() {
			continue
		}
		name := s.Plan.Variants[v]
		add := func(value float64, met bool, format string, args ...any) {
			sum.Targets = append(sum.Targets, Target{name, fmt.Sprintf(format, args...), performance.Number(value), met})
		}
		row := func(role string) *PooledRow {
			for i := range sum.Pooled {
				if r := &sum.Pooled[i]; r.Variant == name && r.Role == role {
					return r
				}
			}
			return nil
		}
		if least, rest, ok := s.distance(v); ok {
			add(least, least >= wantedDistance, "mean action pairwise distance of the published experts ≥ %.2f in every test range (least; %d generations after the last restart)", wantedDistance, rest)
		}
		agent := row(RoleAgent)
		for _, role := range []string{RoleIndex, RoleBenchmark} {
			if r := row(role); r != nil {
				d := float64(agent.Figures["annual_return"] - r.Figures["annual_return"])
				add(d, d > 0, "annual return above that of %s (difference)", r.Name)
			}
		}
		worst := 0.0
		for _, f := range sum.Folds {
			if f.Variant == name {
				worst = min(worst, float64(f.row(RoleAgent, "")["max_drawdown"]))
			}
		}
		add(worst, worst >= wantedDrawdown, "drawdown of at most %.0f %% in every test range (largest)", -100*wantedDrawdown)
		add(float64(agent.Sharpe.Low), agent.Sharpe.Low > 0, "stable Sharpe ratio: its %.0f %% interval above 0 (lower end)", 100*level)
	}
}

// distance is the least distance between the published experts of a variant over folds and seeds,
// and the least number of generations since one of them restarted.
func (s *Study) distance(variant int) (least float64, rest int, ok bool) {
	least, rest = math.Inf(1), math.MaxInt
	for i, o := range s.outcomes() {
		if o == nil || s.Plan.Cells[i].Variant != variant {
			continue
		}
		for _, one := range o.Seeds {
			if one.MAPD.Defined() {
				least, rest, ok = min(least, float64(one.MAPD)), min(rest, one.SinceRestart), true
			}
		}
	}
	return least, rest, ok
}

// Difference is that of the agent of a variant to that of another one over the same test ranges,
// with intervals over time. The JSON keys are stable.
type Difference struct {
	Variant      string               `json:"variant"`
	To           string               `json:"to"`
	Sharpe       performance.Interval `json:"sharpe"`
	AnnualReturn performance.Interval `json:"annual_return"`
}

// before compares each variant with the one before it.
func (sum *Summary) before(s *Study) error {
	for v := 1; v < len(sum.pools); v++ {
		a, b := sum.pools[v-1], sum.pools[v]
		if a == nil || b == nil || len(a.samples[0].r) != len(b.samples[0].r) {
			continue
		}
		x, y := b.samples[b.find(RoleAgent)], a.samples[a.find(RoleAgent)]
		draws, err := performance.Resample([][]float64{x.r, y.r}, x.rate, performance.Plan{Resamples: resamples, Key: rng.New(0).Split("walk-forward")})
		if err != nil {
			return fmt.Errorf("%s: %w", s.Plan.Variants[v], err)
		}
		sharpe, annual := make([]float64, resamples), make([]float64, resamples)
		for i := range sharpe {
			sharpe[i] = draws.Sharpe[0][i] - draws.Sharpe[1][i]
			annual[i] = x.yearly(draws.TotalReturn[0][i], len(x.r)) - y.yearly(draws.TotalReturn[1][i], len(y.r))
		}
		d := Difference{Variant: s.Plan.Variants[v], To: s.Plan.Variants[v-1]}
		d.Sharpe = performance.IntervalOf(performance.Sharpe(x.excess())-performance.Sharpe(y.excess()), sharpe, level).Scale(math.Sqrt(x.periods))
		d.AnnualReturn = performance.IntervalOf(x.annual(x.r)-y.annual(y.r), annual, level)
		sum.Before = append(sum.Before, d)
	}
	return nil
}

// beforeTable compares each variant with the one before it.
func (sum *Summary) beforeTable(dash string) (head []string, rows [][]string) {
	head = []string{"variant", "compared with", "Δ Sharpe", "interval", "Δ return", "interval"}
	for i := range sum.Before {
		d := &sum.Before[i]
		rows = append(rows, []string{d.Variant, d.To, study.Signed(d.Sharpe.Point), interval(&d.Sharpe, dash), study.Signed(d.AnnualReturn.Point), interval(&d.AnnualReturn, dash)})
	}
	return head, rows
}

// targetTable says which targets are met.
func (sum *Summary) targetTable(dash string) (head []string, rows [][]string) {
	head = []string{"variant", "wanted", "is", "met"}
	for _, t := range sum.Targets {
		met := "no"
		if t.Met {
			met = "yes"
		}
		rows = append(rows, []string{t.Variant, t.Wanted, number(t.Value, dash), met})
	}
	return head, rows
}
