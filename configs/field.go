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

// nearest returns the candidate that a misspelt word most likely meant, or "". A third of the
// letters may be wrong.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", max(1, len(word)/3)+1
	for _, c := range candidates {
		if d := editDistance(word, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// editDistance counts insertions, deletions, substitutions and swaps of neighbours (optimal string
// alignment).
func editDistance(a, b string) int {
	if max(len(a), len(b)) > 64 {
		return max(len(a), len(b))
	}
	two := make([]int, len(b)+1)
	one := make([]int, len(b)+1)
	row := make([]int, len(b)+1)
	for j := range one {
		one[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(one[j]+1, row[j-1]+1, one[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], two[j-2]+1)
			}
		}
		two, one, row = one, row, two
	}
	return one[len(b)]
}
