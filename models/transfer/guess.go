package transfer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// guess looks for the prefix by which the source's names and the network's differ. It returns nil
// where names agree already, where there is no prefix that makes all names of one side agree, and
// where there are several; the hint then says what was found.
func (s *Source) guess(values map[string]*tensor.Tensor) (*Rename, string) {
	source := map[string][]int{}
	for _, a := range s.arrays {
		if _, same := values[a.name]; same && !a.spare {
			return nil, ""
		}
		if !a.spare {
			source[a.name] = a.shape
		}
	}
	network := map[string][]int{}
	for name, t := range values {
		network[name] = t.Shape()
	}
	// The source is a part of the network, or the network a part of the source.
	added, most := prefixes(source, network)
	if len(added) == 1 {
		return &Rename{To: added[0]}, ""
	}
	if len(added) > 1 {
		return nil, fmt.Sprintf("; the source fits the network below each of %s: say which by a rename", some(added))
	}
	removed, _ := prefixes(network, source)
	if len(removed) == 1 {
		return &Rename{From: removed[0]}, ""
	}
	if len(removed) > 1 {
		return nil, fmt.Sprintf("; the network fits the source below each of %s: say which by a rename", some(removed))
	}
	if most.n > 0 {
		return nil, fmt.Sprintf("; with %q before the source's names %d would have the name of a parameter: say so by a rename", most.prefix, most.n)
	}
	return nil, ""
}

type candidate struct {
	prefix string
	n      int
}

// prefixes lists, sorted, the prefixes under which all parts are in the whole: by name and shape
// or, where there are none, by name alone. most is the prefix, not counting these, under which most
// parts are by name.
func prefixes(part, whole map[string][]int) (fit []string, most candidate) {
	count := map[string]int{}
	shaped := map[string]int{}
	for name, shape := range part {
		for long, other := range whole {
			prefix, ok := strings.CutSuffix(long, name)
			if !ok || prefix == "" || !strings.HasSuffix(prefix, ".") && !strings.HasSuffix(prefix, "/") {
				continue
			}
			count[prefix]++
			if slices.Equal(shape, other) {
				shaped[prefix]++
			}
		}
	}
	var named []string
	for _, p := range slices.Sorted(maps.Keys(count)) {
		if shaped[p] == len(part) {
			fit = append(fit, p)
		}
		if count[p] == len(part) {
			named = append(named, p)
		}
		if count[p] > most.n {
			most = candidate{p, count[p]}
		}
	}
	if len(fit) == 0 {
		fit = named
	}
	return fit, most
}

// some lists at most ten names.
func some(names []string) string {
	const most = 10
	quoted := make([]string, 0, most)
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	text := strings.Join(quoted, ", ")
	if len(names) > most {
		text += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return text
}
