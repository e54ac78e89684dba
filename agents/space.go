package agents

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// DescribeSpace describes a space as manifests and models have it, in the environment's numbers.
func DescribeSpace(s envs.Space) artifact.Space {
	switch s := s.(type) {
	case envs.Box:
		return artifact.Space{Type: "box", DType: s.Of.String(), Shape: slices.Clone(s.Dims), Low: artifact.BoundsOf(s.Low), High: artifact.BoundsOf(s.High)}
	case envs.Discrete:
		return artifact.Space{Type: "discrete", N: []int{s.N}, Start: envs.Starts(s)}
	case envs.MultiDiscrete:
		return artifact.Space{Type: "multi_discrete", N: slices.Clone(s.N), Start: envs.Starts(s)}
	case envs.MultiBinary:
		return artifact.Space{Type: "multi_binary", N: []int{s.N}}
	}
	panic(fmt.Sprintf("agents: a space of type %T", s))
}

// SpaceOf returns the space that is described, or what is wrong with the description.
func SpaceOf(s artifact.Space) (envs.Space, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	var space envs.Space
	switch s.Type {
	case "box":
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
	case "multi_discrete":
		m := envs.MultiDiscrete{N: slices.Clone(s.N), Start: slices.Clone(s.Start)}
		m.Start = envs.Starts(m)
		space = m
	case "discrete":
		d := envs.Discrete{N: s.N[0]}
		if len(s.Start) > 0 {
			d.Start = s.Start[0]
		}
		space = d
	case "multi_binary":
		space = envs.MultiBinary{N: s.N[0]}
	}
	return space, space.Validate()
}
