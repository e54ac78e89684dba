package study

import (
	"errors"
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// Assignments is a mapping from key paths to values, in the order of the document.
type Assignments []Assignment

// Assignment puts a value at a key path of a document.
type Assignment struct {
	Path  string
	Value configs.Section
}

// DecodeConfig reads the mapping. Whether a path exists is found out by decoding the document it is
// assigned to.
func (a *Assignments) DecodeConfig(raw configs.Section) error {
	var doc map[string]configs.Section
	if err := raw.Decode(&doc); err != nil {
		return err
	}
	*a = nil
	var errs configs.Errors
	for _, path := range raw.Keys() {
		if doc[path].IsZero() {
			errs = append(errs, Problems(raw.Errorf(PathKey(path), "the value is missing"))...)
		}
		*a = append(*a, Assignment{Path: path, Value: doc[path]})
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// EncodeConfig writes the mapping in its order.
func (a Assignments) EncodeConfig() (any, error) {
	doc, err := configs.Parse("set", nil)
	if err != nil {
		return nil, err
	}
	for _, v := range a {
		if err := doc.SetValue(PathKey(v.Path), v.Value); err != nil {
			return nil, err
		}
	}
	return doc, nil
}

// String is what --set would take.
func (a Assignments) String() string {
	parts := make([]string, len(a))
	for i, v := range a {
		parts[i] = v.Path + "=" + flow(v.Value)
	}
	return strings.Join(parts, " ")
}

// flow writes a value on one line.
func flow(v configs.Section) string {
	var list []configs.Section
	var entries map[string]configs.Section
	switch {
	case !v.IsScalar() && v.Decode(&list) == nil:
		parts := make([]string, len(list))
		for i, e := range list {
			parts[i] = flow(e)
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case !v.IsScalar() && v.Decode(&entries) == nil:
		var parts []string
		for _, k := range v.Keys() {
			parts = append(parts, k+": "+flow(entries[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	text, err := configs.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text))
}

// Apply assigns to a document. Problems are placed at the assignments.
func (a Assignments) Apply(doc *configs.Document) error {
	var errs configs.Errors
	for _, v := range a {
		if err := doc.SetValue(v.Path, v.Value); err != nil {
			errs = append(errs, a.Place(err)...)
		}
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// Place gives problems of a document the positions of the assignments that caused them; a problem
// elsewhere keeps its own.
func (a Assignments) Place(err error) configs.Errors {
	var placed configs.Errors
	for _, e := range Problems(err) {
		for _, v := range a {
			// The name that a Document gives to values that were set.
			if e.File != "value of "+v.Path {
				continue
			}
			at := Problems(v.Value.Errorf("", "%s", e.Message))[0]
			if e.Path != v.Path && e.Path != "" {
				at.Message = e.Path + ": " + at.Message
			}
			e = at
			break
		}
		placed = append(placed, e)
	}
	return placed
}

// Problems makes one list of an error: what has no place stands as a message alone.
func Problems(err error) configs.Errors {
	var list configs.Errors
	if errors.As(err, &list) {
		return list
	}
	return configs.Errors{{Message: err.Error()}}
}

// PathKey writes a key as a step of a key path.
func PathKey(key string) string { return fmt.Sprintf("[%q]", key) }

// Slug is a name as a part of a folder's: letters, digits, underscores and inner dots; runs of
// everything else are a hyphen.
func Slug(name string) string {
	var b strings.Builder
	hyphen := false
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '_' || r == '.' && b.Len() > 0:
			if hyphen && b.Len() > 0 {
				b.WriteByte('-')
			}
			hyphen = false
			b.WriteRune(r)
		default:
			hyphen = true
		}
	}
	return strings.TrimRight(b.String(), ".")
}
