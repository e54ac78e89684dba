package configs

import (
	"crypto/sha256"
	"encoding"
	"encoding/hex"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Marshal writes v, a struct, map, [Section] or [Document], as YAML. The text is deterministic:
// fields in the order of the struct, keys of maps sorted. Every field is written, so that decoding
// the text gives v again whatever the defaults.
func Marshal(v any) ([]byte, error) {
	n, err := encodeValue(v)
	if err != nil {
		return nil, err
	}
	return n.bytes(), nil
}

// Digest is the SHA-256 of what Marshal writes, in hexadecimal.
func Digest(v any) (string, error) {
	text, err := Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Bytes writes the document, edits included. Comments are not kept and aliases are expanded.
func (d *Document) Bytes() []byte { return d.root.bytes() }

// EncodeConfig writes the document as a section of another.
func (d *Document) EncodeConfig() (any, error) { return Section{node: d.root}, nil }

func encodeValue(v any) (*node, error) {
	n, err := encode(reflect.ValueOf(v), "", 0)
	if err != nil {
		return nil, fmt.Errorf("encode config: %w", err)
	}
	return n, nil
}

func scalar(k kind, text string) *node { return &node{kind: k, text: text} }

func encode(v reflect.Value, path string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: nested deeper than %d levels", path, maxDepth)
	}
	if !v.IsValid() {
		return &node{}, nil
	}
	if s, ok := v.Interface().(Section); ok {
		if s.node == nil {
			return &node{}, nil
		}
		return s.node, nil
	}
	t := v.Type()
	isNil := (t.Kind() == reflect.Pointer || t.Kind() == reflect.Interface) && v.IsNil()
	if own, ok := asInterface(v, encoderType).(Encoder); ok && !isNil {
		inner, err := own.EncodeConfig()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return encode(reflect.ValueOf(inner), path, depth+1)
	}
	if own, ok := asInterface(v, textMarshalerType).(encoding.TextMarshaler); ok && !isNil {
		text, err := own.MarshalText()
		if err == nil && !utf8.Valid(text) {
			err = fmt.Errorf("text is not valid UTF-8")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return scalar(kindString, string(text)), nil
	}
	if t == durationType {
		return scalar(kindString, time.Duration(v.Int()).String()), nil
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface:
		if v.IsNil() {
			return &node{}, nil
		}
		return encode(v.Elem(), path, depth+1)
	case reflect.Bool:
		return scalar(kindBool, strconv.FormatBool(v.Bool())), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return scalar(kindInt, strconv.FormatInt(v.Int(), 10)), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return scalar(kindInt, strconv.FormatUint(v.Uint(), 10)), nil
	case reflect.Float32, reflect.Float64:
		return scalar(kindFloat, formatFloat(v.Float(), t.Bits())), nil
	case reflect.String:
		if !utf8.ValidString(v.String()) {
			return nil, fmt.Errorf("%s: string is not valid UTF-8", path)
		}
		return scalar(kindString, v.String()), nil
	case reflect.Struct:
		return encodeStruct(v, path, depth)
	case reflect.Map:
		return encodeMap(v, path, depth)
	case reflect.Slice, reflect.Array:
		if t.Kind() == reflect.Slice && v.IsNil() {
			return &node{}, nil
		}
		out := &node{kind: kindSequence}
		for i := range v.Len() {
			item, err := encode(v.Index(i), joinPath(path, fmt.Sprintf("[%d]", i)), depth+1)
			if err != nil {
				return nil, err
			}
			out.items = append(out.items, item)
		}
		return out, nil
	}
	return nil, fmt.Errorf("%s: type %s cannot be written", path, t)
}

// asInterface returns v, or its address, as an interface value of the given type; nil when neither
// implements it.
func asInterface(v reflect.Value, want reflect.Type) any {
	if v.Type().Implements(want) {
		return v.Interface()
	}
	if reflect.PointerTo(v.Type()).Implements(want) {
		// A method on the pointer is callable for a copy too, which is what makes values in maps
		// work.
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		return p.Interface()
	}
	return nil
}

func encodeStruct(v reflect.Value, path string, depth int) (*node, error) {
	out := &node{kind: kindMapping}
	for _, f := range fieldsOf(v.Type()) {
		if f.omitZero && v.FieldByIndex(f.index).IsZero() {
			continue
		}
		value, err := encode(v.FieldByIndex(f.index), joinPath(path, pathKey(f.key)), depth+1)
		if err != nil {
			return nil, err
		}
		out.entries = append(out.entries, entry{key: f.key, value: value})
	}
	return out, nil
}

func encodeMap(v reflect.Value, path string, depth int) (*node, error) {
	if v.IsNil() {
		return &node{}, nil
	}
	if v.Type().Key().Kind() != reflect.String {
		return nil, fmt.Errorf("%s: type %s cannot be written; keys are strings", path, v.Type())
	}
	out := &node{kind: kindMapping}
	keys := v.MapKeys()
	slices.SortFunc(keys, func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) })
	for _, key := range keys {
		if !utf8.ValidString(key.String()) {
			return nil, fmt.Errorf("%s: key %q is not valid UTF-8", path, key.String())
		}
		value, err := encode(v.MapIndex(key), joinPath(path, pathKey(key.String())), depth+1)
		if err != nil {
			return nil, err
		}
		out.entries = append(out.entries, entry{key: key.String(), value: value})
	}
	return out, nil
}

func (n *node) bytes() []byte {
	var b strings.Builder
	n.write(&b, 0)
	return []byte(b.String())
}

// write prints block style: mappings and lists of mappings on lines of their own, lists of scalars
// in brackets.
func (n *node) write(b *strings.Builder, indent int) {
	switch {
	case n.kind == kindMapping && len(n.entries) > 0:
		for i, e := range n.entries {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString(quote(e.key))
			b.WriteByte(':')
			if e.value.isInline() {
				b.WriteByte(' ')
				e.value.write(b, 0)
				continue
			}
			b.WriteByte('\n')
			b.WriteString(strings.Repeat(" ", indent+2))
			e.value.write(b, indent+2)
		}
		return
	case n.kind == kindSequence && !n.isInline():
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(strings.Repeat(" ", indent))
			}
			b.WriteString("- ")
			item.write(b, indent+2)
		}
		return
	}
	n.writeFlow(b)
	b.WriteByte('\n')
}

func (n *node) writeFlow(b *strings.Builder) {
	switch n.kind {
	case kindNull:
		b.WriteString("null")
	case kindString:
		b.WriteString(quote(n.text))
	case kindSequence:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteString(", ")
			}
			item.writeFlow(b)
		}
		b.WriteByte(']')
	case kindMapping:
		b.WriteByte('{')
		for i, e := range n.entries {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(quote(e.key))
			b.WriteString(": ")
			e.value.writeFlow(b)
		}
		b.WriteByte('}')
	default:
		b.WriteString(n.text)
	}
}

// isInline says whether a value stands on the line of its key.
func (n *node) isInline() bool {
	switch n.kind {
	case kindMapping:
		return len(n.entries) == 0
	case kindSequence:
		return !slices.ContainsFunc(n.items, func(item *node) bool { return item.kind >= kindSequence })
	}
	return true
}

// quote writes a string plainly where every YAML reader reads it back as that string, and in double
// quotes otherwise.
func quote(s string) string {
	if isPlain(s) {
		return s
	}
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\x%02x`, r)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// isPlain is deliberately narrow: words of letters, digits and a few signs that do not resolve to
// another kind, also not for readers of YAML 1.1.
func isPlain(s string) bool {
	if s == "" || resolve(s) != kindString {
		return false
	}
	switch strings.ToLower(s) {
	case "y", "n", "yes", "no", "on", "off":
		return false
	}
	for i, r := range s {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '/'
		if letter || i > 0 && (r >= '0' && r <= '9' || strings.ContainsRune("-.+", r)) {
			continue
		}
		return false
	}
	return true
}
