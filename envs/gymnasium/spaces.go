package gymnasium

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// description is how a worker describes its environments.
type description struct {
	Observation []form `json:"observation"`
	Action      form   `json:"action"`
	Masked      bool   `json:"masked"`
	// Info are the keys of diagnostics and, behind them, costs.
	Info     []string `json:"info"`
	MaxSteps int      `json:"max_steps"`
	Version  string   `json:"version"`
}

// form is a space and how its elements lie in shared memory.
type form struct {
	Type string `json:"type"`
	// Path are the keys that lead to a part of a dictionary.
	Path  []string `json:"path"`
	N     []int    `json:"n"`
	Start []int64  `json:"start"`
	// Shape is the one that Python uses.
	Shape []int    `json:"shape"`
	DType string   `json:"dtype"`
	Low   []string `json:"low"`
	High  []string `json:"high"`
	// Wire is the format of an element, as of Python's package struct: f, d, q, B or ?.
	Wire string `json:"wire"`
}

// wireSizes are the bytes of an element.
var wireSizes = map[string]int{"f": 4, "d": 8, "q": 8, "B": 1, "?": 1}

// size is the number of bytes of one value in shared memory.
func (f *form) size() (int, error) {
	n, err := tensor.Len(f.Shape)
	if err != nil {
		return 0, err
	}
	w, ok := wireSizes[f.Wire]
	if !ok {
		return 0, fmt.Errorf("unknown format %q", f.Wire)
	}
	return n * w, nil
}

// space returns the space that policies see: choices count from 0 and the space has their starts,
// several dimensions of choices become one, and all numbers but bytes are float32.
func (f *form) space() (envs.Space, error) {
	switch f.Type {
	case "discrete":
		return envs.Discrete{N: f.N[0], Start: f.Start[0]}, nil
	case "multidiscrete":
		s := envs.MultiDiscrete{N: f.N, Start: f.Start}
		s.Start = envs.Starts(s)
		return s, nil
	case "multibinary":
		return envs.MultiBinary{N: len(f.N)}, nil
	}
	of := tensor.Float32
	if f.Wire == "B" {
		of = tensor.Uint8
	}
	low, err := limits(f.Low, f.DType)
	if err != nil {
		return nil, err
	}
	high, err := limits(f.High, f.DType)
	if err != nil {
		return nil, err
	}
	return envs.Box{Of: of, Dims: f.Shape, Low: low, High: high}, nil
}

// limits reads bounds. The largest numbers that a type has mean that there is no bound, as many
// environments write it.
func limits(text []string, dtype string) ([]float64, error) {
	most := float64(math.MaxFloat32)
	if dtype == "float16" {
		most = 65504
	}
	out := make([]float64, len(text))
	for i, s := range text {
		x, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return nil, fmt.Errorf("bound %q: %w", s, err)
		}
		if out[i] = x; math.Abs(x) >= most {
			out[i] = math.Inf(int(math.Copysign(1, x)))
		}
	}
	return out, nil
}

// Observation is the name of an observation that is no dictionary.
const Observation = "observation"

// spec returns the description of one environment.
func (d *description) spec(c Config) (envs.Spec, error) {
	s := envs.Spec{
		Name: c.ID, Masked: d.Masked, Reward: envs.Range{Low: math.Inf(-1), High: math.Inf(1)}, Costs: slices.Clone(c.Costs), Info: d.Info[:len(d.Info)-len(c.Costs)], MaxSteps: d.MaxSteps, Random: true,
	}
	for i := range d.Observation {
		f := &d.Observation[i]
		space, err := f.space()
		if err != nil {
			return s, fmt.Errorf("observation %s: %w", strings.Join(f.Path, "/"), err)
		}
		name := Observation
		if len(f.Path) > 0 {
			name = strings.Join(f.Path, "/")
		}
		s.Observation = append(s.Observation, envs.Field{Name: name, Space: space})
	}
	var err error
	if s.Action, err = d.Action.space(); err != nil {
		return s, fmt.Errorf("action: %w", err)
	}
	if d.Action.Type == "box" && d.Action.DType != "float32" && d.Action.DType != "float64" {
		return s, fmt.Errorf("the action is a box of %s; boxes of float32 and float64 are supported", d.Action.DType)
	}
	return s, s.Validate()
}
