package serve

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/models/artifact"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// NonFinite is a rule for NaN and infinities in floating-point tensors.
type NonFinite int

// The rules; Reject… answer InvalidArgument for inputs and Internal for outputs.
const (
	// AutoNonFinite rejects them in the inputs of policies and allows everything else. A policy is
	// a version of kind "agent", a model whose metadata says so, or one with an output "action".
	// Inputs of which the model itself knows what is missing, listed in its metadata under
	// [MissingKey], are never rejected by this rule.
	AutoNonFinite NonFinite = iota
	AllowNonFinite
	RejectNonFiniteInputs
	RejectNonFiniteOutputs
	RejectNonFinite
)

// MissingKey is the entry of a model's metadata that lists, separated by commas, the inputs in
// which NaN and infinities stand for values that are not known and are replaced by the model.
const MissingKey = "onnxrl.scales"

// rules are the words for NonFinite.
var rules = []string{AutoNonFinite: "auto", AllowNonFinite: "allow", RejectNonFiniteInputs: "reject_inputs", RejectNonFiniteOutputs: "reject_outputs", RejectNonFinite: "reject"}

// String is the word that parseNonFinite reads.
func (n NonFinite) String() string { return rules[n] }

// parseNonFinite reads auto, allow, reject_inputs, reject_outputs or reject.
func parseNonFinite(s string) (NonFinite, error) {
	for n, word := range rules {
		if word == s {
			return NonFinite(n), nil
		}
	}
	return 0, fmt.Errorf("got %q, expected one of %s", s, strings.Join(rules, ", "))
}

// NonFiniteError names the first element of an input that is NaN or infinite.
type NonFiniteError struct {
	Input string
	// Index has one number for each axis.
	Index []int
	Value float64
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("input %q: element %v is %v, expected finite numbers (the server's --allow-nonfinite, or the model's setting non_finite, allows others)", e.Input, e.Index, e.Value)
}

// ChoiceError names the first element of an input that is none of the choices that the model's
// metadata give for it, under artifact.SpacesKey.
type ChoiceError struct {
	Input string
	// Index has one number for each axis.
	Index            []int
	Value, Low, High int64
}

func (e *ChoiceError) Error() string {
	return fmt.Sprintf("input %q: element %v is %d, expected %d to %d (the server's --allow-nonfinite, or the model's setting non_finite, allows others)", e.Input, e.Index, e.Value, e.Low, e.High)
}

// checkValues decides which inputs and outputs are looked through, for numbers that are not finite
// and for choices that there are not. c is what the plan's model comes from.
func (p *plan) checkValues(rule NonFinite, c *Content) error {
	text, _ := c.Model.Meta(artifact.SpacesKey)
	spaces, err := artifact.ParseSpaces(text)
	if err != nil {
		return err
	}
	policy := c.Manifest != nil && c.Manifest.Kind == "agent"
	var missing []string
	for _, e := range c.Model.GetMetadataProps() {
		switch e.GetKey() {
		case "onnxrl.task":
			policy = policy || e.GetValue() == "agent"
		case MissingKey:
			missing = strings.Split(e.GetValue(), ",")
		}
	}
	_, acts := p.outAt["action"]
	policy = policy || acts
	p.checkIn = make([]bool, len(p.in))
	for i, port := range p.in {
		switch rule {
		case AutoNonFinite:
			p.checkIn[i] = policy && !slices.Contains(missing, port.Name)
		case RejectNonFiniteInputs, RejectNonFinite:
			p.checkIn[i] = true
		}
	}
	p.spaces = make([]artifact.Space, len(p.in))
	for i, port := range p.in {
		if s := spaces.Inputs[port.Name]; p.checkIn[i] {
			p.spaces[i] = s
		}
	}
	p.checkOut = rule == RejectNonFiniteOutputs || rule == RejectNonFinite
	return nil
}

// checkInput reports the first element of an input that is NaN, infinite, or no choice, where that
// is checked.
func (p *plan) checkInput(i int, t *tensor.Tensor) error {
	if err := p.finiteInput(i, t); err != nil {
		return err
	}
	at, v, low, high := p.spaces[i].Outside(t)
	if at < 0 {
		return nil
	}
	return &Error{Code: InvalidArgument, Err: &ChoiceError{p.in[i].Name, indexOf(at, t), v, low, high}}
}

// indexOf is the place of an element, a number for each axis.
func indexOf(at int, t *tensor.Tensor) []int {
	index := make([]int, t.Rank())
	for k, d := range slices.Backward(t.Shape()) {
		index[k] = at % d
		at /= d
	}
	return index
}

// finiteInput reports the first element of an input that is NaN or infinite, where that is checked.
func (p *plan) finiteInput(i int, t *tensor.Tensor) error {
	if !p.checkIn[i] || finite(t) {
		return nil
	}
	at := slices.IndexFunc(numbers(t), func(v float64) bool { return v-v != 0 })
	return &Error{Code: InvalidArgument, Err: &NonFiniteError{p.in[i].Name, indexOf(at, t), numbers(t)[at]}}
}

// numbers widens a floating-point tensor.
func numbers(t *tensor.Tensor) []float64 {
	list := make([]float64, t.Len())
	for i := range list {
		switch t.DType() {
		case tensor.Float32:
			list[i] = float64(t.Float32s()[i])
		case tensor.Float64:
			list[i] = t.Float64s()[i]
		case tensor.Float16:
			list[i] = float64(tensor.Float16ToFloat32(tensor.Data[uint16](t)[i]))
		case tensor.BFloat16:
			list[i] = float64(tensor.BFloat16ToFloat32(tensor.Data[uint16](t)[i]))
		}
	}
	return list
}

// finite reports whether no element is NaN or an infinity; tensors without such elements are
// finite.
func finite(t *tensor.Tensor) bool {
	switch t.DType() {
	case tensor.Float32:
		return finite32(t.Float32s())
	case tensor.Float64:
		for _, v := range t.Float64s() {
			if v-v != 0 {
				return false
			}
		}
	case tensor.Float16, tensor.BFloat16:
		exponent := uint16(0x7c00)
		if t.DType() == tensor.BFloat16 {
			exponent = 0x7f80
		}
		for _, v := range tensor.Data[uint16](t) {
			if v&exponent == exponent {
				return false
			}
		}
	}
	return true
}

// finite32 adds one to the exponents of four elements at a time. Exponents that are all ones, which
// NaN and infinities have, carry into the sign, so there is one branch for many elements.
func finite32(v []float32) bool {
	const ones, one, carry = 0x7f800000, 0x00800000, 0x80000000
	for len(v) >= 4 {
		n := min(len(v)&^3, 256)
		var a, b uint32
		for k := 0; k+4 <= n; k += 4 {
			w := v[k : k+4 : k+4]
			a |= (math.Float32bits(w[0])&ones + one) | (math.Float32bits(w[1])&ones + one)
			b |= (math.Float32bits(w[2])&ones + one) | (math.Float32bits(w[3])&ones + one)
		}
		if (a|b)&carry != 0 {
			return false
		}
		v = v[n:]
	}
	for _, x := range v {
		if math.Float32bits(x)&ones == ones {
			return false
		}
	}
	return true
}
