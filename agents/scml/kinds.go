package scml

import (
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// shielded is what the names of agents inside a shield begin with.
const shielded = "shielded_"

// Type is the class of our agent.
const Type = "LitaAgentHRL"

// Baseline is our agent without any network: the first layer alone.
var Baseline = opponents.Kind{
	Name: "baseline", Type: "LitaBaselineAgent", Summary: "our agent without networks: penguin's logic without dice, inside a shield",
	New: func(*opponents.Dice) world.Agent { return NewAgent(Layers{}) },
}

// Find returns the kind of a name or a type, as opponents.Find does, and of agents inside a shield.
func Find(name string) (*opponents.Kind, error) {
	if name == Baseline.Name || name == Baseline.Type {
		return &Baseline, nil
	}
	inside, ok := strings.CutPrefix(name, shielded)
	k, err := opponents.Find(inside)
	if err != nil {
		return nil, fmt.Errorf("no agent is called %q; %s", name, configs.Nearest(name, Names()))
	}
	if !ok {
		return k, nil
	}
	if _, ok := k.New(opponents.LoadedDice(0)).(world.Synchronous); !ok {
		return nil, fmt.Errorf("the agent %s decides about each negotiation by itself; a shield is for agents that decide about all of them together", k.Name)
	}
	return &opponents.Kind{
		Name: shielded + k.Name, Type: "Shielded" + k.Type, Summary: k.Summary + "; inside a shield",
		New: func(d *opponents.Dice) world.Agent { return shield.Around(k.New(d).(world.Synchronous)) },
	}, nil
}

// Names lists the names that Find knows.
func Names() (list []string) {
	list = append(list, Baseline.Name)
	for _, k := range opponents.Kinds {
		list = append(list, k.Name)
	}
	for _, k := range opponents.Kinds {
		if _, err := Find(shielded + k.Name); err == nil {
			list = append(list, shielded+k.Name)
		}
	}
	return list
}
