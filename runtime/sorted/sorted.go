// Package sorted iterates over maps in the order of their keys. Go's own order changes from run to
// run, and so does whatever a loop leaves behind: the last value it set, the first error it met,
// the order of what it printed. Tests range over maps by it throughout; a test of the layout finds
// those that do not.
package sorted

import (
	"cmp"
	"iter"
	"maps"
	"slices"
)

// All iterates over m in increasing order of the keys. The keys are those at the first step: one
// deleted since comes with the zero value, one added since does not come.
func All[M ~map[K]V, K cmp.Ordered, V any](m M) iter.Seq2[K, V] {
	return Func(m, cmp.Compare[K])
}

// Func is [All] for keys that compare orders, which reports whether a is less than b by a negative
// number, greater by a positive one.
func Func[M ~map[K]V, K comparable, V any](m M, compare func(a, b K) int) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.SortedFunc(maps.Keys(m), compare) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}
