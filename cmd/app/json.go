package app

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
)

// jsonOutput writes reports as JSON, each followed by a line feed: the one way in which --json does, and
// servers and reports in files.
// JSON has no number that is not finite; such are null.
type jsonOutput struct {
	w io.Writer
	// indent is that of a level, empty for one line.
	indent string
}

// printJSON writes one indented JSON document.
func (a *app) printJSON(v any) error { return jsonOutput{a.out, "  "}.Encode(v) }

// Encode writes a document.
func (o jsonOutput) Encode(v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetIndent("", o.indent)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	if notANumber(err) {
		var plain bytes.Buffer
		if err = writeFinite(&plain, reflect.ValueOf(v)); err == nil {
			text.Reset()
			err = enc.Encode(json.RawMessage(plain.Bytes()))
		}
	}
	if err == nil {
		_, err = o.w.Write(text.Bytes())
	}
	return err
}

// notANumber reports whether an error is that JSON has no such number.
func notANumber(err error) bool {
	var lacks *json.UnsupportedValueError
	return errors.As(err, &lacks) && (lacks.Value.Kind() == reflect.Float64 || lacks.Value.Kind() == reflect.Float32)
}

// writeFinite writes what encoding/json would, by its rules for types and tags, with null for each
// number that is not finite.
func writeFinite(b *bytes.Buffer, v reflect.Value) error {
	if !v.IsValid() {
		b.WriteString("null")
		return nil
	}
	null := v.Kind() == reflect.Pointer && v.IsNil() || v.Kind() == reflect.Interface && v.IsNil()
	if !null && v.Kind() != reflect.Interface && marshals(v.Type()) {
		err := writePlain(b, v)
		if null = notANumber(err); err != nil && !null {
			return err
		}
	} else if !null {
		switch v.Kind() {
		case reflect.Float32, reflect.Float64:
			x := v.Float()
			if null = math.IsNaN(x) || math.IsInf(x, 0); !null {
				return writePlain(b, v)
			}
		case reflect.Pointer, reflect.Interface:
			return writeFinite(b, v.Elem())
		case reflect.Struct:
			return writeFields(b, v)
		case reflect.Map:
			if null = v.IsNil(); !null {
				return writeEntries(b, v)
			}
		case reflect.Slice, reflect.Array:
			if v.Kind() == reflect.Slice && (v.IsNil() || v.Type().Elem().Kind() == reflect.Uint8) {
				return writePlain(b, v)
			}
			return writeList(b, "[]", v.Len(), func(i int) error { return writeFinite(b, v.Index(i)) })
		default:
			return writePlain(b, v)
		}
	}
	if null {
		b.WriteString("null")
	}
	return nil
}

func marshals(t reflect.Type) bool {
	return t.Implements(reflect.TypeFor[json.Marshaler]()) || t.Implements(reflect.TypeFor[encoding.TextMarshaler]())
}

// writePlain writes a value in which no number can be that is not finite.
func writePlain(b *bytes.Buffer, v reflect.Value) error {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v.Interface())
	if err == nil {
		b.Truncate(b.Len() - 1) // The line feed.
	}
	return err
}

// writeList writes n parts between brackets.
func writeList(b *bytes.Buffer, brackets string, n int, part func(i int) error) error {
	b.WriteByte(brackets[0])
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		if err := part(i); err != nil {
			return err
		}
	}
	b.WriteByte(brackets[1])
	return nil
}

// entry is a member of an object.
type entry struct {
	name  string
	depth int
	value reflect.Value
}

func writeObject(b *bytes.Buffer, list []entry) error {
	return writeList(b, "{}", len(list), func(i int) error {
		if err := writePlain(b, reflect.ValueOf(list[i].name)); err != nil {
			return err
		}
		b.WriteByte(':')
		return writeFinite(b, list[i].value)
	})
}

func writeEntries(b *bytes.Buffer, v reflect.Value) error {
	var list []entry
	for it := v.MapRange(); it.Next(); {
		// The key is as encoding/json has it: text, or a number within quotes.
		one := reflect.MakeMap(reflect.MapOf(v.Type().Key(), reflect.TypeFor[bool]()))
		one.SetMapIndex(it.Key(), reflect.ValueOf(true))
		text, err := json.Marshal(one.Interface())
		if err != nil {
			return err
		}
		var name map[string]bool
		if err := json.Unmarshal(text, &name); err != nil {
			return err
		}
		for n := range name {
			list = append(list, entry{name: n, value: it.Value()})
		}
	}
	slices.SortFunc(list, func(x, y entry) int { return strings.Compare(x.name, y.name) })
	return writeObject(b, list)
}

func writeFields(b *bytes.Buffer, v reflect.Value) error {
	var list []entry
	named := map[string]bool{} // the paths of embedded structs that are members themselves
	for _, f := range reflect.VisibleFields(v.Type()) {
		path := ""
		inside := false
		for _, i := range f.Index {
			inside = inside || named[path]
			path += string(rune('0'+i)) + "."
		}
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		of := f.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		if f.Anonymous && name == "" && of.Kind() == reflect.Struct && !marshals(f.Type) {
			continue // Its fields follow.
		}
		named[path] = true
		if inside || tag == "-" || !f.IsExported() {
			continue
		}
		x, err := v.FieldByIndexErr(f.Index)
		if err != nil {
			continue // Of an embedded pointer that is nil.
		}
		if strings.Contains(options, "omitempty") && emptyValue(x) || strings.Contains(options, "omitzero") && x.IsZero() {
			continue
		}
		e := entry{cmp.Or(name, f.Name), len(f.Index), x}
		if i := slices.IndexFunc(list, func(o entry) bool { return o.name == e.name }); i < 0 {
			list = append(list, e)
		} else if e.depth < list[i].depth {
			list[i] = e
		}
	}
	return writeObject(b, list)
}

// emptyValue is what omitempty leaves out.
func emptyValue(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
		return v.Len() == 0
	case reflect.Struct:
		return false
	}
	return v.IsZero()
}
