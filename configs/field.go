package configs

import (
	"reflect"
	"strings"
	"unicode"
)

// field is a struct field and the key it has in a document.
type field struct {
	key   string
	index []int
	typ   reflect.Type
	// omitZero leaves a zero value out of what is written, ",omitzero": a key that came later does
	// not change what was written before it was there, nor its digest.
	omitZero bool
}

// fieldsOf lists the fields of a struct in order, those of inlined structs in their place. An outer
// field hides an inlined one of the same key, as it does in Go.
func fieldsOf(t reflect.Type) []field {
	var list []field
	position := map[string]int{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		inlined := f.Type.Kind() == reflect.Struct && (options == "inline" || (f.Anonymous && tag == ""))
		if tag == "-" || (!f.IsExported() && !(inlined && f.Anonymous)) {
			continue
		}
		if inlined && !isLeaf(f.Type) {
			for _, inner := range fieldsOf(f.Type) {
				if _, hidden := position[inner.key]; hidden {
					continue
				}
				inner.index = append([]int{i}, inner.index...)
				position[inner.key] = len(list)
				list = append(list, inner)
			}
			continue
		}
		key := tag
		if key == "" {
			key = snakeCase(f.Name)
		}
		own := field{key: key, index: []int{i}, typ: f.Type, omitZero: options == "omitzero"}
		if at, taken := position[key]; taken {
			list[at] = own
			continue
		}
		position[key] = len(list)
		list = append(list, own)
	}
	return list
}

// snakeCase turns a Go name into a key: LearningRate -> learning_rate, NSteps -> n_steps, GAELambda
// -> gae_lambda.
func snakeCase(name string) string {
	runes := []rune(name)
	var b strings.Builder
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			afterLower := !unicode.IsUpper(runes[i-1])
			beforeLower := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if afterLower || beforeLower {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
