package configs

import (
	"reflect"
	"strings"
)

// Key is what a document can say at one place, as a struct describes it.
type Key struct {
	// Name is the key, Path the key path from the struct that was asked for.
	Name, Path string
	// Owner is the struct that has Field.
	Owner reflect.Type
	Field reflect.StructField
	// Default is the value of the field; it is not valid for the keys of Items.
	Default reflect.Value
	// Optional says that the field may be left out and is: ",omitempty" or ",omitzero", and zero.
	Optional bool
	// Keys are those of a struct, Items those of the structs that a list or a map holds.
	Keys, Items []Key
}

// Keys lists the keys of a struct that holds the defaults, in its order. Types that read their own
// part of a document have none; see [Decoder].
func Keys(defaults any) []Key {
	v := reflect.ValueOf(defaults)
	for v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return keysOf(v, v.Type(), "", nil)
}

// keysOf describes v, which may be invalid, of type t. Types that hold themselves are described
// once.
func keysOf(v reflect.Value, t reflect.Type, path string, within []reflect.Type) (list []Key) {
	for _, outer := range within {
		if outer == t {
			return nil
		}
	}
	within = append(within, t)
	for _, f := range fieldsOf(t) {
		owner := t
		for _, i := range f.index[:len(f.index)-1] {
			owner = owner.Field(i).Type
		}
		k := Key{Name: f.key, Path: joinPath(path, pathKey(f.key)), Owner: owner, Field: owner.Field(f.index[len(f.index)-1])}
		inner := f.typ
		if v.IsValid() {
			k.Default = v.FieldByIndex(f.index)
			_, options, _ := strings.Cut(k.Field.Tag.Get("yaml"), ",")
			k.Optional = (options == "omitempty" || options == "omitzero") && k.Default.IsZero()
		}
		value := k.Default
		if inner.Kind() == reflect.Pointer {
			if inner = inner.Elem(); value.IsValid() {
				value = value.Elem()
			}
		}
		switch {
		case isLeaf(inner):
		case inner.Kind() == reflect.Struct:
			k.Keys = keysOf(value, inner, k.Path, within)
		case inner.Kind() == reflect.Slice || inner.Kind() == reflect.Map:
			if e := inner.Elem(); e.Kind() == reflect.Struct && !isLeaf(e) {
				k.Items = keysOf(reflect.Value{}, e, "", within)
			}
		}
		list = append(list, k)
	}
	return list
}
