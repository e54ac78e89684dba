package scml

import (
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/opponents"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// shielded is what the names of agents inside a shield begin with.
const shielded = "shielded_"

// Find returns the kind of a name or a type, as opponents.Find does, and of agents inside a shield.
func Find(name string) (*opponents.Kind, error) {
	inside, ok := strings.CutPrefix(name, shielded)
	if !ok {
		return opponents.Find(name)
	}
	k, err := opponents.Find(inside)
	if err != nil {
		return nil, err
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
