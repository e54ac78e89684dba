package indicator

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
)

// Configured is an indicator with its parameters.
type Configured struct {
	Kind   *Kind
	Params []float64
}

// Label is the indicator's name with its parameters.
func (c Configured) Label() string { return c.Kind.Label(c.Params) }

// New returns the state before the first bar.
func (c Configured) New() Indicator { return c.Kind.New(c.Params) }

// Set is a list of configured indicators in the order of [Kinds] and, within a kind, of the
// document. In a document it is a mapping from kinds to parameters:
//
//	sma: [10, 20, 50]       # of a kind with one parameter: three indicators
//	macd: [12, 26, 9]       # of another kind: its parameters; the ones left out have their defaults
//	bbands: [[20, 2], [50, 2.5]]
//	heikin_ashi: true       # the defaults; false leaves the indicator out
type Set []Configured

// Add appends indicators of a kind, checking the parameters, and keeps the order.
func (s *Set) Add(kind string, params ...float64) error {
	k := Find(kind)
	if k == nil {
		return fmt.Errorf("unknown indicator %q", kind)
	}
	p, err := k.Complete(params)
	if err != nil {
		return err
	}
	c := Configured{Kind: k, Params: p}
	if slices.ContainsFunc(*s, func(o Configured) bool { return o.Label() == c.Label() }) {
		return fmt.Errorf("%s is there twice", c.Label())
	}
	*s = append(*s, c)
	slices.SortStableFunc(*s, func(a, b Configured) int { return slices.Index(kinds, a.Kind) - slices.Index(kinds, b.Kind) })
	return nil
}

// DecodeConfig reads the mapping; all its problems are reported.
func (s *Set) DecodeConfig(raw configs.Section) error {
	var doc map[string]configs.Section
	if err := raw.Decode(&doc); err != nil {
		return err
	}
	*s = nil
	var errs configs.Errors
	for _, name := range raw.Keys() {
		k := Find(name)
		if k == nil {
			errs = append(errs, asErrors(raw.Errorf(name, "unknown indicator %q; known are %v", name, Names()))...)
			continue
		}
		tuples, err := k.tuples(doc[name])
		if err != nil {
			errs = append(errs, asErrors(err)...)
			continue
		}
		for _, p := range tuples {
			if err := s.Add(name, p...); err != nil {
				errs = append(errs, asErrors(raw.Errorf(name, "%v", err))...)
			}
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// asErrors makes one list of what a Section reports.
func asErrors(err error) configs.Errors {
	if list, ok := err.(configs.Errors); ok {
		return list
	}
	return configs.Errors{{Message: err.Error()}}
}

// tuples reads the parameters of a kind: true, a number, a list of numbers or a list of lists.
func (k *Kind) tuples(raw configs.Section) ([][]float64, error) {
	if raw.IsZero() {
		return nil, nil
	}
	if raw.IsScalar() {
		var on bool
		if raw.Decode(&on) == nil {
			if on {
				return [][]float64{nil}, nil
			}
			return nil, nil
		}
		var v float64
		if raw.Decode(&v) != nil {
			return nil, raw.Errorf("", "expected true, a number or a list of numbers%s", k.paramNames())
		}
		return [][]float64{{v}}, nil
	}
	var many [][]float64
	if raw.Decode(&many) == nil && len(many) > 0 {
		return many, nil
	}
	var list []float64
	if raw.Decode(&list) != nil {
		return nil, raw.Errorf("", "expected true, a number, a list of numbers%s or a list of such lists", k.paramNames())
	}
	if !k.Each || len(list) == 0 {
		return [][]float64{list}, nil
	}
	single := make([][]float64, len(list))
	for i, v := range list {
		single[i] = []float64{v}
	}
	return single, nil
}

// EncodeConfig writes every indicator with all its parameters.
func (s Set) EncodeConfig() (any, error) {
	out := map[string]any{}
	for _, c := range s {
		switch name := c.Kind.Name; {
		case len(c.Kind.Params) == 0:
			out[name] = true
		case c.Kind.Each:
			old, _ := out[name].([]float64)
			out[name] = append(old, c.Params[0])
		default:
			old, _ := out[name].([][]float64)
			out[name] = append(old, c.Params)
		}
	}
	return out, nil
}
