package livetrade

import (
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/trader"
)

// Events of experts come once, over a stop, and have ended when another policy trades.
func TestExperts(t *testing.T) {
	limits := trader.ExpertLimits{Drawdown: &[2]float64{0.15, 0.075}, CVaR: &[2]float64{0.05, 0.025}}
	m := monitored(t, "orders: {per_minute: 5}")
	n := 0
	for _, x := range []struct {
		list   []trader.Expert
		forget bool
		want   []riskEvent
	}{
		{nil, false, nil},
		{[]trader.Expert{{}, {Drawdown: 0.14}, {}}, false, nil},
		{[]trader.Expert{{}, {Masked: true, Drawdown: 0.16}, {}}, false, []riskEvent{{what: "expert_masked", on: true, expert: "expert_1", value: 0.16, threshold: 0.15, action: "the router does not choose it"}}},
		{[]trader.Expert{{}, {Masked: true, Drawdown: 0.1}, {Cut: true, CVaR: 0.06}}, false, []riskEvent{{what: "expert_cut", on: true, expert: "expert_2", value: 0.06, threshold: 0.05, action: "exposure is cut while it is in charge"}}},
		{[]trader.Expert{{}, {Masked: true, Drawdown: 0.1}, {Cut: true, CVaR: 0.06}}, false, nil},
		{[]trader.Expert{{Masked: true, Drawdown: 0.2}, {Drawdown: 0.07}, {CVaR: 0.02}}, false, []riskEvent{
			{what: "expert_masked", on: true, expert: "expert_0", value: 0.2, threshold: 0.15, action: "the router does not choose it"},
			{what: "expert_masked", expert: "expert_1", value: 0.07, threshold: 0.075, action: "the limit has ended"},
			{what: "expert_cut", expert: "expert_2", value: 0.02, threshold: 0.025, action: "the limit has ended"},
		}},
		{nil, true, []riskEvent{{what: "expert_masked", expert: "expert_0", action: "another policy trades"}}},
		{[]trader.Expert{{}, {}}, false, nil},
	} {
		var events []riskEvent
		if m = again(t, m); x.forget {
			m.forgetExperts(&events)
		}
		m.tellExperts(x.list, limits, &events)
		if !slices.Equal(events, x.want) {
			t.Errorf("step %d: %+v, expected %+v", n, events, x.want)
		}
		n++
	}
	if n != 8 {
		t.Errorf("%d steps", n)
	}
}
