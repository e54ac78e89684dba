package configs

import (
	"reflect"
)

// Schema returns the JSON Schema (draft 2020-12) of documents with these defaults, as maps and
// lists that encoding/json writes. A mapping that names a kind has one form for each kind. What has
// to be given is said and not demanded, so that a document in the making is not all red.
func (b *Book) Schema(title string, defaults any) map[string]any {
	s := &schema{Book: b, defs: map[string]any{}}
	top := s.object(Keys(defaults), required(defaults))
	top["$schema"], top["title"] = "https://json-schema.org/draft/2020-12/schema", title
	if len(s.defs) > 0 {
		top["$defs"] = s.defs
	}
	return top
}

type schema struct {
	*Book
	defs map[string]any
}

func (s *schema) object(keys []Key, missing map[string]string) map[string]any {
	properties := map[string]any{}
	for _, k := range keys {
		p := s.key(k, missing)
		text := s.Comment(k)
		if m := missing[k.Path]; m != "" {
			text = "Required: " + m + "\n" + text
		}
		if text != "" {
			p["description"] = text
		}
		properties[k.Name] = p
	}
	return map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
}

func (s *schema) key(k Key, missing map[string]string) map[string]any {
	t := k.Field.Type
	if list := k.Field.Tag.Get("kinds"); list != "" && len(s.Lists[list]) > 0 {
		forms := []any{map[string]any{"type": "null"}}
		for _, kind := range s.Lists[list] {
			forms = append(forms, s.ref(list, kind))
		}
		return map[string]any{"oneOf": forms}
	}
	if kind := s.find(k.Field.Tag.Get("section"), ""); kind != nil {
		ref := s.ref(k.Field.Tag.Get("section"), *kind)
		if t.Kind() == reflect.Slice {
			ref = map[string]any{"type": "array", "items": ref}
		}
		return map[string]any{"oneOf": []any{map[string]any{"type": "null"}, ref}}
	}
	if len(k.Keys) > 0 {
		o := s.object(k.Keys, missing)
		if t.Kind() == reflect.Pointer {
			o["type"] = []string{"object", "null"}
		}
		return o
	}
	p := s.form(t, k.Items)
	if k.Default.IsValid() && !k.Optional && missing[k.Path] == "" {
		switch v := k.Default; v.Kind() {
		case reflect.Bool, reflect.String, reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
			if typeName(t) != "duration" {
				p["default"] = v.Interface()
			}
		}
	}
	return p
}

// ref returns a reference to the definition of a kind, which is made where there is none.
func (s *schema) ref(list string, kind Kind) map[string]any {
	name := list
	if kind.Name != "" {
		name += "." + kind.Name
	}
	if _, there := s.defs[name]; !there {
		s.defs[name] = nil // Kinds may hold each other.
		o := map[string]any{"type": "object"}
		if kind.Defaults != nil {
			d := kind.Defaults()
			o = s.object(Keys(d), required(d))
		}
		if kind.Summary != "" {
			o["description"] = kind.Summary
		}
		if kind.Name != "" {
			properties, _ := o["properties"].(map[string]any)
			if properties == nil {
				properties = map[string]any{}
				o["properties"] = properties
			}
			properties["kind"] = map[string]any{"const": kind.Name, "description": kind.Summary}
			o["required"] = []string{"kind"}
		}
		s.defs[name] = o
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// form is the schema of a type; items are the keys of the structs that it holds.
func (s *schema) form(t reflect.Type, items []Key) map[string]any {
	element := func() map[string]any {
		if len(items) > 0 {
			return s.object(items, nil)
		}
		return s.form(t.Elem(), nil)
	}
	nullable := func(name string) []string { return []string{name, "null"} }
	if reflect.PointerTo(t).Implements(textType) {
		return map[string]any{"type": []string{"string", "number", "boolean"}} // any text
	}
	switch typeName(t) {
	case "any", "number of bytes":
		return map[string]any{}
	case "duration", "string":
		return map[string]any{"type": "string"}
	case "bool":
		return map[string]any{"type": "boolean"}
	case "number", "integer":
		for t.Kind() == reflect.Pointer {
			o := s.form(t.Elem(), nil)
			o["type"] = nullable(o["type"].(string))
			return o
		}
		o := map[string]any{"type": typeName(t)}
		if k := t.Kind(); k >= reflect.Uint && k <= reflect.Uint64 {
			o["minimum"] = 0
		}
		return o
	}
	switch {
	case reflect.PointerTo(t).Implements(decoderType):
		return map[string]any{} // It reads what it likes.
	case t.Kind() == reflect.Slice:
		return map[string]any{"type": nullable("array"), "items": element()}
	case t.Kind() == reflect.Array:
		return map[string]any{"type": "array", "items": element()}
	case t.Kind() == reflect.Map:
		return map[string]any{"type": nullable("object"), "additionalProperties": element()}
	}
	return map[string]any{}
}
