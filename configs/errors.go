package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Error is one problem of a document. File is the name given to [Parse] or the command-line
// assignment ("--set a=1"); Line and Column count from 1 and are 0 where the problem has no place
// in a file, such as a default that is invalid.
type Error struct {
	File         string
	Line, Column int
	Path         string // key path such as agent.layers[1].width; empty at the top
	Message      string
	Excerpt      string // the line of the source and a caret; may be empty
}

// Error returns "file:line:column: path: message" and, on following lines, the excerpt.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path)
		b.WriteString(": ")
	}
	b.WriteString(e.Message)
	if e.Excerpt != "" {
		b.WriteByte('\n')
		b.WriteString(e.Excerpt)
	}
	return b.String()
}

// Errors is every problem that was found, in the order of the document. [errors.As] reaches the
// individual *Error.
type Errors []*Error

// Error returns the problems one below the other.
func (e Errors) Error() string {
	parts := make([]string, len(e))
	for i, err := range e {
		parts[i] = err.Error()
	}
	return strings.Join(parts, "\n")
}

// Unwrap makes the individual problems visible to errors.Is and errors.As.
func (e Errors) Unwrap() []error {
	list := make([]error, len(e))
	for i, err := range e {
		list[i] = err
	}
	return list
}

// Sort puts the problems in the order of a document's lines, edits first as they were made.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(x, y *Error) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
}

func (e Errors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

func newError(at position, path, format string, args ...any) *Error {
	err := &Error{Path: path, Message: fmt.Sprintf(format, args...), Excerpt: at.excerpt()}
	if at.src != nil {
		err.File = at.src.name
		if at.src.lines != nil {
			err.Line, err.Column = at.line, at.column
		}
	}
	return err
}

// joinPath appends a key to a path: "", "a" -> "a"; "a", "b" -> "a.b"; "a", "[0]" -> "a[0]".
func joinPath(path, key string) string {
	switch {
	case path == "":
		return key
	case key == "":
		return path
	case key[0] == '[':
		return path + key
	}
	return path + "." + key
}

// pathKey writes a mapping key as a path step; keys that would be misread are quoted.
func pathKey(key string) string {
	if key != "" && !strings.ContainsAny(key, ".[]\"=\n") {
		return key
	}
	return fmt.Sprintf("[%q]", key)
}
