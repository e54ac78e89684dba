package a2c

import (
	"fmt"
	"slices"

	"onnxrl/envs"
	"onnxrl/runtime/tensor"
)

// The fields that may stand beside a window of assets.
const (
	positionField = "position"
	cashField     = "cash"
)

// frame says how the observations and actions of an environment enter a network. Indices of fields are -1 where there is none.
type frame struct {
	spec envs.Spec
	// heads has the number of actions of each head. Actions of the space Discrete have no axis for their one head.
	heads    []int
	discrete bool
	// series is the field [W,N,F] or [W,F]; assets is N, or 0 for [W,F].
	series int
	assets int
	// position [N] and cash [1] stand beside a window of assets; flat are the fields that are flattened otherwise.
	position, cash int
	flat           []int
}

// newFrame finds out what the fields of an observation are, or says which does not fit to what.
func newFrame(spec envs.Spec) (*frame, error) {
	f := &frame{spec: spec, series: -1, position: -1, cash: -1}
	switch a := spec.Action.(type) {
	case envs.Discrete:
		f.heads, f.discrete = []int{a.N}, true
	case envs.MultiDiscrete:
		f.heads = a.N
	default:
		return nil, fmt.Errorf("the actions of %s are %v; A2C here chooses among Discrete or MultiDiscrete actions", spec.Name, spec.Action)
	}
	for i, field := range spec.Observation {
		if field.Space.DType() != tensor.Float32 {
			return nil, fmt.Errorf("observation %q of %s is %v, expected float32", field.Name, spec.Name, field.Space)
		}
		if rank := len(field.Space.Shape()); rank != 2 && rank != 3 {
			continue
		}
		if f.series >= 0 {
			other := spec.Observation[f.series]
			return nil, fmt.Errorf("observations %q %v and %q %v of %s are both windows; one is expected", other.Name, other.Space.Shape(), field.Name, field.Space.Shape(), spec.Name)
		}
		f.series = i
		if shape := field.Space.Shape(); len(shape) == 3 {
			f.assets = shape[1]
		}
	}
	if f.assets > 0 {
		return f, f.besideAssets()
	}
	for i := range spec.Observation {
		if i != f.series {
			f.flat = append(f.flat, i)
		}
	}
	return f, nil
}

// besideAssets checks the heads and finds position and cash.
func (f *frame) besideAssets() error {
	w := f.spec.Observation[f.series]
	if f.discrete || len(f.heads) != f.assets || slices.ContainsFunc(f.heads, func(k int) bool { return k != f.heads[0] }) {
		return fmt.Errorf("observation %q of %s is %v, a window of %d assets, and its actions are %v; expected one head for each asset, all of the same size", w.Name, f.spec.Name, w.Space.Shape(), f.assets, f.spec.Action)
	}
	for i, field := range f.spec.Observation {
		shape := field.Space.Shape()
		switch {
		case i == f.series:
		case field.Name == positionField && slices.Equal(shape, []int{f.assets}):
			f.position = i
		case field.Name == cashField && slices.Equal(shape, []int{1}):
			f.cash = i
		default:
			return fmt.Errorf("observation %q %v of %s does not fit beside %q %v; expected %s [%d] or %s [1]", field.Name, shape, f.spec.Name, w.Name, w.Space.Shape(), positionField, f.assets, cashField)
		}
	}
	return nil
}

// window returns the window of the series field, or nil when the observation has none that lies in a table.
func (f *frame) window() *envs.Window {
	if f.series < 0 {
		return nil
	}
	return f.spec.Observation[f.series].Window
}

// columns returns the number of independent series in a row of the table, and of features in each.
func (f *frame) columns() (series, features int) {
	shape := f.spec.Observation[f.series].Space.Shape()
	return max(f.assets, 1), shape[len(shape)-1]
}

// maskLen is the number of elements of a mask, and of log-probabilities, for one row.
func (f *frame) maskLen() int { return envs.MaskLen(f.spec.Action) }
