package configs

import (
	"reflect"
	"strings"
)

// Kind is what a document can name, see [Book].
type Kind struct {
	Name, Summary string
	// Defaults returns the struct that its keys are decoded into; nil where that is not known.
	Defaults func() any
}

// Book is what references are made from.
type Book struct {
	// Lists has the kinds by the name that tags give.
	Lists map[string][]Kind
	// Comments says what a type means and, with its field's name after a dot, what a field does:
	// see [TypeName]. A field's tag doc:"…" is used where there is none.
	Comments map[string]string
}

// TypeName is what a type is called among the comments: the import path, without that of the
// module that this package is in, and the name.
func TypeName(t reflect.Type) string {
	module := strings.TrimSuffix(reflect.TypeFor[Book]().PkgPath(), "configs")
	return strings.TrimPrefix(t.PkgPath(), module) + "." + t.Name()
}

// Comment returns what is said of a key, or of its type where nothing is said of the key: with the
// key's name, where that begins with the type's.
func (b *Book) Comment(k Key) string {
	if text := b.Comments[TypeName(k.Owner)+"."+k.Field.Name]; text != "" {
		return text
	}
	if text := k.Field.Tag.Get("doc"); text != "" {
		return text
	}
	t := k.Field.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	text := b.Comments[TypeName(t)]
	if rest, ok := strings.CutPrefix(text, t.Name()+" "); ok {
		return k.Name + " " + rest
	}
	return text
}

// names lists the kinds of a list.
func (b *Book) names(list string) (names []string) {
	for _, k := range b.Lists[list] {
		names = append(names, k.Name)
	}
	return names
}

// find returns a kind of a list, nil where there is none.
func (b *Book) find(list, name string) *Kind {
	for i := range b.Lists[list] {
		if k := &b.Lists[list][i]; k.Name == name {
			return k
		}
	}
	return nil
}
