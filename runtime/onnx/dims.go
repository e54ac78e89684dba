package onnx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Symbols returns the names of the symbolic extents that a model's inputs and outputs use, inputs
// first, each once.
func Symbols(m *Model) []string {
	var out []string
	seen := map[string]bool{}
	for _, list := range [][]*ValueInfo{m.GetGraph().GetInput(), m.GetGraph().GetOutput()} {
		for _, v := range list {
			eachDim(v.GetType(), func(d *TensorShapeProto_Dimension) {
				if s := d.GetDimParam(); s != "" && !seen[s] {
					seen[s] = true
					out = append(out, s)
				}
			})
		}
	}
	return out
}

// BindDims returns a copy of m in which symbolic extents are numbers, wherever a type is declared:
// inputs, outputs, intermediate values, sub-graphs. A name that no input or output uses is an
// error, because it is a spelling mistake. Weights are shared with m. Nodes stay as they are: a
// model whose constants were computed for another extent will fail when its shapes are inferred.
func BindDims(m *Model, bind map[string]int) (*Model, error) {
	known := Symbols(m)
	used := map[string]bool{}
	for _, s := range known {
		used[s] = true
	}
	for _, s := range slices.Sorted(maps.Keys(bind)) {
		v := bind[s]
		if v < 0 {
			return nil, fmt.Errorf("bind extent %q of graph %q: %d is negative", s, m.GetGraph().GetName(), v)
		}
		if !used[s] {
			return nil, fmt.Errorf("bind extent %q of graph %q: inputs and outputs have no such symbol, only [%s]", s, m.GetGraph().GetName(), strings.Join(known, " "))
		}
	}
	c := m.ShallowClone()
	err := eachGraph(c.Graph, func(g *Graph) error {
		for _, list := range [][]*ValueInfo{g.Input, g.Output, g.ValueInfo} {
			for _, v := range list {
				eachDim(v.GetType(), func(d *TensorShapeProto_Dimension) {
					if n, ok := bind[d.GetDimParam()]; ok && d.GetDimParam() != "" {
						d.Value = &TensorShapeProto_Dimension_DimValue{DimValue: int64(n)}
					}
				})
			}
		}
		return nil
	})
	return c, err
}

// eachDim visits the extents of a type, also of the tensors inside sequences, optionals and maps.
func eachDim(t *TypeProto, f func(*TensorShapeProto_Dimension)) {
	for t != nil {
		var s *TensorShapeProto
		var inner *TypeProto
		switch {
		case t.GetTensorType() != nil:
			s = t.GetTensorType().Shape
		case t.GetSparseTensorType() != nil:
			s = t.GetSparseTensorType().Shape
		case t.GetSequenceType() != nil:
			inner = t.GetSequenceType().ElemType
		case t.GetOptionalType() != nil:
			inner = t.GetOptionalType().ElemType
		case t.GetMapType() != nil:
			inner = t.GetMapType().ValueType
		}
		for _, d := range s.GetDim() {
			f(d)
		}
		t = inner
	}
}
