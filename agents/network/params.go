package network

import (
	"errors"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// NewParams makes the parameters of an agent of their initial values, which the setup may change
// before complete, unless that is nil, adds to them. A base that the setup has is shared.
func NewParams(s *agents.Setup, specs []models.Spec, values map[string]*tensor.Tensor, complete func()) (*models.Params, error) {
	configured := models.BaseSum(specs, values)
	if s.Init != nil {
		if err := s.Init(values); err != nil {
			return nil, err
		}
	}
	if complete != nil {
		complete()
	}
	base, err := s.Bases.Of(specs, values)
	if err != nil {
		return nil, err
	}
	p, err := models.NewParams(&models.Network{Specs: specs}, base)
	if err != nil {
		return nil, err
	}
	p.Configured = configured
	if err := p.Load(values); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}
