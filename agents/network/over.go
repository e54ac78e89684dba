package network

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
)

// Over returns the network of a graph whose parameters are some of those of specs, which belong to
// all graphs of an agent together.
func Over(specs []models.Spec, l *layer.Graph) (*models.Network, error) {
	m, err := l.Model()
	if err != nil {
		return nil, err
	}
	var own []models.Spec
	for _, p := range l.Params() {
		i := slices.IndexFunc(specs, func(s models.Spec) bool { return s.Name == p.Name && slices.Equal(s.Shape, p.Shape) })
		if i < 0 {
			return nil, fmt.Errorf("parameter %q %v is not one of the agent's", p.Name, p.Shape)
		}
		own = append(own, specs[i])
	}
	return models.WithSpecs(m, own)
}
