package report_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// late is the duel's agent with returns that are moved by so many days and shifted by a mean.
func late(d report.Document, days int, shift float64) []float64 {
	own := d.Strategies[0].Value
	v, n := []float64{own[0]}, len(own)-1
	for t := range n {
		from := (t + n - days) % n
		v = append(v, v[t]*(own[from+1]/own[from]+shift))
	}
	return v
}

// TestLagFragile: what one bar of delay destroys by more than chance is said in the verdict's own
// sentence and is no evidence; what it may have taken by chance is a warning.
func TestLagFragile(t *testing.T) {
	flat := slices.Repeat([]float64{10000}, 751)
	cases := 0
	for _, c := range []struct {
		name              string
		doc               report.Document
		lag               func(d report.Document) []report.Variant
		fragile, evidence bool
		line, warning     string
	}{
		{"stays", duel(6, 750, 0.002, 0), func(d report.Document) []report.Variant {
			return []report.Variant{{X: 0, Value: d.Strategies[0].Value}, {X: 1, Value: late(d, 0, -0.0001)}}
		}, false, true, "", ""},
		{"halved for certain", duel(6, 750, 0.002, 0), func(d report.Document) []report.Variant {
			return []report.Variant{{X: 1, Value: late(d, 0, -0.0015)}}
		}, true, false, "no evidence of skill: the result is lag-fragile. It is LAG-FRAGILE: with decisions filled one bar later the total return is ", ""},
		{"the lead is gone", duel(6, 750, 0.002, 0.0013), func(d report.Document) []report.Variant {
			return []report.Variant{{X: 2, Value: late(d, 0, -0.0009)}}
		}, true, false, "LAG-FRAGILE: with decisions filled 2 bars later", ""},
		{"never trades when late", duel(6, 750, 0.002, 0), func(report.Document) []report.Variant {
			return []report.Variant{{X: 1, Value: flat}}
		}, true, false, "the total return is 0.0% and the Sharpe ratio –", ""},
		{"halved by noise of its own", duel(26, 200, 0.0012, 0.002), func(report.Document) []report.Variant {
			return []report.Variant{{X: 1, Value: duel(27, 200, 0, 0).Strategies[0].Value}}
		}, false, false, "", "That may be chance"},
		{"nothing to destroy", duel(1, 750, -0.002, 0.001), func(d report.Document) []report.Variant {
			return []report.Variant{{X: 1, Value: late(d, 0, -0.002)}}
		}, false, false, "", ""},
		{"not tried", duel(6, 750, 0.002, 0), func(report.Document) []report.Variant { return nil }, false, true, "", "No delay of decisions was tried"},
	} {
		for _, v := range c.lag(c.doc) {
			v.Strategy = "the agent"
			c.doc.Lag = append(c.doc.Lag, v)
		}
		s := summarise(t, c.doc)
		v := s.Verdict
		if v.LagFragile != c.fragile || v.Evidence != c.evidence || v.LagFragile != strings.Contains(v.Line, "LAG-FRAGILE") || !strings.Contains(v.Line, c.line) {
			t.Errorf("%s: %+v; delays %+v", c.name, v, s.Lag)
		}
		if found := slices.ContainsFunc(s.Warnings, func(w string) bool { return c.warning != "" && strings.Contains(w, c.warning) }); found != (c.warning != "") {
			t.Errorf("%s: warnings %q", c.name, s.Warnings)
		}
		cases++
	}
	if cases != 7 {
		t.Errorf("%d cases", cases)
	}
}

// TestLagOfNoise: where neither record has any skill, a delay is seldom said to destroy one.
func TestLagOfNoise(t *testing.T) {
	marked, halved := 0, 0
	seeds := longtest.Cases(t, 100, 30)
	for seed := range uint64(seeds) {
		d := duel(1000+seed, 250, 0.0004, 0.0004)
		d.Lag = []report.Variant{{Strategy: "the agent", X: 1, Value: duel(5000+seed, 250, 0.0004, 0).Strategies[0].Value}}
		d.Bootstrap.Resamples = 200
		s := summarise(t, d)
		if s.Verdict.LagFragile {
			marked++
		}
		if own := s.Strategies[0].Metrics.Get("sharpe"); own > 0 && float64(s.Lag[0].Sharpe) < own/2 {
			halved++
		}
	}
	t.Logf("%d marked, %d halved", marked, halved)
	if marked*100 > 7*seeds || halved*5 < seeds {
		t.Errorf("%d of %d are marked, and %d have less than half of their ratio", marked, seeds, halved)
	}
}

// TestInSample: results on data that the agent has seen say so first, and are no evidence.
func TestInSample(t *testing.T) {
	d := duel(6, 750, 0.002, 0)
	d.Seen = []string{"The agent was chosen by its results on these data."}
	v := summarise(t, d).Verdict
	if !v.InSample || v.Evidence || !v.Beats || !strings.HasPrefix(v.Line, "These are not results on new data: The agent was chosen by its results on these data. The agent is ahead of ") || !strings.Contains(v.Line, "the agent has seen these data") {
		t.Errorf("%+v", v)
	}
}
