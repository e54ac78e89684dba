package cover

import "github.com/onnxrl/onnxrl/configs"

// Config describes a world.
type Config struct {
	// Agents is their number, and that of the landmarks.
	Agents int `yaml:"agents"`
	// Size is the width and height of the grid.
	Size int `yaml:"size"`
	// Steps is the length of an episode.
	Steps int `yaml:"steps"`
	// Failure is the probability with which an agent breaks down in a step. It is not there
	// afterwards, and its episode has terminated.
	Failure float64 `yaml:"failure"`
}

// Optimum is the mean return of the best joint policy in worlds of the defaults.
const Optimum = 1559.0 / 150

// Defaults returns two agents on a grid of 5 by 5.
func Defaults() Config { return Config{Agents: 2, Size: 5, Steps: 12} }

// Validate reports all problems.
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("agents", c.Agents, 1)
	p.AtLeast("size", c.Size, 2)
	p.AtLeast("steps", c.Steps, 1)
	p.InRange("failure", c.Failure, 0, 1)
	p.Check(c.Size < 2 || c.Agents < 1 || c.Agents <= c.Size*c.Size, "agents", "are %d, more than the %d cells of the grid", c.Agents, c.Size*c.Size)
	return p.Err()
}
