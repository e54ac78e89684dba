package bake

import (
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// MetaExpertLimits is the metadata key of a [Router]'s [ExpertLimits], in JSON.
const MetaExpertLimits = MetaPrefix + "expert_limits"

// CutState is the state float32 [batch, N] of a [Router] with a limit on CVaR that is 1 for experts
// whose positions are cut while they are in charge.
const CutState = "router/cut"

// ExpertLimits are the limits of a router on the risk of its experts, each with the value at which
// it ends; nil for none.
type ExpertLimits struct {
	Drawdown *[2]float64 `json:"drawdown,omitempty"`
	CVaR     *[2]float64 `json:"cvar,omitempty"`
}

// setLimits writes the limits into a model.
func (r Router) setLimits(m *onnx.Model) error {
	var l ExpertLimits
	if d := r.Drawdown; d != nil {
		l.Drawdown = &[2]float64{d.Limit, d.Resume}
	}
	if v := r.CVaR; v != nil {
		l.CVaR = &[2]float64{v.Limit, v.Resume}
	}
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	m.SetMeta(MetaExpertLimits, string(text))
	return nil
}

// ParseExpertLimits reads what a model has below [MetaExpertLimits].
func ParseExpertLimits(text string) (l ExpertLimits, err error) {
	if err := json.Unmarshal([]byte(text), &l); err != nil {
		return l, fmt.Errorf("metadata %s: %w", MetaExpertLimits, err)
	}
	return l, nil
}
