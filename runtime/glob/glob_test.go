package glob

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	n := 0
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "a/b.c", true}, {"*.bias", "layers.0.bias", true}, {"*.bias", "bias", false},
		{"a?c", "abc", true}, {"a?c", "ac", false}, {"a?c", "aéc", true}, {"a*b*c", "axxbyyc", true}, {"a*b*c", "axxbyy", false}, {"*ab", "aab", true},
		{"lora/*", "lora/fc/A", true}, {"[a]", "a", false}, {"[a]", "[a]", true}, {"a", "ab", false},
	} {
		if got := Match(c.pattern, c.name); got != c.want {
			t.Errorf("Match(%q, %q) = %v", c.pattern, c.name, got)
		}
		n++
	}
	if n != 16 {
		t.Errorf("%d cases", n)
	}
	if MatchAny(nil, "a") || !MatchAny([]string{"x", "a*"}, "ab") {
		t.Error("MatchAny")
	}
}

func TestHostilePatternEnds(t *testing.T) {
	if Match(strings.Repeat("*a", 200)+"b", strings.Repeat("a", 2000)) {
		t.Error("matched")
	}
}
