package schema

import (
	"slices"
	"testing"
)

// Of each text attribute it is known what it may hold, so that a new one of a newer table is looked
// up.
func TestTextAttributesHaveWords(t *testing.T) {
	restricted := 0
	for _, d := range Domains() {
		for _, name := range Names(d) {
			for _, v := range Versions(d, name) {
				o, _ := Lookup(d, name, v)
				for _, a := range o.Attributes {
					if a.Type != "STRING" && a.Type != "STRINGS" {
						continue
					}
					have := WordsOf(d, name, a.Name, v)
					if (have == nil) != slices.Contains(texts, a.Name) {
						t.Errorf("%s %d: attribute %q may hold %q, and is listed as any text: %v", name, v, a.Name, have, have != nil)
					}
					// The first release of GRU has a misspelt one.
					if def, ok := a.Default.(string); ok && have != nil && !slices.Contains(have, def) && def != "foward" {
						t.Errorf("%s %d: the default of %q is %q, none of %q", name, v, a.Name, def, have)
					}
					if have != nil {
						restricted++
					}
				}
			}
		}
	}
	if restricted < 90 {
		t.Errorf("%d attributes are restricted", restricted)
	}
}

func TestVersion(t *testing.T) {
	for _, c := range []struct {
		domain, op string
		opset      int
		want       int
	}{
		{"", "SpaceToDepth", 27, 13}, {"", "SpaceToDepth", 28, 28}, {"", "Relu", Latest(""), 14}, {"", "Relu", Latest("") + 1, 0}, {"", "Relu", 0, 0},
		{"com.microsoft", "FusedMatMul", 1, 1}, {"", "LayerNormalization", 13, 1},
	} {
		if got := Version(c.domain, c.op, c.opset); got != c.want {
			t.Errorf("Version(%q, %q, %d) = %d, want %d", c.domain, c.op, c.opset, got, c.want)
		}
	}
}
