package served

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/versus"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Opponent makes an actor a player of package versus, which owns it.
func Opponent(a *Actor) versus.Policy {
	o := &opponent{a: a}
	for _, name := range a.p.Outputs() {
		if t := a.p.Output(name); t.DType() == tensor.Float32 {
			o.d.Outputs = append(o.d.Outputs, versus.Output{Name: name, Values: t.Float32s()})
			if name == agents.LogProbsOutput {
				o.d.LogProbs = t.Float32s()
			}
		}
	}
	return o
}

type opponent struct {
	a *Actor
	d versus.Decision
}

// Observe implements versus.Policy.
func (o *opponent) Observe(row int, ts *envs.TimeStep) error { return o.a.Observe(row, ts) }

// Decide implements versus.Policy.
func (o *opponent) Decide() (versus.Decision, error) {
	d, err := o.a.Decide()
	if err != nil {
		return versus.Decision{}, err
	}
	o.d.Actions = d.Actions
	return o.d, nil
}

// Remembers implements versus.Policy.
func (o *opponent) Remembers() bool { return len(o.a.p.states) > 0 }

// Close implements versus.Policy.
func (o *opponent) Close() error { return o.a.Close() }
