package shape

import (
	"slices"
	"strconv"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// freeSymbols names extents that only a run can tell.
type freeSymbols struct {
	names map[extentKey]string
	taken map[string]bool
}

type extentKey struct {
	value string
	axis  int
}

// freePrefix begins the name of an extent that depends on data.
const freePrefix = "?"

// NameUnknown makes e give every unknown extent of a value that it infers from now on a symbol of
// its own: ?1, ?2 and so on. Then values of equal shape are known to be equal in shape even where
// the numbers depend on data. Values inside sub-graphs, which may run many times, are left out.
func (e *Env) NameUnknown() {
	e.free = &freeSymbols{names: map[extentKey]string{}, taken: map[string]bool{}}
	for _, s := range onnx.Symbols(e.model) {
		e.free.taken[s] = true
	}
}

// DependsOnData reports whether an extent is unknown or made of one that [Env.NameUnknown] named.
func (e *Env) DependsOnData(d onnx.Dim) bool {
	return !d.IsKnown() && (d.Param == "" || e.free != nil && strings.Contains(d.Param, freePrefix))
}

// named returns the extents of a value with names for the unknown ones, the same in every call.
func (f *freeSymbols) named(value string, dims []onnx.Dim) []onnx.Dim {
	if !slices.Contains(dims, onnx.Symbol("")) {
		return dims
	}
	dims = slices.Clone(dims)
	for i, d := range dims {
		if d.IsKnown() || d.Param != "" {
			continue
		}
		k := extentKey{value, i}
		if f.names[k] == "" {
			f.names[k] = f.next()
		}
		dims[i] = onnx.Symbol(f.names[k])
	}
	return dims
}

// next returns a name that no symbol of the model has.
func (f *freeSymbols) next() string {
	for n := len(f.names) + 1; ; n++ {
		if name := freePrefix + strconv.Itoa(n); !f.taken[name] {
			return name
		}
	}
}
