package configs

import (
	"fmt"
	"strings"
)

// kind classifies a node of a document after scalar resolution.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindInt
	kindFloat
	kindString
	kindSequence
	kindMapping
)

var kindNames = [...]string{"null", "a bool", "an integer", "a number", "a string", "a list", "a mapping"}

func (k kind) String() string { return kindNames[k] }

// source is where a node's text came from: a file, or a command-line assignment.
type source struct {
	name  string
	lines []string // nil when the name alone is the position
}

// line returns a line of the source, "" where there is none; lines count from 1.
func (s *source) line(number int) string {
	if number < 1 || number > len(s.lines) {
		return ""
	}
	return s.lines[number-1]
}

// position is a place in a source. Line and column count from 1; line 0 means the source as a
// whole.
type position struct {
	src          *source
	line, column int
	// edit counts the assignments to the document up to the one that set the value; 0 is the file.
	edit int
}

func (p position) String() string {
	switch {
	case p.src == nil:
		return ""
	case p.line == 0 || p.src.lines == nil:
		return p.src.name
	}
	return fmt.Sprintf("%s:%d:%d", p.src.name, p.line, p.column)
}

// excerpt returns the source line with a caret below the column, or "" where there is no source
// line.
func (p position) excerpt() string {
	if p.src == nil || p.line < 1 || p.line > len(p.src.lines) {
		return ""
	}
	line := []rune(p.src.lines[p.line-1])
	column := min(max(p.column, 1), len(line)+1)
	from := max(0, column-60)
	to := min(len(line), from+120)
	// Tabs are kept in the padding so that the caret stays below its column.
	pad := []rune(strings.Repeat(" ", column-1-from))
	for i := range pad {
		if line[from+i] == '\t' {
			pad[i] = '\t'
		}
	}
	margin := fmt.Sprintf("%5d", p.line)
	return fmt.Sprintf("%s | %s\n%*s | %s^", margin, string(line[from:to]), len(margin), "", string(pad))
}

// node is one value of a document. Scalars keep their text, so that a document is written as it was
// read.
type node struct {
	kind    kind
	text    string // a scalar's plain text, or a string's value
	entries []entry
	items   []*node
	at      position
}

type entry struct {
	key   string
	at    position
	value *node
}

func (n *node) lookup(key string) *node {
	for i := range n.entries {
		if n.entries[i].key == key {
			return n.entries[i].value
		}
	}
	return nil
}

func (n *node) clone() *node {
	c := *n
	c.entries = make([]entry, len(n.entries))
	for i, e := range n.entries {
		e.value = e.value.clone()
		c.entries[i] = e
	}
	c.items = make([]*node, len(n.items))
	for i, item := range n.items {
		c.items[i] = item.clone()
	}
	return &c
}

// find returns the node at a path relative to n, or the deepest node on the way to it.
func (n *node) find(path string) (found *node, exact bool) {
	steps, err := parsePath(path)
	if err != nil {
		return n, false
	}
	for _, s := range steps {
		var next *node
		switch {
		case s.index < 0 && n.kind == kindMapping:
			next = n.lookup(s.key)
		case s.index >= 0 && n.kind == kindSequence && s.index < len(n.items):
			next = n.items[s.index]
		}
		if next == nil {
			return n, false
		}
		n = next
	}
	return n, true
}
