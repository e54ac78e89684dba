package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Schema is the version of the manifest's layout that is written, and the highest that is read.
// Keys that are not known are ignored, so a key that is safe to ignore needs no new version.
const Schema = 1

// maxConfig bounds the manifest's JSON.
const maxConfig = 32 << 20

// Manifest says what a version computes and where it comes from. Everything in it is part of the
// version's digest, so it holds no times, hosts or paths.
type Manifest struct {
	// Schema is set by Publish.
	Schema int `json:"schema"`
	// Name is the artefact that this is a version of.
	Name string `json:"name"`
	// Kind says what the model is for, such as "agent", "encoder" or "model".
	Kind string `json:"kind"`
	// Description is free text.
	Description string `json:"description,omitempty"`

	// Inputs and Outputs are the model's, in graph order. Publish takes them from the model; what
	// the draft says of them in addition, bounds and descriptions, is kept, and what contradicts
	// the model is refused.
	Inputs  []Port `json:"inputs"`
	Outputs []Port `json:"outputs"`
	// Opsets are the versions of operator sets by domain, the standard one as "ai.onnx"; IR is the
	// version of the file format. Both are set by Publish.
	Opsets map[string]int `json:"opsets"`
	IR     int            `json:"ir"`

	// Metrics are what the model was measured at, such as "validation/sharpe"; finite.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Parents are the digests of the versions that this one was made from, the most important
	// first.
	Parents []string `json:"parents,omitempty"`
	// Seed is what the run's randomness descended from.
	Seed *uint64 `json:"seed,omitempty"`
	// EnvStep is the number of environment steps that it was trained for, LearnerStep that of
	// optimiser steps.
	EnvStep     int64 `json:"env_step,omitempty"`
	LearnerStep int64 `json:"learner_step,omitempty"`
	// ConfigDigest and DataDigest are "sha256:…" of the run's effective configuration and of the
	// data it saw.
	ConfigDigest string `json:"config_digest,omitempty"`
	DataDigest   string `json:"data_digest,omitempty"`
	// CodeVersion is the version of the program that trained.
	CodeVersion string `json:"code_version,omitempty"`
	// Features is the pipeline from raw data to the model's inputs: configuration, version, fitted
	// statistics, order and warm-up, as JSON of the pipeline's own.
	Features json.RawMessage `json:"features,omitempty"`
	// Files are the digests of the version's files by title, so that no file can take another's
	// place; set by Publish, and missing from versions of older programs.
	Files map[string]string `json:"files,omitempty"`
	// Golden describes the golden values; set by Publish.
	Golden *GoldenInfo `json:"golden,omitempty"`
	// Info is free text by key.
	Info map[string]string `json:"info,omitempty"`
}

// Port is one input or output of the model.
type Port struct {
	Name string `json:"name"`
	// DType is the element type as package tensor spells it, such as "float32".
	DType string `json:"dtype,omitempty"`
	// Shape has -1 for extents that are free; nil where the rank is not known.
	Shape []int `json:"shape"`
	// Axes are the names of the extents, as the graph's symbols have them, "" for those without;
	// nil where none has one.
	Axes []string `json:"axes,omitempty"`
	// Bounds are what the values lie between, nil where that is not known.
	Bounds *Bounds `json:"bounds,omitempty"`
	// Description says what the port means, with units.
	Description string `json:"description,omitempty"`
}

// Bounds are lowest and highest values, both included: one for all elements, or one for each
// element of a row.
type Bounds struct {
	Low  []Bound `json:"low"`
	High []Bound `json:"high"`
}

// Bound is a number that may be infinite; JSON has infinities as "-inf" and "+inf".
type Bound float64

// BoundsOf are numbers as bounds.
func BoundsOf(list []float64) []Bound {
	out := make([]Bound, len(list))
	for i, x := range list {
		out[i] = Bound(x)
	}
	return out
}

// MarshalJSON implements json.Marshaler.
func (b Bound) MarshalJSON() ([]byte, error) {
	switch f := float64(b); {
	case math.IsInf(f, 1):
		return []byte(`"+inf"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-inf"`), nil
	case math.IsNaN(f):
		return nil, errors.New("a bound is not a number")
	default:
		return json.Marshal(f)
	}
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bound) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"+inf"`:
		*b = Bound(math.Inf(1))
	case `"-inf"`:
		*b = Bound(math.Inf(-1))
	default:
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return fmt.Errorf(`bound %s: expected a number, "-inf" or "+inf"`, text)
		}
		*b = Bound(f)
	}
	return nil
}

// GoldenInfo describes the golden values of a version.
type GoldenInfo struct {
	// Rows is the extent of the inputs' first axis, 0 where they have none in common.
	Rows int `json:"rows"`
	// Tolerance is the largest accepted |Δ| / (1 + |y|) of floating-point outputs; all others must
	// be equal.
	Tolerance float64 `json:"tolerance"`
}

// encode writes the manifest so that equal ones have equal bytes.
func (m *Manifest) encode() ([]byte, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(m); err != nil {
		return nil, err
	}
	if b.Len() > maxConfig {
		return nil, fmt.Errorf("it has %d bytes as JSON, expected at most %d", b.Len(), maxConfig)
	}
	return b.Bytes(), nil
}

func decodeManifest(text []byte) (*Manifest, error) {
	var head struct {
		Schema *int `json:"schema"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, err
	}
	switch {
	case head.Schema == nil:
		return nil, errors.New("it has no schema")
	case *head.Schema < 1 || *head.Schema > Schema:
		return nil, fmt.Errorf("its schema is %d, and this program reads up to %d", *head.Schema, Schema)
	}
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	return &m, m.Validate()
}

// Validate reports what no version may have.
func (m *Manifest) Validate() error {
	errs := []error{CheckName(m.Name)}
	for _, p := range slices.Concat(m.Inputs, m.Outputs) {
		errs = append(errs, p.validate())
	}
	for _, k := range slices.Sorted(maps.Keys(m.Metrics)) {
		if v := m.Metrics[k]; v-v != 0 {
			errs = append(errs, fmt.Errorf("metric %q is %v, expected a finite number", k, v))
		}
	}
	for _, p := range m.Parents {
		if err := checkFullDigest(p); err != nil {
			errs = append(errs, fmt.Errorf("parent: %w", err))
		}
	}
	for _, d := range []struct{ key, value string }{{"config_digest", m.ConfigDigest}, {"data_digest", m.DataDigest}} {
		if err := checkFullDigest(d.value); err != nil && d.value != "" {
			errs = append(errs, fmt.Errorf("%s: %w", d.key, err))
		}
	}
	if m.EnvStep < 0 || m.LearnerStep < 0 {
		errs = append(errs, fmt.Errorf("env_step %d and learner_step %d: expected no negative numbers", m.EnvStep, m.LearnerStep))
	}
	if len(m.Features) > 0 && !json.Valid(m.Features) {
		errs = append(errs, errors.New("features: expected JSON"))
	}
	if g := m.Golden; g != nil && (g.Rows < 0 || !(g.Tolerance >= 0)) {
		errs = append(errs, fmt.Errorf("golden values of %d rows with tolerance %v", g.Rows, g.Tolerance))
	}
	return errors.Join(errs...)
}

func checkFullDigest(d string) error {
	if err := checkDigest(d); err != nil || len(d) != len(digestPrefix)+64 {
		return fmt.Errorf("digest %q: expected %s and 64 hexadecimal digits in lower case", d, digestPrefix)
	}
	return nil
}

func (p Port) validate() error {
	if p.Name == "" {
		return errors.New("a port has no name")
	}
	if p.Axes != nil && len(p.Axes) != len(p.Shape) {
		return fmt.Errorf("port %q: %d names of axes for the shape %v", p.Name, len(p.Axes), p.Shape)
	}
	row := 1
	for _, n := range p.Shape {
		if n < -1 || n > 0 && row > math.MaxInt32/n {
			return fmt.Errorf("port %q: shape %v", p.Name, p.Shape)
		}
		row *= max(n, 1)
	}
	if b := p.Bounds; b != nil {
		if len(b.Low) != len(b.High) || len(b.Low) != 1 && len(b.Low) != row {
			return fmt.Errorf("port %q: %d low and %d high bounds, expected one of each or %d for a row of shape %v", p.Name, len(b.Low), len(b.High), row, p.Shape)
		}
		for i := range b.Low {
			if !(b.Low[i] <= b.High[i]) {
				return fmt.Errorf("port %q: bounds %v to %v", p.Name, float64(b.Low[i]), float64(b.High[i]))
			}
		}
	}
	return nil
}

// PortsOf describes the inputs and outputs of a model as it declares them.
func PortsOf(m *onnx.Model) (inputs, outputs []Port) {
	describe := func(list []*onnx.ValueInfo) []Port {
		ports := []Port{}
		for _, v := range list {
			p := Port{Name: v.Name}
			if t, ok := v.TensorType(); ok {
				if t.DType != tensor.Undefined {
					p.DType = t.DType.String()
				}
				if t.Ranked {
					p.Shape = make([]int, len(t.Dims))
				}
				for i, d := range t.Dims {
					if p.Shape[i] = d.Value; !d.IsKnown() {
						p.Shape[i] = -1
					}
					if d.Param != "" && !d.IsKnown() {
						if p.Axes == nil {
							p.Axes = make([]string, len(t.Dims))
						}
						p.Axes[i] = d.Param
					}
				}
			}
			ports = append(ports, p)
		}
		return ports
	}
	return describe(m.Graph.Inputs()), describe(m.Graph.Output)
}

// merge adds what the draft says of the ports to what the model declares.
func merge(what string, model, draft []Port) ([]Port, error) {
	for _, d := range draft {
		i := slices.IndexFunc(model, func(p Port) bool { return p.Name == d.Name })
		if i < 0 {
			return nil, fmt.Errorf("%s %q: the model has none of that name", what, d.Name)
		}
		p := &model[i]
		if d.DType != "" && d.DType != p.DType || d.Shape != nil && !slices.Equal(d.Shape, p.Shape) {
			return nil, fmt.Errorf("%s %q is described as %s%v, and the model has %s%v", what, d.Name, d.DType, d.Shape, p.DType, p.Shape)
		}
		p.Bounds, p.Description = d.Bounds, d.Description
	}
	return model, nil
}
