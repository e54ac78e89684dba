package optim

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/optim/kernel"
)

// NonFiniteError says which value is infinite or NaN.
type NonFiniteError struct {
	What  string  // what the values are, e.g. "gradient"
	Param string  // the parameter, or the group if it has no named members
	Index int     // element within Param
	Value float32 // ±Inf or NaN
}

func (e *NonFiniteError) Error() string {
	return fmt.Sprintf("%s of %s is %g at element %d", e.What, e.Param, e.Value, e.Index)
}

// FindNonFinite returns a *NonFiniteError for the first infinite or NaN element
// of the parameters of list in the arena x, or nil. what says what x holds.
func FindNonFinite(what string, x []float32, list []Param) error {
	for _, p := range list {
		part := x[p.Offset : p.Offset+p.Len]
		if i := kernel.FirstNonFinite(part); i >= 0 {
			return &NonFiniteError{What: what, Param: p.Name, Index: i, Value: part[i]}
		}
	}
	return nil
}

// nonFinite describes the first non-finite element of x, which has the extent
// of g and holds at least one.
func (g *Group) nonFinite(what string, x []float32) error {
	i := kernel.FirstNonFinite(x)
	e := &NonFiniteError{What: what, Param: g.Name, Index: i, Value: x[i]}
	if e.Param == "" {
		e.Param = "an unnamed group"
	}
	for _, p := range g.Members {
		if k := g.Offset + i - p.Offset; k >= 0 && k < p.Len {
			e.Param, e.Index = p.Name, k
		}
	}
	return e
}
