package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/export/report/performance"
	"github.com/onnxrl/onnxrl/export/report/plots"
)

// HoldingTimes sum up for how long positions are kept: the number of closes in a row at which an
// asset is held. A position that is reduced or added to stays the same one.
type HoldingTimes struct {
	Count   int                `json:"count"`
	Open    int                `json:"open"` // those that are still held at the end, which count as long as they were seen
	Mean    performance.Number `json:"mean"`
	Median  performance.Number `json:"median"`
	Longest int                `json:"longest"`

	closes []float64
}

// holdings finds the positions of a strategy; nil where its weights are unknown.
func (d *Document) holdings(s *Strategy) *HoldingTimes {
	n := len(d.Assets)
	if s.Weights == nil || n == 0 {
		return nil
	}
	h := &HoldingTimes{}
	for i := range n {
		run := 0
		for t := range d.Dates {
			held := s.Weights[t*n+i] > 0
			if held {
				run++
			}
			if last := t == len(d.Dates)-1; run > 0 && (!held || last) {
				if held {
					h.Open++
				}
				h.closes = append(h.closes, float64(run))
				h.Longest, run = max(h.Longest, run), 0
			}
		}
	}
	h.Count = len(h.closes)
	h.Mean, h.Median = performance.Number(math.NaN()), performance.Number(performance.Quantile(h.closes, 0.5))
	if h.Count > 0 {
		sum := 0.0
		for _, v := range h.closes {
			sum += v
		}
		h.Mean = performance.Number(sum / float64(h.Count))
	}
	return h
}

// gains are the money that each asset has earned, fees taken off: what is held at the end and what
// sales have brought, less what was held at the start and what purchases have cost. It is nil where
// weights or trades are unknown. Together with what cash has earned, they are the whole gain.
func (d *Document) gains(s *Strategy) []float64 {
	n, last := len(d.Assets), len(d.Dates)-1
	if s.Weights == nil || s.Trades == nil {
		return nil
	}
	g := make([]float64, n)
	for i := range g {
		g[i] = s.Weights[last*n+i]*s.Value[last] - s.Weights[i]*s.Value[0]
	}
	for _, t := range s.Trades {
		if t.Side == Buy {
			g[t.Asset] -= t.Shares*t.Price + t.Fee
		} else {
			g[t.Asset] += t.Shares*t.Price - t.Fee
		}
	}
	return g
}

// spans are the lengths that positions are counted by, in closes.
var spans = []struct {
	name string
	most float64
}{{"1", 1}, {"2–5", 5}, {"6–20", 20}, {"21–60", 60}, {"61–250", 250}, {"over 250", math.Inf(1)}}

// mostAssets is how many assets a figure names; the rest are one line.
const mostAssets = 20

// assetFigures draws how long the agent keeps its positions, and what each asset has contributed.
func (d *Document) assetFigures(s *Summary, alt func(string, ...any) string) (all []figure, err error) {
	agent := &d.Strategies[0]
	if h := s.Strategies[0].Holdings; h != nil && h.Count > 0 {
		names, counts := make([]string, len(spans)), make([]float64, len(spans))
		for k := range spans {
			names[k] = spans[k].name
		}
		for _, v := range h.closes {
			counts[slices.IndexFunc(spans, func(x struct {
				name string
				most float64
			}) bool {
				return v <= x.most
			})]++
		}
		f, err := plots.Bars("holding", alt("How long %s keeps its positions", agent.Name), "Positions by the number of closes in a row at which they are held", plots.Plain, names, []plots.Line{{Name: agent.Name, Kind: plots.Agent, Y: counts}})
		if err != nil {
			return nil, err
		}
		all = append(all, figure{f, "Holding times", fmt.Sprintf("%s: %d positions, held at %s closes on average and %s at the median; %d are still held at the end, and counted as long as they were seen.",
			agent.Name, h.Count, fixed(float64(h.Mean), 1), fixed(float64(h.Median), 0), h.Open)})
	}
	gains := d.gains(agent)
	if gains == nil {
		return all, nil
	}
	other := d.gains(&d.Strategies[d.Benchmark])
	order := make([]int, len(gains))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(math.Abs(gains[b]), math.Abs(gains[a])) })
	named, rest := order, []int(nil)
	if len(order) > mostAssets {
		named, rest = order[:mostAssets-1], order[mostAssets-1:]
	}
	dot := func(name string, assets []int) plots.Dot {
		c := plots.Dot{Name: name, Kind: plots.Agent, Signed: true}
		theirs := 0.0
		for _, i := range assets {
			c.Value += gains[i] / agent.Value[0]
			if other != nil {
				theirs += other[i] / d.Strategies[d.Benchmark].Value[0]
			}
		}
		c.Low, c.High = min(c.Value, 0), max(c.Value, 0)
		if other != nil {
			c.Each = []float64{theirs}
		}
		return c
	}
	slices.SortStableFunc(named, func(a, b int) int { return cmp.Compare(gains[b], gains[a]) })
	var dots []plots.Dot
	for _, i := range named {
		dots = append(dots, dot(d.Assets[i], []int{i}))
	}
	if len(rest) > 0 {
		dots = append(dots, dot(fmt.Sprintf("%d others", len(rest)), rest))
	}
	f, err := plots.Dots("contribution", alt("Contribution of each asset to the return of %s", agent.Name), "Contribution to the total return", "gains, fees taken off, as a share of the first value", plots.Percent, dots, []plots.Mark{{At: 0}})
	return append(all, figure{f, "Contribution by asset", "The contributions add up to the total return. Small strokes are the benchmark's."}), err
}
