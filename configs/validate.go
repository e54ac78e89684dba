package configs

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// Validator is implemented by configurations that check their own fields. Nested structs are not
// its business: [Validate] visits them. Collect with [Problems] and return its Err; any other error
// is placed at the struct.
type Validator interface {
	Validate() error
}

// Problem is a field whose value is not acceptable. Path is relative to the struct whose Validate
// found it.
type Problem struct {
	Path, Message string
}

// Problems collects what is wrong. The zero value is ready to use.
type Problems struct {
	list []Problem
}

// Invalid is the error that Problems.Err returns.
type Invalid []Problem

// Error returns the problems one below the other.
func (e Invalid) Error() string {
	lines := make([]string, len(e))
	for i, p := range e {
		lines[i] = joinMessage(p.Path, p.Message)
	}
	return strings.Join(lines, "\n")
}

func joinMessage(path, message string) string {
	if path == "" {
		return message
	}
	return path + ": " + message
}

// Err returns nil, or an [Invalid] with everything collected.
func (p *Problems) Err() error {
	if len(p.list) == 0 {
		return nil
	}
	return Invalid(slices.Clone(p.list))
}

// Addf records a problem of the field with this key, such as "lr" or "layers[2].width"; "" means
// the struct itself.
func (p *Problems) Addf(key, format string, args ...any) {
	p.list = append(p.list, Problem{Path: key, Message: fmt.Sprintf(format, args...)})
}

// Check records the problem unless ok.
func (p *Problems) Check(ok bool, key, format string, args ...any) {
	if !ok {
		p.Addf(key, format, args...)
	}
}

// Positive requires a number above zero and, like all the following, a finite one. v is any integer
// or float type.
func (p *Problems) Positive(key string, v any) {
	p.Check(number(v) > 0 && !math.IsInf(number(v), 0), key, "must be positive, is %v", v)
}

// NonNegative requires a number of at least zero.
func (p *Problems) NonNegative(key string, v any) {
	p.Check(number(v) >= 0 && !math.IsInf(number(v), 0), key, "must not be negative, is %v", v)
}

// InRange requires low <= v <= high.
func (p *Problems) InRange(key string, v any, low, high float64) {
	p.Check(number(v) >= low && number(v) <= high, key, "must be between %v and %v, is %v", low, high, v)
}

// AtLeast requires v >= low.
func (p *Problems) AtLeast(key string, v any, low float64) {
	p.Check(number(v) >= low && !math.IsInf(number(v), 0), key, "must be at least %v, is %v", low, v)
}

// OneOf requires one of the allowed words and suggests the nearest.
func (p *Problems) OneOf(key, v string, allowed ...string) {
	if slices.Contains(allowed, v) {
		return
	}
	hint := ""
	if guess := DidYouMean(v, allowed); guess != "" {
		hint = "; " + guess
	}
	p.Addf(key, "must be one of %s, is %q%s", strings.Join(allowed, ", "), v, hint)
}

// NotEmpty requires a string, slice or map with something in it.
func (p *Problems) NotEmpty(key string, v any) {
	p.Check(reflect.ValueOf(v).Len() > 0, key, "must not be empty")
}

// Join records the problems of a part that was checked separately, below key.
func (p *Problems) Join(key string, err error) {
	var invalid Invalid
	switch {
	case err == nil:
	case errors.As(err, &invalid):
		for _, q := range invalid {
			p.list = append(p.list, Problem{Path: joinPath(key, q.Path), Message: q.Message})
		}
	default:
		p.Addf(key, "%v", err)
	}
}

func number(v any) float64 {
	r := reflect.ValueOf(v)
	switch {
	case r.CanInt():
		return float64(r.Int())
	case r.CanUint():
		return float64(r.Uint())
	case r.CanFloat():
		return r.Float()
	}
	panic(fmt.Sprintf("configs: %T is not a number", v))
}

// Validate calls Validate of v and of every struct, list element and map value below it, and
// returns all problems at once with their key paths: nil or an [Invalid]. Sections are not entered;
// their owners validate them when they decode.
func Validate(v any) error {
	var p Problems
	visit(reflect.ValueOf(v), "", 0, &p)
	// A method promoted from an embedded struct is found twice.
	seen := map[Problem]bool{}
	p.list = slices.DeleteFunc(p.list, func(q Problem) bool {
		again := seen[q]
		seen[q] = true
		return again
	})
	return p.Err()
}

func visit(v reflect.Value, path string, depth int, p *Problems) {
	if !v.IsValid() || depth > maxDepth || !v.CanInterface() {
		return
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			visit(v.Elem(), path, depth+1, p)
		}
		return
	}
	if own, ok := asInterface(v, reflect.TypeFor[Validator]()).(Validator); ok {
		p.Join(path, own.Validate())
	}
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[Section]() || v.Type() == reflect.TypeFor[Kinded]() {
			return
		}
		for _, f := range fieldsOf(v.Type()) {
			visit(v.FieldByIndex(f.index), joinPath(path, pathKey(f.key)), depth+1, p)
		}
		visitInlined(v, path, depth, p)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			visit(v.Index(i), joinPath(path, fmt.Sprintf("[%d]", i)), depth+1, p)
		}
	case reflect.Map:
		keys := v.MapKeys()
		slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
		for _, key := range keys {
			visit(v.MapIndex(key), joinPath(path, pathKey(key.String())), depth+1, p)
		}
	}
}

// visitInlined validates embedded structs, whose fields have been visited but whose own Validate
// has not.
func visitInlined(v reflect.Value, path string, depth int, p *Problems) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if f.IsExported() && f.Type.Kind() == reflect.Struct && (options == "inline" || f.Anonymous && tag == "") {
			visit(v.Field(i), path, depth+1, p)
		}
	}
}

// locate turns problems into errors at the places of the document their paths lead to. A path that
// the document does not have is a default and has no place.
func locate(n *node, base string, err error) error {
	var invalid Invalid
	if !errors.As(err, &invalid) {
		return err
	}
	var errs Errors
	for _, p := range invalid {
		at := position{}
		if found, exact := n.find(p.Path); exact || p.Path == "" {
			at = found.at
		} else if n.at.src != nil {
			at = position{src: &source{name: n.at.src.name}}
		}
		errs = append(errs, newError(at, joinPath(base, p.Path), "%s", p.Message))
	}
	return errs
}
