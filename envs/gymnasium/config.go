package gymnasium

import (
	"encoding/json"
	"maps"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Config describes environments of Python.
type Config struct {
	// ID is what gymnasium.make is called with, such as HalfCheetah-v5; "package:ID" imports a
	// package first that registers its environments.
	ID string `yaml:"id"`
	// Kwargs are further arguments of gymnasium.make.
	Kwargs map[string]any `yaml:"kwargs,omitempty"`
	// Workers is the number of processes of a vector; 0 takes one for each core, and no more than
	// there are environments.
	Workers int `yaml:"workers"`
	// Python is the interpreter; empty takes $ONNXRL_PYTHON, or else python3 on the path.
	Python string `yaml:"python,omitempty"`
	// Info lists keys of Gymnasium's info whose values, which must be numbers, become diagnostics.
	// A step whose info has no such key has 0.
	Info []string `yaml:"info,omitempty"`
	// Costs lists keys of info whose values are costs in the same way, as "cost" of
	// Safety-Gymnasium, whose steps may also return the cost behind the reward.
	Costs []string `yaml:"costs,omitempty"`
	// MaskInfo is the key of info that holds the mask of the valid actions; empty asks the
	// environment's method action_masks, where it has one.
	MaskInfo string `yaml:"mask_info,omitempty"`
	// Print copies what environments print to this program's standard error; otherwise only errors
	// show the end of it.
	Print bool `yaml:"print"`
	// Timeout is how long a worker may take for one step, or reset, of all its environments.
	Timeout time.Duration `yaml:"timeout"`
	// StartTimeout is how long a worker may take to import packages and make its environments.
	StartTimeout time.Duration `yaml:"start_timeout"`
	// MaxRestarts is how many workers of a vector may end, or not answer in time, and be replaced
	// before that is an error.
	MaxRestarts int `yaml:"max_restarts"`

	adapter Adapter
}

// Adapter makes what is no environment of Gymnasium's look like one.
type Adapter struct {
	// Source is Python, a part of the module of worker.py that defines adapted(args), which returns
	// an environment. It may have a method inside, which lists the objects of which the environment
	// consists, for saving.
	Source []byte
	// Args are added to args.
	Args map[string]any
}

// Defaults returns the defaults; the id must be named.
func Defaults() Config {
	return Config{Timeout: time.Minute, StartTimeout: 3 * time.Minute, MaxRestarts: 3}
}

// Validate reports all problems of the section.
func (c Config) Validate() error {
	var p configs.Problems
	p.Check(c.ID != "", "id", "required: the name of an environment, such as HalfCheetah-v5, or the module that makes a world of PettingZoo, such as mpe2.simple_spread_v3")
	p.NonNegative("workers", c.Workers)
	p.NonNegative("max_restarts", c.MaxRestarts)
	p.Check(c.Timeout > 0, "timeout", "must be positive, is %v", c.Timeout)
	p.Check(c.StartTimeout > 0, "start_timeout", "must be positive, is %v", c.StartTimeout)
	names := func(key string, list []string) {
		seen := map[string]bool{}
		for _, k := range list {
			p.Check(k != "" && !seen[k], key, "%q is empty or given twice", k)
			seen[k] = true
		}
	}
	names("info", c.Info)
	names("costs", c.Costs)
	if _, err := json.Marshal(c.Kwargs); err != nil {
		p.Addf("kwargs", "cannot be passed to Python: %v", err)
	}
	return p.Err()
}

// opening are the arguments of the worker's call open.
func (c Config) opening() map[string]any {
	kwargs, info := c.Kwargs, append(append([]string{}, c.Info...), c.Costs...)
	if kwargs == nil {
		kwargs = map[string]any{}
	}
	args := map[string]any{"id": c.ID, "kwargs": kwargs, "info": info, "mask_info": c.MaskInfo}
	maps.Copy(args, c.adapter.Args)
	return map[string]any{"args": args}
}
