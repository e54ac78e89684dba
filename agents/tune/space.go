package tune

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The kinds of a Parameter.
const (
	Uniform     = "uniform"
	LogUniform  = "loguniform"
	Int         = "int"
	Categorical = "categorical"
)

// Parameter is what a search may choose for one key of a document.
type Parameter struct {
	// Kind is uniform or loguniform, numbers in [Low, High]; int, whole numbers in that range, both
	// ends included; or categorical, one of Choices.
	Kind string  `yaml:"kind"`
	Low  float64 `yaml:"low,omitempty"`
	High float64 `yaml:"high,omitempty"`
	// Log spreads an int evenly over its logarithm.
	Log bool `yaml:"log,omitempty"`
	// Choices are values of any form, which go into the document as they are.
	Choices []configs.Section `yaml:"choices,omitempty"`
}

// Validate reports all problems of the parameter.
func (p Parameter) Validate() error {
	var list configs.Problems
	list.OneOf("kind", p.Kind, Uniform, LogUniform, Int, Categorical)
	list.Check(!p.Log || p.Kind == Int, "log", "is of int; numbers spread over their logarithm are %s", LogUniform)
	if p.Kind == Categorical {
		list.Check(len(p.Choices) > 0, "choices", "must not be empty")
		list.Check(p.Low == 0 && p.High == 0, "low", "a categorical parameter has choices and no bounds")
		return list.Err()
	}
	list.Check(len(p.Choices) == 0, "choices", "are of a categorical parameter; this one is %s", p.Kind)
	finite := p.Low-p.Low == 0 && p.High-p.High == 0
	list.Check(finite && p.Low < p.High, "high", "expected numbers with low < high, found %g and %g", p.Low, p.High)
	list.Check(!p.logarithmic() || p.Low > 0, "low", "is %g; a logarithm needs a positive number", p.Low)
	list.Check(p.Kind != Int || p.Low == math.Trunc(p.Low) && p.High == math.Trunc(p.High), "low", "an int has whole bounds, found %g and %g", p.Low, p.High)
	return list.Err()
}

func (p *Parameter) logarithmic() bool { return p.Kind == LogUniform || p.Log }

// integral reports whether values are counted: whole numbers, or positions in the list of choices.
func (p *Parameter) integral() bool { return p.Kind == Int || p.Kind == Categorical }

// Space is a set of parameters by the key path of a document, such as agent.gamma.
type Space map[string]Parameter

// Paths lists the key paths, sorted: the order in which samplers draw.
func (s Space) Paths() []string { return slices.Sorted(maps.Keys(s)) }

// Values is what was chosen for each path: a number, or for a categorical parameter the position of
// the choice.
type Values map[string]float64

// Draw returns random values for all paths.
func (s Space) Draw(from *rng.Stream) Values { return sample(s, Config{Sampler: Random}, nil, from) }

// Examples returns values of the parameter, such as a search may choose: all choices of a
// categorical one, and of others some within the bounds.
func (p *Parameter) Examples() []float64 {
	var list []float64
	if p.Kind == Categorical {
		for i := range p.Choices {
			list = append(list, float64(i))
		}
		return list
	}
	a := axisOf(p)
	// Parts of the golden section, which whole bounds do not make whole numbers of.
	for _, at := range []float64{0.382, 0.618, 0.146, 0.854, 0.056, 0.944} {
		list = append(list, a.from(a.low+at*(a.high-a.low)))
	}
	return list
}

// check returns an error for saved values that are not of the space.
func (s Space) check(v Values) error {
	if !slices.Equal(s.Paths(), slices.Sorted(maps.Keys(v))) {
		return fmt.Errorf("its parameters are %q, expected %q", slices.Sorted(maps.Keys(v)), s.Paths())
	}
	for path, p := range s {
		low, high := p.Low, p.High
		if p.Kind == Categorical {
			low, high = 0, float64(len(p.Choices)-1)
		}
		if x := v[path]; !(x >= low && x <= high) || p.integral() && x != math.Trunc(x) {
			return fmt.Errorf("its %s is %g, which the search space does not have", path, x)
		}
	}
	return nil
}

// Apply puts the values into a document.
func (s Space) Apply(doc *configs.Document, v Values) error {
	for _, path := range s.Paths() {
		p := s[path]
		var err error
		switch p.Kind {
		case Categorical:
			err = doc.SetValue(path, p.Choices[int(v[path])])
		case Int:
			err = doc.SetValue(path, int64(v[path]))
		default:
			err = doc.SetValue(path, v[path])
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sets are the edits that put the values into a document, as --set takes them.
func (s Space) Sets(v Values) (list []string, err error) {
	doc, err := configs.Parse("the values", nil)
	if err == nil {
		err = s.Apply(doc, v)
	}
	for _, path := range s.Paths() {
		section, _ := doc.Lookup(path)
		text, merr := configs.Marshal(section)
		if err = errors.Join(err, merr); err != nil {
			return nil, err
		}
		list = append(list, path+"="+strings.TrimSpace(string(text)))
	}
	return list, nil
}

// Text is a value as people read it.
func (s Space) Text(path string, x float64) string {
	p := s[path]
	switch p.Kind {
	case Categorical:
		text, err := configs.Marshal(p.Choices[int(x)])
		if err != nil {
			return strconv.Itoa(int(x))
		}
		return strings.Join(strings.Fields(string(text)), " ")
	case Int:
		return strconv.FormatInt(int64(x), 10)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
