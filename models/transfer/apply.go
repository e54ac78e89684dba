package transfer

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/objects"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Errors that callers decide by.
var (
	// ErrPartial says that some parameters of the network have no counterpart in the source.
	ErrPartial = errors.New("not every parameter of the network is matched")
	// ErrNothing says that no parameter of the network has one.
	ErrNothing = errors.New("no parameter of the network is matched")
)

// Rename replaces the prefix From of a source's names by To. An empty From puts To before every
// name.
type Rename struct {
	From string `json:"from" yaml:"from"`
	To   string `json:"to" yaml:"to"`
}

// Options of Apply.
type Options struct {
	// Partial accepts that parameters of the network stay as they are.
	Partial bool
	// Rename lists changes of names; of several that fit a name the first counts. One that fits no
	// name is an error. Without any, a prefix may be found; see the package comment.
	Rename []Rename
}

// Apply copies the source into the parameters of a network: tensors of float32 by name, of which
// only the content is changed. The report is there also when there is an error, as long as names
// could be compared.
func (s *Source) Apply(values map[string]*tensor.Tensor, o Options) (*Report, error) {
	r, err := s.apply(values, o)
	if err != nil {
		return r, fmt.Errorf("start from %s: %w", s.Name, err)
	}
	return r, nil
}

func (s *Source) apply(values map[string]*tensor.Tensor, o Options) (*Report, error) {
	if s.close == nil && s.arrays == nil {
		return nil, errors.New("the source is closed")
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if t := values[name]; t == nil || t.DType() != tensor.Float32 {
			return nil, fmt.Errorf("parameter %q of the network is %v, expected float32", name, t)
		}
	}
	r := &Report{Source: objects.Named(s.Name), Kind: s.Kind, Renamed: append([]Rename{}, o.Rename...), Matched: []Match{}, New: []Param{}, LeftOver: []Param{}, ShapeMismatch: []Mismatch{}}
	hint := ""
	if len(o.Rename) == 0 {
		var auto *Rename
		if auto, hint = s.guess(values); auto != nil {
			r.Renamed, r.Automatic = []Rename{*auto}, true
		}
	}
	byName, err := s.renamed(r.Renamed)
	if err != nil {
		return nil, err
	}
	r.match(s.arrays, byName, values)
	switch {
	case len(r.Matched) == 0:
		return r, fmt.Errorf("%w%s%s", ErrNothing, r.firstProblem(), hint)
	case !o.Partial && len(r.Matched) < len(values):
		return r, fmt.Errorf("%w: %d of %d are%s%s", ErrPartial, len(r.Matched), len(values), r.firstProblem(), hint)
	}
	return r, r.copy(byName, values)
}

// renamed returns the arrays by the names that they have in the network.
func (s *Source) renamed(renames []Rename) (map[string]array, error) {
	used := make([]bool, len(renames))
	byName := map[string]array{}
	for _, a := range s.arrays {
		name := a.name
		for i, n := range renames {
			if rest, ok := strings.CutPrefix(a.name, n.From); ok {
				name, used[i] = n.To+rest, true
				break
			}
		}
		if other, ok := byName[name]; ok {
			return nil, fmt.Errorf("rename: %q and %q would both be %q", other.name, a.name, name)
		}
		byName[name] = a
	}
	for i, n := range renames {
		if !used[i] {
			return nil, fmt.Errorf("rename %q to %q: no name of the source begins so; it has %s", n.From, n.To, some(s.Names()))
		}
	}
	return byName, nil
}

// match compares names and shapes.
func (r *Report) match(arrays []array, byName map[string]array, values map[string]*tensor.Tensor) {
	taken := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		shape := values[name].Shape()
		a, ok := byName[name]
		switch {
		case !ok:
			r.New = append(r.New, Param{Name: name, Shape: shape})
		case !slices.Equal(a.shape, shape):
			r.ShapeMismatch = append(r.ShapeMismatch, Mismatch{Name: name, From: a.name, Network: shape, Source: a.shape})
			taken[a.name] = true
		default:
			r.Matched = append(r.Matched, Match{Name: name, From: a.name, Shape: shape})
			taken[a.name] = true
		}
	}
	for _, a := range arrays {
		if !taken[a.name] && !a.spare {
			r.LeftOver = append(r.LeftOver, Param{Name: a.name, Shape: a.shape})
		}
	}
}

// copy reads everything that matched and then, when nothing is wrong with it, copies it.
func (r *Report) copy(byName map[string]array, values map[string]*tensor.Tensor) error {
	read := make([]*tensor.Tensor, len(r.Matched))
	for i, m := range r.Matched {
		t, err := byName[m.Name].read()
		if err != nil {
			return err
		}
		if read[i], err = single(t); err != nil {
			return fmt.Errorf("%q: %w", m.From, err)
		}
	}
	for i, m := range r.Matched {
		if err := values[m.Name].CopyFrom(read[i]); err != nil {
			return fmt.Errorf("parameter %q: %w", m.Name, err)
		}
	}
	return nil
}

// single returns the tensor in float32. Values that are no numbers are refused: nothing can be
// trained from them.
func single(t *tensor.Tensor) (*tensor.Tensor, error) {
	out, err := tensor.ToFloat32(t)
	if err != nil {
		return nil, err
	}
	for i, v := range out.Float32s() {
		if math.IsNaN(float64(v)) || math.IsInf(float64(v), 0) {
			return nil, fmt.Errorf("element %d is %v, expected a finite number", i, v)
		}
	}
	return out, nil
}
