package a2c

import (
	"errors"

	"onnxrl/agents"
	"onnxrl/configs"
)

// Kind makes agents of this algorithm from a configuration.
var Kind = agents.Kind{Name: "a2c", Parse: func(configs.Section) (agents.Maker, error) { return nil, errors.New("a2c: under construction") }}
