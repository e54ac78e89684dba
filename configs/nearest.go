package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// shownNames is how many words an error names at most.
const shownNames = 3

// Nearest says which words were meant by one that is none of those known: [DidYouMean], or where
// nothing is near all words if they are few, and else the nearest.
func Nearest(word string, known []string) string {
	if guess := DidYouMean(word, known); guess != "" {
		return guess
	}
	const few = 6
	switch {
	case len(known) == 0:
		return "there are none"
	case len(known) <= few:
		return "expected " + strings.Join(known, ", ")
	}
	near := slices.Clone(known)
	slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(editDistance(word, a), editDistance(word, b)) })
	return fmt.Sprintf("the nearest of %d are %s", len(known), strings.Join(near[:shownNames], ", "))
}

// DidYouMean asks whether a word that is none of those known was meant to be one of them: the nearest
// by the number of letters that differ, of which a third may, and where none is so near those that
// begin with the word. It names three words at most, and is empty where nothing is near.
func DidYouMean(word string, known []string) string {
	var near, longer []string
	// Any letter is one away from any other: of a word of one letter nothing is left.
	best := min(max(1, len(word)/3), len(word)-1)
	for _, k := range known {
		d := editDistance(word, k)
		if d < best {
			near = nil
		}
		if d <= best {
			best, near = d, append(near, k)
		}
		if len(word) > 2 && strings.HasPrefix(k, word) {
			longer = append(longer, k)
		}
	}
	if near == nil {
		near = longer
		slices.SortStableFunc(near, func(a, b string) int { return cmp.Compare(len(a), len(b)) })
	}
	if len(near) == 0 {
		return ""
	}
	var b strings.Builder
	for i, w := range near[:min(len(near), shownNames)] {
		switch {
		case i == 0:
		case i == min(len(near), shownNames)-1:
			b.WriteString(" or ")
		default:
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", w)
	}
	return "did you mean " + b.String() + "?"
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
