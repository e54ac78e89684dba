package report

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// delayed returns the agent's record with the shortest delay of its decisions, nil where none was
// tried.
func (s *Summary) delayed() *VariantResult {
	for i := range s.Lag {
		if l := &s.Lag[i]; l.Strategy == s.Strategies[0].Name && l.X > 0 {
			return l // they are in the order of the delay
		}
	}
	return nil
}

// lost adds to each delayed record of the agent the interval of what the delay costs: the Sharpe
// ratio as decided minus the delayed one, in the same resamples of both, so that what they have in
// common cancels.
func (d *Document) lost(s *Summary, rate, block float64) error {
	own, root := performance.Returns(d.Strategies[0].Value), math.Sqrt(d.PeriodsPerYear)
	for i := range s.Lag {
		l := &s.Lag[i]
		if l.Strategy != d.Strategies[0].Name || l.X <= 0 {
			continue
		}
		draws, err := performance.Resample([][]float64{own, l.returns}, rate, performance.Plan{
			Resamples: d.Bootstrap.Resamples, Block: block, Key: rng.New(d.Bootstrap.Seed).Split("report/lag", i),
		})
		if err != nil {
			return fmt.Errorf("report: delay of %g: %w", l.X, err)
		}
		loss := make([]float64, d.Bootstrap.Resamples)
		for b := range loss {
			loss[b] = draws.Sharpe[0][b] - draws.Sharpe[1][b]
		}
		point := s.Strategies[0].Metrics.Get("sharpe") - float64(l.Sharpe)
		iv := performance.IntervalOf(point/root, loss, d.Bootstrap.Level).Scale(root)
		l.SharpeLoss = &iv
	}
	return nil
}

// fragile reports whether the shortest delay destroys the result: the Sharpe ratio, which is above
// 0, falls below half of itself, or a lead over the benchmark is gone. One record differs from
// another by chance, too, so the loss must be more than noise: the bootstrap's interval of the
// difference between the two Sharpe ratios lies above 0. Only a lead that would otherwise count as
// evidence has no such benefit of the doubt.
func (s *Summary) fragile(benchmark int, ahead, evidence bool) bool {
	l := s.delayed()
	own := s.Strategies[0].Metrics.Get("sharpe")
	if l == nil || !(own > 0) {
		return false
	}
	bench := s.Strategies[benchmark].Metrics
	stays := float64(l.TotalReturn) > bench.Get("total_return") && float64(l.Sharpe) > bench.Get("sharpe")
	gone := ahead && !stays
	// An undefined ratio, as of no trade at all, is a loss.
	halved := !(float64(l.Sharpe) >= own/2)
	certain := !l.Sharpe.Defined() || l.SharpeLoss != nil && l.SharpeLoss.Low > 0
	return (gone || halved) && certain || gone && evidence
}

// late says by how much the decisions of a record are delayed.
func (l *VariantResult) late() string {
	if l.X == 1 {
		return "one bar"
	}
	return trimZeros(l.X) + " bars"
}
