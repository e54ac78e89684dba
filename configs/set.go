package configs

import (
	"fmt"
	"strconv"
	"strings"
)

// step is one part of a key path: a key (index < 0) or an index into a list.
type step struct {
	key   string
	index int
}

// parsePath reads a.b[0].c; a key with unusual characters is written ["a.b"].
func parsePath(path string) ([]step, error) {
	var steps []step
	rest := path
	for rest != "" {
		if strings.HasPrefix(rest, "[") {
			var s step
			var err error
			if s, rest, err = parseBracket(rest); err != nil {
				return nil, fmt.Errorf("key path %q: %w", path, err)
			}
			steps = append(steps, s)
		} else {
			end := strings.IndexAny(rest, ".[")
			if end < 0 {
				end = len(rest)
			}
			if end == 0 {
				return nil, fmt.Errorf("key path %q: empty key", path)
			}
			steps = append(steps, step{key: rest[:end], index: -1})
			rest = rest[end:]
		}
		if strings.HasPrefix(rest, ".") {
			if rest = rest[1:]; rest == "" || rest[0] == '[' {
				return nil, fmt.Errorf("key path %q: empty key", path)
			}
		} else if rest != "" && rest[0] != '[' {
			return nil, fmt.Errorf("key path %q: expected . or [ before %q", path, rest)
		}
	}
	if len(steps) == 0 {
		return nil, fmt.Errorf("key path is empty")
	}
	return steps, nil
}

func parseBracket(text string) (step, string, error) {
	if strings.HasPrefix(text, `["`) {
		quoted, err := strconv.QuotedPrefix(text[1:])
		if err != nil {
			return step{}, "", fmt.Errorf("unterminated quote in %q", text)
		}
		rest := text[1+len(quoted):]
		if !strings.HasPrefix(rest, "]") {
			return step{}, "", fmt.Errorf("missing ] in %q", text)
		}
		key, err := strconv.Unquote(quoted)
		return step{key: key, index: -1}, rest[1:], err
	}
	end := strings.IndexByte(text, ']')
	if end < 0 {
		return step{}, "", fmt.Errorf("missing ] in %q", text)
	}
	index, err := strconv.ParseUint(text[1:end], 10, 31)
	if err != nil {
		return step{}, "", fmt.Errorf("%q is not an index", text[1:end])
	}
	return step{index: int(index)}, text[end+1:], nil
}

// Set applies assignments of the form path=value, in order, as the command line's --set does. The
// value is YAML, so 3 is an integer, "3" in quotes a string and [1, 2] a list. Mappings on the way
// that the document does not have are created: whether such a key exists is found out by decoding,
// whose errors name the assignment. An index may be at most the length of its list, which appends;
// a list that only exists as a default has to be set as a whole.
func (d *Document) Set(assignments ...string) error {
	var errs Errors
	for _, a := range assignments {
		d.edits++
		at := position{src: &source{name: "--set " + a}, edit: d.edits}
		path, text, ok := strings.Cut(a, "=")
		if path = strings.TrimSpace(path); !ok || path == "" {
			errs = append(errs, newError(at, "", "expected path=value"))
			continue
		}
		if text != "" && strings.ContainsRune("%@`", rune(text[0])) {
			// YAML reserves these at the beginning of a scalar; on a command line they begin a
			// text, such as a format of dates.
			text = strconv.Quote(text)
		}
		value, valueErrs := parse(at.src.name, []byte(text))
		if len(valueErrs) > 0 {
			errs = append(errs, newError(at, path, "%s", valueErrs[0].Message))
			continue
		}
		if value == nil {
			value = &node{}
		}
		value.relocate(at)
		if err := d.assign(path, value, at); err != nil {
			errs = append(errs, err)
		}
	}
	return errs.orNil()
}

// SetValue puts the encoding of v at path, with the rules of Set.
func (d *Document) SetValue(path string, v any) error {
	d.edits++
	return d.setAt(path, v, position{src: &source{name: "value of " + path}, edit: d.edits})
}

// SetFrom is SetValue for a value that follows from a section of another document, where its
// problems are placed.
func (d *Document) SetFrom(path string, v any, from Section) error {
	at := position{}
	if from.node != nil {
		at = from.node.at
	}
	return d.setAt(path, v, at)
}

func (d *Document) setAt(path string, v any, at position) error {
	value, err := encodeValue(v)
	if err != nil {
		return fmt.Errorf("set %s: %w", path, err)
	}
	value = value.clone()
	value.relocate(at)
	if err := d.assign(path, value, at); err != nil {
		return Errors{err}
	}
	return nil
}

// Lookup returns the section at path; ok is false where the document does not have it.
func (d *Document) Lookup(path string) (s Section, ok bool) {
	return Section{node: d.root, notes: d.notes}.Lookup(path)
}

// Clone returns a copy that can be edited independently.
func (d *Document) Clone() *Document {
	return &Document{root: d.root.clone(), edits: d.edits, notes: d.notes}
}

// relocate gives a tree a new origin: the place of a value that was set is the assignment, not the
// file.
func (n *node) relocate(at position) {
	n.at = at
	for i := range n.entries {
		n.entries[i].at = at
		n.entries[i].value.relocate(at)
	}
	for _, item := range n.items {
		item.relocate(at)
	}
}

func (d *Document) assign(path string, value *node, at position) *Error {
	steps, err := parsePath(path)
	if err != nil {
		return newError(at, "", "%v", err)
	}
	if len(steps) > maxDepth {
		return newError(at, path, "nested deeper than %d levels", maxDepth)
	}
	n := d.root
	walked := ""
	for i, s := range steps {
		last := i == len(steps)-1
		var next **node
		if s.index >= 0 {
			switch {
			case n.kind != kindSequence:
				return newError(at, path, "%s is %s in the document and not a list; set the list as a whole",
					describePath(walked), describeSet(n))
			case s.index > len(n.items):
				return newError(at, path, "index %d is beyond the %d elements of %s", s.index, len(n.items), walked)
			case s.index == len(n.items):
				n.items = append(n.items, &node{at: at})
			}
			next = &n.items[s.index]
			walked = joinPath(walked, fmt.Sprintf("[%d]", s.index))
		} else {
			// An absent value becomes a mapping; a value that is there is never thrown away.
			if n.kind == kindNull {
				n.kind = kindMapping
			}
			if n.kind != kindMapping {
				return newError(at, path, "%s is %s, which has no key %q", describePath(walked), describe(n), s.key)
			}
			next = n.slot(s.key, at)
			walked = joinPath(walked, pathKey(s.key))
		}
		if last {
			*next = value
			return nil
		}
		n = *next
	}
	return nil
}

// slot returns the place of a key's value, adding a null where the mapping does not have the key.
func (n *node) slot(key string, at position) **node {
	for i := range n.entries {
		if n.entries[i].key == key {
			n.entries[i].at = at
			return &n.entries[i].value
		}
	}
	n.entries = append(n.entries, entry{key: key, at: at, value: &node{at: at}})
	return &n.entries[len(n.entries)-1].value
}

func describePath(path string) string {
	if path == "" {
		return "the document"
	}
	return path
}

func describeSet(n *node) string {
	if n.kind == kindNull {
		return "absent"
	}
	return describe(n)
}
