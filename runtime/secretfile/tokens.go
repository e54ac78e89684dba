package secretfile

import (
	"fmt"
	"os"
	"strings"
)

// Tokens returns all tokens of a file, of which there is at least one.
func Tokens(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	tokens, err := Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(tokens) == 0 {
		return nil, fmt.Errorf("%s: there is no token in it, expected one a line", path)
	}
	return tokens, nil
}

// Token returns the token of a file that has one.
func Token(path string) (string, error) {
	tokens, err := Tokens(path)
	if err != nil {
		return "", err
	}
	if len(tokens) > 1 {
		return "", fmt.Errorf("%s: there are %d tokens in it, expected one", path, len(tokens))
	}
	return tokens[0], nil
}

// FileOrVariable returns the token of a file or else of an environment variable; empty where neither
// is named.
func FileOrVariable(path, variable string) (string, error) {
	switch {
	case path != "":
		return Token(path)
	case variable == "":
		return "", nil
	}
	tokens, err := Parse(os.Getenv(variable))
	switch {
	case err != nil:
		return "", fmt.Errorf("$%s: %w", variable, err)
	case len(tokens) != 1:
		return "", fmt.Errorf("$%s: there are %d tokens in it, expected one", variable, len(tokens))
	}
	return tokens[0], nil
}

// Parse returns the tokens of a text. Errors name the line, and never what is in it.
func Parse(text string) ([]string, error) {
	var tokens []string
	for i, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		if strings.ContainsFunc(line, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fmt.Errorf("line %d: expected a token without spaces, in printable ASCII", i+1)
		}
		tokens = append(tokens, line)
	}
	return tokens, nil
}
