package artifact

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// SpacesKey is the metadata key of a model with the [Spaces] of its inputs and outputs, in JSON.
const SpacesKey = "onnxrl.spaces"

// Space says which tensors a row of a port may be, in the numbers of whoever calls the model.
type Space struct {
	// Type is box, discrete, multi_discrete or multi_binary.
	Type string `json:"type"`
	// DType, Shape, Low and High are a box's: the bounds are one for all elements, or one for each.
	DType string  `json:"dtype,omitempty"`
	Shape []int   `json:"shape,omitempty"`
	Low   []Bound `json:"low,omitempty"`
	High  []Bound `json:"high,omitempty"`
	// N is the number of choices: one for discrete and multi_binary, one for each component of
	// multi_discrete.
	N []int `json:"n,omitempty"`
	// Start is the first choice of each component of discrete and multi_discrete; none is 0 for all.
	Start []int64 `json:"start,omitempty"`
}

// Spaces are those of a model's ports by name.
type Spaces struct {
	Inputs  map[string]Space `json:"inputs"`
	Outputs map[string]Space `json:"outputs"`
}

// ParseSpaces reads what a model has below [SpacesKey]; none for no text.
func ParseSpaces(text string) (s Spaces, err error) {
	if text == "" {
		return s, nil
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return s, fmt.Errorf("metadata %s: %w", SpacesKey, err)
	}
	for _, ports := range []map[string]Space{s.Inputs, s.Outputs} {
		for name, space := range ports {
			if err := space.Validate(); err != nil {
				return s, fmt.Errorf("metadata %s: %q: %w", SpacesKey, name, err)
			}
		}
	}
	return s, nil
}

// Text is what [ParseSpaces] reads.
func (s Spaces) Text() (string, error) {
	b, err := json.Marshal(s)
	return string(b), err
}

// Validate reports a description of choices that do not fit together.
func (s Space) Validate() error {
	one := s.Type == "discrete" || s.Type == "multi_binary"
	switch {
	case s.Type != "box" && s.Type != "multi_discrete" && !one:
		return fmt.Errorf("type %q, expected box, discrete, multi_discrete or multi_binary", s.Type)
	case one && len(s.N) != 1:
		return fmt.Errorf("%s: n has %d numbers, expected one", s.Type, len(s.N))
	case len(s.Start) > 0 && (len(s.Start) != len(s.N) || s.Type != "discrete" && s.Type != "multi_discrete"):
		return fmt.Errorf("%s: start has %d numbers, and n %d", s.Type, len(s.Start), len(s.N))
	}
	for i, n := range s.N {
		if first := s.first(i); n < 1 || first > math.MaxInt64-int64(n) {
			return fmt.Errorf("%s: %d choices from %d on", s.Type, n, first)
		}
	}
	return nil
}

// first is the first choice of a component.
func (s Space) first(i int) int64 {
	if len(s.Start) == 0 {
		return 0
	}
	return s.Start[i]
}

// Outside returns the place of the first element of rows of a port that is none of the choices of
// discrete and multi_discrete, with these: low to high. It is −1 where there is none, for other
// spaces, and for other element types than int64 and int32. Bounds of boxes, which many
// environments overstep, exclude nothing.
func (s Space) Outside(t *tensor.Tensor) (at int, value, low, high int64) {
	if s.Type != "discrete" && s.Type != "multi_discrete" {
		return -1, 0, 0, 0
	}
	switch t.DType() {
	case tensor.Int64:
		return outside(s, t.Int64s())
	case tensor.Int32:
		return outside(s, t.Int32s())
	}
	return -1, 0, 0, 0
}

func outside[T int32 | int64](s Space, list []T) (at int, value, low, high int64) {
	for i, x := range list {
		k := i % len(s.N)
		v, first := int64(x), s.first(k)
		if last := first + int64(s.N[k]) - 1; v < first || v > last {
			return i, v, first, last
		}
	}
	return -1, 0, 0, 0
}
