package configs

import (
	"fmt"
	"strings"
)

// Change is a key path whose value differs between two configurations. Old and New are the values
// as YAML on one line; "" says that the path is absent on that side.
type Change struct {
	Path     string
	Old, New string
}

// String returns "path: old -> new".
func (c Change) String() string {
	name := func(s string) string {
		if s == "" {
			return "absent"
		}
		return s
	}
	return fmt.Sprintf("%s: %s -> %s", c.Path, name(c.Old), name(c.New))
}

// Diff compares two configurations, each a struct, [Section] or *[Document], and lists what differs
// in the order of a, then what only b has. Numbers are compared by value, so 3e-4 and 0.0003 are
// equal, and 1 and 1.0 too.
func Diff(a, b any) ([]Change, error) {
	left, err := encodeValue(a)
	if err != nil {
		return nil, err
	}
	right, err := encodeValue(b)
	if err != nil {
		return nil, err
	}
	var changes []Change
	diff(left, right, "", &changes)
	return changes, nil
}

func diff(a, b *node, path string, changes *[]Change) {
	switch {
	case a != nil && b != nil && a.kind == kindMapping && b.kind == kindMapping:
		for _, e := range a.entries {
			diff(e.value, b.lookup(e.key), joinPath(path, pathKey(e.key)), changes)
		}
		for _, e := range b.entries {
			if a.lookup(e.key) == nil {
				diff(nil, e.value, joinPath(path, pathKey(e.key)), changes)
			}
		}
	case a != nil && b != nil && a.kind == kindSequence && b.kind == kindSequence:
		at := func(n *node, i int) *node {
			if i < len(n.items) {
				return n.items[i]
			}
			return nil
		}
		for i := range max(len(a.items), len(b.items)) {
			diff(at(a, i), at(b, i), joinPath(path, fmt.Sprintf("[%d]", i)), changes)
		}
	case !equalScalars(a, b):
		*changes = append(*changes, Change{Path: path, Old: oneLine(a), New: oneLine(b)})
	}
}

func equalScalars(a, b *node) bool {
	if a == nil || b == nil {
		return a == b
	}
	if numeric(a) && numeric(b) {
		an, am, aerr := parseInteger(a.text)
		bn, bm, berr := parseInteger(b.text)
		if aerr == nil && berr == nil {
			return an == bn && am == bm
		}
		x, xerr := parseFloat(a.text, 64)
		y, yerr := parseFloat(b.text, 64)
		if xerr == nil && yerr == nil {
			return x == y || x != x && y != y
		}
	}
	if a.kind == kindBool && b.kind == kindBool {
		return strings.EqualFold(a.text, b.text)
	}
	if a.kind == kindNull && b.kind == kindNull {
		return true
	}
	return a.kind == b.kind && a.kind < kindSequence && a.text == b.text
}

func numeric(n *node) bool { return n.kind == kindInt || n.kind == kindFloat }

func oneLine(n *node) string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	n.writeFlow(&b)
	return b.String()
}
