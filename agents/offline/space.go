package offline

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Space is an envs.Space as a manifest has it.
type Space struct {
	// Type is box, discrete, multi_discrete or multi_binary.
	Type string `json:"type"`
	// DType, Shape, Low and High are a box's: the bounds are one for all elements, or one for each.
	DType string           `json:"dtype,omitempty"`
	Shape []int            `json:"shape,omitempty"`
	Low   []artifact.Bound `json:"low,omitempty"`
	High  []artifact.Bound `json:"high,omitempty"`
	// N is the number of choices: one for discrete and multi_binary, one for each component of
	// multi_discrete.
	N []int `json:"n,omitempty"`
}

// SpaceOf describes a space.
func SpaceOf(s envs.Space) Space {
	switch s := s.(type) {
	case envs.Box:
		return Space{Type: "box", DType: s.Of.String(), Shape: slices.Clone(s.Dims), Low: boundsOf(s.Low), High: boundsOf(s.High)}
	case envs.Discrete:
		return Space{Type: "discrete", N: []int{s.N}}
	case envs.MultiDiscrete:
		return Space{Type: "multi_discrete", N: slices.Clone(s.N)}
	case envs.MultiBinary:
		return Space{Type: "multi_binary", N: []int{s.N}}
	}
	panic(fmt.Sprintf("offline: a space of type %T", s))
}

func boundsOf(list []float64) []artifact.Bound {
	out := make([]artifact.Bound, len(list))
	for i, x := range list {
		out[i] = artifact.Bound(x)
	}
	return out
}

// Space returns the space that is described, or what is wrong with the description.
func (s Space) Space() (envs.Space, error) {
	var space envs.Space
	switch {
	case s.Type == "box":
		d, err := tensor.ParseDType(s.DType)
		if err != nil {
			return nil, fmt.Errorf("box: %w", err)
		}
		b := envs.Box{Of: d, Dims: slices.Clone(s.Shape)}
		for _, x := range s.Low {
			b.Low = append(b.Low, float64(x))
		}
		for _, x := range s.High {
			b.High = append(b.High, float64(x))
		}
		space = b
	case s.Type == "multi_discrete":
		space = envs.MultiDiscrete{N: slices.Clone(s.N)}
	case len(s.N) != 1 && (s.Type == "discrete" || s.Type == "multi_binary"):
		return nil, fmt.Errorf("%s: n has %d numbers, expected one", s.Type, len(s.N))
	case s.Type == "discrete":
		space = envs.Discrete{N: s.N[0]}
	case s.Type == "multi_binary":
		space = envs.MultiBinary{N: s.N[0]}
	default:
		return nil, fmt.Errorf("type %q, expected box, discrete, multi_discrete or multi_binary", s.Type)
	}
	return space, space.Validate()
}
