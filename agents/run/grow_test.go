package run

import (
	"reflect"
	"slices"
	"testing"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/runtime/optim"
)

func TestLengthDependent(t *testing.T) {
	type inner struct {
		Clip optim.Schedule `yaml:"clip,omitempty"`
	}
	type config struct {
		Rate        optim.Schedule  `yaml:"rate"`
		Fixed       optim.Schedule  `yaml:"fixed"`
		Inner       *inner          `yaml:"inner"`
		None        *inner          `yaml:"none"`
		Embedded    inner           `yaml:",inline"`
		Exploration float64         `yaml:"exploration_fraction"`
		Eval        evaluate.Config `yaml:"eval"`
	}
	c := config{Rate: optim.Schedule{Kind: "linear"}, Fixed: optim.Schedule{Kind: "cosine", Steps: 9}, Inner: &inner{optim.Schedule{Kind: "cosine"}}, Embedded: inner{optim.Schedule{Kind: "step", Gamma: 0.5}}}
	if got := lengthDependent(reflect.ValueOf(c), "agent"); !slices.Equal(got, []string{"agent.rate", "agent.inner.clip", "agent.exploration_fraction"}) {
		t.Errorf("%q", got)
	}
}
