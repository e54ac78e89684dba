package pettingzoo

import (
	"slices"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
)

// Config describes worlds of Python.
type Config struct {
	// Config is that of the workers. ID is the module that makes a world, such as
	// mpe2.simple_spread_v3, and Kwargs are the arguments; Info, Costs and MaskInfo are keys of the
	// infos of agents.
	gymnasium.Config `yaml:",inline"`
	// API is parallel, where all agents act at once, or aec, where they take turns.
	API string `yaml:"api"`
	// Central says what is central, for critics alone: observations are those of all agents, state
	// is what the world's method of that name returns, none is nothing.
	Central string `yaml:"central"`
	// Show adds to what an agent observes who it is: agent, its number among all, or role, that of
	// its name without what follows the last underscore.
	Show []string `yaml:"show,flow,omitempty"`
	// Pad fills up observations that are vectors with zeros, and discrete actions with ones that
	// are never valid, where those of different agents are not as long; otherwise that is an error.
	Pad bool `yaml:"pad"`
}

// The words of a Config.
const (
	Parallel = "parallel"
	AEC      = "aec"

	Observations = "observations"
	State        = "state"
	None         = "none"

	Agent = "agent"
	Role  = "role"
)

// Defaults returns the defaults; the id must be named.
func Defaults() Config {
	return Config{Config: gymnasium.Defaults(), API: Parallel, Central: Observations}
}

// Validate reports all problems of the section's own keys.
func (c Config) Validate() error {
	var p configs.Problems
	p.Join("", c.Config.Validate())
	p.OneOf("api", c.API, Parallel, AEC)
	p.OneOf("central", c.Central, Observations, State, None)
	for i, name := range c.Show {
		p.OneOf("show", name, Agent, Role)
		p.Check(!slices.Contains(c.Show[:i], name), "show", "%q is given twice", name)
	}
	return p.Err()
}
