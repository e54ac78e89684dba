package bake

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Scaled returns a served model that scales its inputs itself, of the given scalings those that it
// has an input for and does not make already.
func Scaled(m *onnx.Model, list []Affine) (*onnx.Model, error) {
	var have []string
	if text, ok := m.Meta(MetaScales); ok {
		have = strings.Split(text, ",")
	}
	changed := false
	for i := range list {
		name := list[i].Input
		if slices.Contains(have, name) || !slices.ContainsFunc(m.Graph.Input, func(v *onnx.ValueInfo) bool { return v.Name == name }) {
			continue
		}
		var err error
		if m, err = list[i].wrap(m); err != nil {
			return nil, fmt.Errorf("scale inputs: %w", err)
		}
		have, changed = append(have, name), true
	}
	if changed {
		m = m.ShallowClone()
		m.SetMeta(MetaScales, strings.Join(have, ","))
	}
	return m, nil
}
