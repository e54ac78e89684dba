package configs

import (
	"encoding"
	"errors"
	"reflect"
	"slices"
	"strings"
	"time"
)

// Row is a row of a reference; the JSON keys are stable.
type Row struct {
	Path string `json:"path"`
	// Type is what is expected, such as integer or list of strings.
	Type string `json:"type"`
	// Default is the value in YAML, on one line; empty for mappings whose keys have rows of their
	// own.
	Default string `json:"default"`
	// Required says what has to be given; empty where there is a default.
	Required string `json:"required,omitempty"`
	// Comment says what the key does.
	Comment string `json:"comment,omitempty"`
	// Kinds are the names that the key kind of this mapping can have.
	Kinds []string `json:"kinds,omitempty"`
	// Source is the field of the program's source that has the key.
	Source string `json:"source"`
}

// Walk calls visit with every key of a document with these defaults, those of all kinds that it may
// name included: with its path, the kinds that have to be chosen for it, each as its list and name,
// and what explains it. A list is not entered again within itself.
func (b *Book) Walk(defaults any, visit func(path string, kinds []string, explain func() Row)) {
	b.walk(Keys(defaults), "", required(defaults), nil, visit)
}

func (b *Book) walk(keys []Key, prefix string, missing map[string]string, kinds []string, visit func(string, []string, func() Row)) {
	for _, k := range keys {
		visit(prefix+k.Path, kinds, func() Row { return b.row(k, prefix, missing) })
		b.walk(k.Keys, prefix, missing, kinds, visit)
		b.walk(k.Items, prefix+k.Path+"[].", nil, kinds, visit)
		list := k.Field.Tag.Get("kinds") + k.Field.Tag.Get("section")
		if slices.ContainsFunc(kinds, func(k string) bool { return strings.HasPrefix(k, list+" ") }) {
			continue
		}
		for _, kind := range b.Lists[list] {
			if kind.Defaults != nil {
				d := kind.Defaults()
				b.walk(Keys(d), prefix+k.Path+".", required(d), append(slices.Clone(kinds), list+" "+kind.Name), visit)
			}
		}
	}
}

// Keys lists the keys of a document with these defaults, those of nested mappings with their whole
// path. Those of kinds are apart.
func (b *Book) Keys(defaults any) []Row {
	missing := required(defaults)
	return b.rows(Keys(defaults), "", missing)
}

func (b *Book) rows(keys []Key, prefix string, missing map[string]string) (list []Row) {
	for _, k := range keys {
		list = append(list, b.row(k, prefix, missing))
		list = append(list, b.rows(k.Keys, prefix, missing)...)
		list = append(list, b.rows(k.Items, prefix+k.Path+"[].", nil)...)
	}
	return list
}

// row explains a key.
func (b *Book) row(k Key, prefix string, missing map[string]string) Row {
	row := Row{Path: prefix + k.Path, Type: typeName(k.Field.Type), Comment: b.Comment(k), Required: missing[k.Path], Kinds: b.names(k.Field.Tag.Get("kinds")), Source: TypeName(k.Owner) + "." + k.Field.Name}
	if len(k.Keys) == 0 && k.Default.IsValid() {
		row.Default = flow(k.Default)
	}
	return row
}

// required returns what the defaults do not have, by key path.
func required(defaults any) map[string]string {
	missing := map[string]string{}
	var invalid Invalid
	if errors.As(Validate(defaults), &invalid) {
		for _, p := range invalid {
			missing[strings.TrimSuffix(p.Path, ".kind")] = strings.TrimPrefix(p.Message, "required: ")
		}
	}
	return missing
}

// flow writes a value on one line.
func flow(v reflect.Value) string {
	// A list of one is written as one line of brackets.
	text, err := Marshal(map[string]any{"v": v.Interface()})
	if err != nil {
		return ""
	}
	line := strings.TrimSuffix(strings.TrimPrefix(string(text), "v: "), "\n")
	if strings.Contains(line, "\n") {
		return ""
	}
	return line
}

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

// typeName says what a value of the type looks like in a document.
func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t == reflect.TypeFor[Bytes]():
		return "number of bytes"
	case t == reflect.TypeFor[Section]():
		return "any"
	case reflect.PointerTo(t).Implements(textType):
		return "string"
	case t == reflect.TypeFor[Kinded]() || reflect.PointerTo(t).Implements(decoderType):
		return "mapping"
	}
	switch k := t.Kind(); {
	case k == reflect.Pointer:
		return typeName(t.Elem())
	case k == reflect.Slice || k == reflect.Array:
		return "list of " + typeName(t.Elem())
	case k == reflect.Map:
		return "mapping to " + typeName(t.Elem())
	case k == reflect.Struct:
		return "mapping"
	case k == reflect.Bool:
		return "bool"
	case k == reflect.String:
		return "string"
	case k == reflect.Float32 || k == reflect.Float64:
		return "number"
	case k == reflect.Interface:
		return "any"
	}
	return "integer"
}
