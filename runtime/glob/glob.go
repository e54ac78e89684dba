// Package glob matches names of parameters, columns and nodes against patterns, in one way
// everywhere: * stands for any run of characters, dots and slashes included, and ? for any one
// character, so that "*.bias" matches "layers.0.bias".
package glob

// Match reports whether name matches pattern. It takes linear time in practice and never more than
// the product of both lengths.
func Match(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	// On a mismatch, the latest star takes one more character.
	star, mark, i, j := -1, 0, 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i, j = i+1, j+1
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// MatchAny reports whether any of the patterns matches.
func MatchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if Match(p, name) {
			return true
		}
	}
	return false
}
