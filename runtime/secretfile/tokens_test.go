package secretfile

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestTokens(t *testing.T) {
	for _, c := range []struct {
		text string
		want []string
		err  string
	}{
		{"a\n", []string{"a"}, ""},
		{"\ufeffa", nil, "line 1"},
		{"# c\n\n  a=/+  \r\nb", []string{"a=/+", "b"}, ""},
		{"# c\n", nil, "there is no token"},
		{"", nil, "there is no token"},
		{"a b\n", nil, "line 1: expected a token without spaces"},
		{"a\n\x00", nil, "line 2"},
	} {
		path := filepath.Join(t.TempDir(), "token")
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := Tokens(path)
		if !slices.Equal(got, c.want) || (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || !strings.Contains(err.Error(), path)) {
			t.Errorf("%q: %q, %v", c.text, got, err)
		}
		one, err := Token(path)
		if (err == nil) != (len(c.want) == 1) || err == nil && one != c.want[0] {
			t.Errorf("%q: one token %q, %v", c.text, one, err)
		}
	}
	if _, err := Token(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("no file")
	}
}
