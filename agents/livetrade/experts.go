package livetrade

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/trader"
)

// Events of the experts of a policy that is a router. The model masks and cuts by what the
// account made while each was in charge, as it did in training, and remembers it (see
// bake.Router); here it is reported.
const (
	eventExpertMasked = "expert_masked"
	eventExpertCut    = "expert_cut"
)

// expertState is what was told of an expert.
type expertState struct {
	Masked bool `json:"masked,omitempty"`
	Cut    bool `json:"cut,omitempty"`
}

// expertName names the expert of a place in the router's document, as the model's own parts do.
func expertName(i int) string { return fmt.Sprintf("expert_%d", i) }

// tellExperts tells what has changed since the decision before.
func (m *monitor) tellExperts(list []trader.Expert, limits trader.ExpertLimits, events *[]riskEvent) {
	for len(m.experts) < len(list) {
		m.experts = append(m.experts, expertState{})
	}
	for i, e := range list {
		was := &m.experts[i]
		if e.Masked != was.Masked {
			was.Masked = e.Masked
			*events = append(*events, expertEvent(eventExpertMasked, i, e.Masked, e.Drawdown, limits.Drawdown, "the router does not choose it"))
		}
		if e.Cut != was.Cut {
			was.Cut = e.Cut
			*events = append(*events, expertEvent(eventExpertCut, i, e.Cut, e.CVaR, limits.CVaR, "exposure is cut while it is in charge"))
		}
	}
}

// forgetExperts tells that what was told has ended: another policy trades, with experts of its own.
func (m *monitor) forgetExperts(events *[]riskEvent) {
	for i, was := range m.experts {
		if was.Masked {
			*events = append(*events, riskEvent{what: eventExpertMasked, expert: expertName(i), action: "another policy trades"})
		}
		if was.Cut {
			*events = append(*events, riskEvent{what: eventExpertCut, expert: expertName(i), action: "another policy trades"})
		}
	}
	m.experts = nil
}

// expertEvent is that a limit on an expert was passed, or that this has ended.
func expertEvent(what string, i int, on bool, value float64, limit *[2]float64, action string) riskEvent {
	x := riskEvent{what: what, on: on, expert: expertName(i), value: value, action: action}
	if !on {
		x.action = "the limit has ended"
	}
	switch {
	case limit == nil: // The model was made before it had them to show.
	case on:
		x.threshold = limit[0]
	default:
		x.threshold = limit[1]
	}
	return x
}
