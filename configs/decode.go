package configs

import (
	"encoding"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Decoder is implemented by types that read their own part of a document. The section is never the
// zero Section. An error that is an [Errors] keeps its positions; another error is placed at the
// section.
type Decoder interface {
	DecodeConfig(s Section) error
}

// Defaulter is implemented by elements of lists and maps, and by sections behind pointers, that
// have defaults: SetDefaults makes an element, or a section that was nil, what its mapping is
// decoded over.
type Defaulter interface{ SetDefaults() }

// Encoder is implemented by types that choose what is written for them: any value that [Marshal]
// accepts.
type Encoder interface {
	EncodeConfig() (any, error)
}

var (
	decoderType         = reflect.TypeFor[Decoder]()
	encoderType         = reflect.TypeFor[Encoder]()
	textUnmarshalerType = reflect.TypeFor[encoding.TextUnmarshaler]()
	textMarshalerType   = reflect.TypeFor[encoding.TextMarshaler]()
	durationType        = reflect.TypeFor[time.Duration]()
)

// isLeaf says whether a struct type is written by itself and not field by field.
func isLeaf(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(decoderType) || p.Implements(textUnmarshalerType)
}

// Decode reads the document into the struct that into points to, which holds the defaults, and
// validates the result as [Validate] does. Every problem is reported; the error is an [Errors].
// After an error the struct is partly filled.
func (d *Document) Decode(into any) error {
	return decodeNode(d.root, "", d.notes, into)
}

func decodeNode(n *node, path string, t *notes, into any) error {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		panic(fmt.Sprintf("configs: Decode into %T, want a pointer", into))
	}
	dec := decoding{notes: t}
	n = dec.rename(n, path, v.Type())
	dec.value(n, path, v.Elem())
	err := Validate(into)
	if len(dec.errs) == 0 {
		return locate(n, path, err)
	}
	// Nothing is said of defaults, which may stand for what could not be read or has a wrong name.
	var invalid Invalid
	errors.As(err, &invalid)
	invalid = slices.DeleteFunc(invalid, func(p Problem) bool {
		at := joinPath(path, p.Path)
		_, there := n.find(p.Path)
		return !there || slices.ContainsFunc(dec.errs, func(d *Error) bool { return within(d.Path, at) || within(at, d.Path) })
	})
	var located Errors
	errors.As(locate(n, path, invalid), &located)
	errs := append(dec.errs, located...)
	errs.Sort()
	return errs
}

// within reports whether a path is another or below it.
func within(path, above string) bool {
	rest, ok := strings.CutPrefix(path, above)
	return ok && (rest == "" || above == "" || rest[0] == '.' || rest[0] == '[')
}

type decoding struct {
	errs  Errors
	notes *notes
}

func (d *decoding) fail(n *node, path, format string, args ...any) {
	d.errs = append(d.errs, newError(n.at, path, format, args...))
}

func (d *decoding) wrong(n *node, path, want string) {
	hint := ""
	switch {
	case want == "a string" && n.kind < kindString && n.kind != kindNull:
		hint = ": put it in quotes"
	case want == "a bool" && n.kind == kindString:
		hint = ": write true or false"
	case n.kind == kindString && resolve(n.text) != kindString && resolve(n.text) != kindNull:
		hint = ": drop the quotes"
	}
	d.fail(n, path, "expected %s, found %s%s", want, describe(n), hint)
}

func describe(n *node) string {
	switch n.kind {
	case kindBool, kindInt, kindFloat:
		return n.kind.String() + " " + n.text
	case kindString:
		return "the string " + strconv.Quote(abbreviate(n.text))
	}
	return n.kind.String()
}

func abbreviate(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

func (d *decoding) value(n *node, path string, v reflect.Value) {
	t := v.Type()
	if t.Kind() != reflect.Pointer && v.CanAddr() {
		switch into := v.Addr().Interface().(type) {
		case Decoder:
			d.adopt(n, path, into.DecodeConfig(Section{node: n, path: path, notes: d.notes}))
			return
		case encoding.TextUnmarshaler:
			d.text(n, path, into)
			return
		}
	}
	if t == durationType {
		d.duration(n, path, v)
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		d.pointer(n, path, v)
	case reflect.Struct:
		d.structure(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v)
	case reflect.Slice, reflect.Array:
		d.list(n, path, v)
	case reflect.Interface:
		if t.NumMethod() != 0 {
			panic(fmt.Sprintf("configs: %s has type %s; use a Section where the type is decided later", path, t))
		}
		d.dynamic(n, path, v)
	case reflect.Bool:
		if n.kind != kindBool {
			d.wrong(n, path, "a bool")
			return
		}
		v.SetBool(strings.EqualFold(n.text, "true"))
	case reflect.String:
		if n.kind != kindString {
			d.wrong(n, path, "a string")
			return
		}
		v.SetString(n.text)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.integer(n, path, v)
	case reflect.Float32, reflect.Float64:
		d.float(n, path, v)
	default:
		panic(fmt.Sprintf("configs: %s has type %s, which no document can hold", path, t))
	}
}

// adopt records the error of a Decoder, keeping positions where it has them.
func (d *decoding) adopt(n *node, path string, err error) {
	switch e := err.(type) {
	case nil:
	case Errors:
		d.errs = append(d.errs, e...)
	default:
		d.fail(n, path, "%v", err)
	}
}

func (d *decoding) text(n *node, path string, into encoding.TextUnmarshaler) {
	if n.kind == kindNull || n.kind > kindString {
		d.wrong(n, path, "a string")
		return
	}
	if err := into.UnmarshalText([]byte(n.text)); err != nil {
		d.fail(n, path, "%v", err)
	}
}

func (d *decoding) duration(n *node, path string, v reflect.Value) {
	if n.kind != kindString {
		d.wrong(n, path, "a duration such as 1m30s")
		return
	}
	value, err := time.ParseDuration(n.text)
	if err != nil {
		d.fail(n, path, "expected a duration such as 1m30s, found %q", abbreviate(n.text))
		return
	}
	v.SetInt(int64(value))
}

func (d *decoding) pointer(n *node, path string, v reflect.Value) {
	if n.kind == kindNull {
		v.SetZero()
		return
	}
	// The default may be shared with other values, so it is copied before it is filled in.
	fresh := reflect.New(v.Type().Elem())
	if !v.IsNil() {
		fresh.Elem().Set(v.Elem())
	} else if into, ok := fresh.Interface().(Defaulter); ok {
		into.SetDefaults()
	}
	d.value(n, path, fresh.Elem())
	v.Set(fresh)
}

func (d *decoding) structure(n *node, path string, v reflect.Value) {
	if n.kind != kindMapping {
		d.wrong(n, path, "a mapping")
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range n.entries {
		i := slices.IndexFunc(fields, func(f field) bool { return f.key == e.key })
		if i < 0 {
			d.errs = append(d.errs, newError(e.at, joinPath(path, pathKey(e.key)), "%s", unknownKey(e.key, fields)))
			continue
		}
		d.value(e.value, joinPath(path, pathKey(e.key)), v.FieldByIndex(fields[i].index))
	}
}

func unknownKey(key string, fields []field) string {
	keys := make([]string, len(fields))
	for i, f := range fields {
		keys[i] = f.key
	}
	if len(keys) == 0 {
		return fmt.Sprintf("unknown key %q; nothing can be set here", key)
	}
	slices.Sort(keys)
	return fmt.Sprintf("unknown key %q; %s", key, Nearest(key, keys))
}

func (d *decoding) mapping(n *node, path string, v reflect.Value) {
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		panic(fmt.Sprintf("configs: %s has type %s; keys of a mapping are strings", path, t))
	}
	if n.kind == kindNull {
		v.SetZero()
		return
	}
	if n.kind != kindMapping {
		d.wrong(n, path, "a mapping")
		return
	}
	fresh := reflect.MakeMapWithSize(t, len(n.entries))
	for _, e := range n.entries {
		value := reflect.New(t.Elem()).Elem()
		if into, ok := value.Addr().Interface().(Defaulter); ok {
			into.SetDefaults()
		}
		d.value(e.value, joinPath(path, pathKey(e.key)), value)
		fresh.SetMapIndex(reflect.ValueOf(e.key).Convert(t.Key()), value)
	}
	v.Set(fresh)
}

func (d *decoding) list(n *node, path string, v reflect.Value) {
	array := v.Kind() == reflect.Array
	switch {
	case n.kind == kindNull && !array:
		v.SetZero()
		return
	case n.kind != kindSequence:
		d.wrong(n, path, "a list")
		return
	case array && len(n.items) != v.Len():
		d.fail(n, path, "expected a list of %d values, found %d", v.Len(), len(n.items))
		return
	}
	fresh := reflect.New(v.Type()).Elem()
	if !array {
		fresh.Set(reflect.MakeSlice(v.Type(), len(n.items), len(n.items)))
	}
	for i, item := range n.items {
		if into, ok := fresh.Index(i).Addr().Interface().(Defaulter); ok {
			into.SetDefaults()
		}
		d.value(item, joinPath(path, fmt.Sprintf("[%d]", i)), fresh.Index(i))
	}
	v.Set(fresh)
}

func (d *decoding) integer(n *node, path string, v reflect.Value) {
	if n.kind != kindInt && n.kind != kindFloat {
		d.wrong(n, path, "an integer")
		return
	}
	negative, magnitude, err := parseInteger(n.text)
	if err != nil {
		d.fail(n, path, "%s %v", n.text, err)
		return
	}
	if v.CanUint() {
		if negative || v.OverflowUint(magnitude) {
			d.fail(n, path, "%s is out of range for %s", n.text, v.Type())
			return
		}
		v.SetUint(magnitude)
		return
	}
	value := int64(magnitude)
	switch {
	case negative && magnitude <= 1<<63:
		value = -value
	case negative || magnitude > math.MaxInt64:
		d.fail(n, path, "%s is out of range for %s", n.text, v.Type())
		return
	}
	if v.OverflowInt(value) {
		d.fail(n, path, "%s is out of range for %s", n.text, v.Type())
		return
	}
	v.SetInt(value)
}

func (d *decoding) float(n *node, path string, v reflect.Value) {
	if n.kind != kindInt && n.kind != kindFloat {
		d.wrong(n, path, "a number")
		return
	}
	value, err := parseFloat(n.text, v.Type().Bits())
	if err != nil {
		d.fail(n, path, "%s %v", n.text, err)
		return
	}
	v.SetFloat(value)
}

// dynamic fills an empty interface: nil, bool, int64 (uint64 above its range), float64, string,
// []any, map[string]any.
func (d *decoding) dynamic(n *node, path string, v reflect.Value) {
	var out reflect.Value
	switch n.kind {
	case kindNull:
		v.SetZero()
		return
	case kindBool:
		out = reflect.New(reflect.TypeFor[bool]()).Elem()
	case kindInt:
		out = reflect.New(reflect.TypeFor[int64]()).Elem()
		if negative, magnitude, err := parseInteger(n.text); err == nil && !negative && magnitude > math.MaxInt64 {
			out = reflect.New(reflect.TypeFor[uint64]()).Elem()
		}
	case kindFloat:
		out = reflect.New(reflect.TypeFor[float64]()).Elem()
	case kindString:
		out = reflect.New(reflect.TypeFor[string]()).Elem()
	case kindSequence:
		out = reflect.New(reflect.TypeFor[[]any]()).Elem()
	case kindMapping:
		out = reflect.New(reflect.TypeFor[map[string]any]()).Elem()
	}
	d.value(n, path, out)
	v.Set(out)
}
