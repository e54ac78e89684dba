package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Difference is what differs between two versions; its JSON keys are stable.
type Difference struct {
	// Fields are those of the manifests but inputs, outputs and metrics, by key, and Files the
	// digests of further files by title. Ports are inputs and outputs.
	Fields []FieldChange  `json:"fields"`
	Ports  []FieldChange  `json:"ports"`
	Files  []FieldChange  `json:"files"`
	Metric []MetricChange `json:"metrics"`
	// Parameters are the initializers that differ, in the order of the first model; Equal is the
	// number of those that do not.
	Parameters []ParameterChange `json:"parameters"`
	Equal      int               `json:"equal_parameters"`
	// Graph is what else differs between the models.
	Graph *onnx.ModelDiff `json:"graph"`
}

// FieldChange is something that the two say differently. One side is empty where only the other has
// it.
type FieldChange struct {
	Field string `json:"field"`
	A     string `json:"a"`
	B     string `json:"b"`
}

// MetricChange is a metric of which the versions have different values, nil where a version does
// not have it.
type MetricChange struct {
	Name string   `json:"name"`
	A    *float64 `json:"a"`
	B    *float64 `json:"b"`
}

// ParameterChange is an initializer that differs.
type ParameterChange struct {
	Name string `json:"name"`
	// A and B are dtype and shape, such as "float32[64 2]"; empty where a model does not have it.
	A string `json:"a"`
	B string `json:"b"`
	// MaxAbs is the largest |Δ| of elements, and Changed the number of those that differ, where
	// both have numbers of the same shape; nil otherwise, and where a number stands against one
	// that is not finite.
	MaxAbs  *float64 `json:"max_abs"`
	Changed int      `json:"changed"`
}

// Empty reports whether nothing differs.
func (d *Difference) Empty() bool {
	return len(d.Fields)+len(d.Ports)+len(d.Files)+len(d.Metric)+len(d.Parameters) == 0 && d.Graph.Empty()
}

// Diff compares two versions, of one store or of two: what their manifests say, and the models by
// content.
func Diff(a, b Version) (*Difference, error) {
	d := &Difference{Fields: []FieldChange{}, Ports: []FieldChange{}, Files: []FieldChange{}, Metric: []MetricChange{}, Parameters: []ParameterChange{}}
	for _, part := range []struct {
		texts func(Manifest) (map[string]string, error)
		to    *[]FieldChange
	}{{fieldTexts, &d.Fields}, {portTexts, &d.Ports}} {
		x, err := part.texts(a.Manifest)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", a, err)
		}
		y, err := part.texts(b.Manifest)
		if err != nil {
			return nil, fmt.Errorf("compare %s: %w", b, err)
		}
		*part.to = changes(x, y)
	}
	d.Files = changes(fileTexts(a), fileTexts(b))
	for _, name := range union(a.Manifest.Metrics, b.Manifest.Metrics) {
		x, inA := a.Manifest.Metrics[name]
		y, inB := b.Manifest.Metrics[name]
		if inA && inB && x == y {
			continue
		}
		m := MetricChange{Name: name}
		if inA {
			m.A = &x
		}
		if inB {
			m.B = &y
		}
		d.Metric = append(d.Metric, m)
	}
	if !a.HasModel() && !b.HasModel() {
		d.Graph = &onnx.ModelDiff{}
		return d, nil
	}
	x, err := a.Model()
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	y, err := b.Model()
	if err != nil {
		return nil, fmt.Errorf("compare: %w", err)
	}
	if err := d.parameters(x, y); err != nil {
		return nil, fmt.Errorf("compare %s and %s: %w", a, b, err)
	}
	d.Graph = onnx.Diff(x, y)
	d.Graph.Initializers = slices.DeleteFunc(d.Graph.Initializers, func(c onnx.Change) bool {
		return slices.ContainsFunc(d.Parameters, func(p ParameterChange) bool { return p.Name == c.Name })
	})
	return d, nil
}

// fieldTexts are the keys of a manifest as JSON has them, so that a field that is added later is
// compared too.
func fieldTexts(m Manifest) (map[string]string, error) {
	m.Inputs, m.Outputs, m.Metrics, m.Files = nil, nil, nil, nil
	info := m.Info
	m.Info = nil
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return nil, err
	}
	list := map[string]string{}
	for k, v := range raw {
		s := string(v)
		if t := ""; json.Unmarshal(v, &t) == nil {
			s = t
		}
		if s != "null" && s != "" {
			list[k] = s
		}
	}
	for k, v := range info {
		list["info."+k] = v
	}
	return list, nil
}

func portTexts(m Manifest) (map[string]string, error) {
	list := map[string]string{}
	add := func(kind string, ports []Port) error {
		for _, p := range ports {
			text, err := json.Marshal(p)
			if err != nil {
				return err
			}
			list[kind+" "+p.Name] = string(text)
		}
		return nil
	}
	return list, errors.Join(add("input", m.Inputs), add("output", m.Outputs))
}

// fileTexts are the digests of files but the model and its data, whose content is compared.
func fileTexts(v Version) map[string]string {
	list := map[string]string{}
	for _, f := range v.Files {
		if f.MediaType != ModelType && f.MediaType != DataType {
			list[f.Title] = f.Digest
		}
	}
	return list
}

func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func changes(a, b map[string]string) []FieldChange {
	list := []FieldChange{}
	for _, k := range union(a, b) {
		if a[k] != b[k] {
			list = append(list, FieldChange{Field: k, A: a[k], B: b[k]})
		}
	}
	return list
}

func (d *Difference) parameters(a, b *onnx.Model) error {
	right := map[string]*onnx.TensorProto{}
	for _, t := range b.GetGraph().GetInitializer() {
		right[t.Name] = t
	}
	left := map[string]bool{}
	for _, t := range a.GetGraph().GetInitializer() {
		left[t.Name] = true
		x, err := onnx.TensorOf(t)
		if err != nil {
			return fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		other := right[t.Name]
		if other == nil {
			d.Parameters = append(d.Parameters, ParameterChange{Name: t.Name, A: typeText(x)})
			continue
		}
		y, err := onnx.TensorOf(other)
		if err != nil {
			return fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		p := compareParameters(x, y)
		if p.A == p.B && p.Changed == 0 {
			d.Equal++
			continue
		}
		p.Name = t.Name
		d.Parameters = append(d.Parameters, p)
	}
	for _, t := range b.GetGraph().GetInitializer() {
		if left[t.Name] {
			continue
		}
		y, err := onnx.TensorOf(t)
		if err != nil {
			return fmt.Errorf("initializer %q: %w", t.Name, err)
		}
		d.Parameters = append(d.Parameters, ParameterChange{Name: t.Name, B: typeText(y)})
	}
	return nil
}

func typeText(t *tensor.Tensor) string { return fmt.Sprintf("%v%v", t.DType(), t.Shape()) }

// compareParameters counts the elements that differ, bit for bit where they are no floating-point
// numbers.
func compareParameters(x, y *tensor.Tensor) ParameterChange {
	p := ParameterChange{A: typeText(x), B: typeText(y)}
	if p.A != p.B {
		return p
	}
	worst := 0.0
	each := func(a, b float64) {
		if a == b || math.IsNaN(a) && math.IsNaN(b) {
			return
		}
		p.Changed++
		if delta := math.Abs(a - b); math.IsNaN(delta) {
			worst = math.Inf(1)
		} else {
			worst = max(worst, delta)
		}
	}
	switch x.DType() {
	case tensor.Float32:
		compareElements(x, y, each, func(v float32) float64 { return float64(v) })
	case tensor.Float64:
		compareElements(x, y, each, func(v float64) float64 { return v })
	case tensor.Float16:
		compareElements(x, y, each, func(v uint16) float64 { return float64(tensor.Float16ToFloat32(v)) })
	case tensor.BFloat16:
		compareElements(x, y, each, func(v uint16) float64 { return float64(tensor.BFloat16ToFloat32(v)) })
	case tensor.Int64:
		compareElements(x, y, each, func(v int64) float64 { return float64(v) })
	case tensor.Int32:
		compareElements(x, y, each, func(v int32) float64 { return float64(v) })
	case tensor.Int8:
		compareElements(x, y, each, func(v int8) float64 { return float64(v) })
	case tensor.Uint8:
		compareElements(x, y, each, func(v uint8) float64 { return float64(v) })
	case tensor.String:
		for i, v := range x.Strings() {
			if v != y.Strings()[i] {
				p.Changed++
			}
		}
		return p
	default:
		if !bytes.Equal(x.Bytes(), y.Bytes()) {
			p.Changed = x.Len()
		}
		return p
	}
	if p.Changed > 0 && !math.IsInf(worst, 0) {
		p.MaxAbs = &worst
	}
	return p
}

func compareElements[T tensor.Element](x, y *tensor.Tensor, each func(a, b float64), wide func(T) float64) {
	a, b := tensor.Data[T](x), tensor.Data[T](y)
	for i := range a {
		each(wide(a[i]), wide(b[i]))
	}
}
