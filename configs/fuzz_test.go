package configs

import (
	"strings"
	"testing"
)

// FuzzParse feeds foreign bytes: no panic, and whatever is accepted is written in a form that reads
// back the same.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "a: 1", "a: [1, {b: 'x'}]\nc:\n  - d: |\n      text\n    e: >-\n      folded\n", "a: &x 1\nb: *x\n<<: {c: 1}",
		"? a\n: b", "a: \"\\u00e9\\n\"", "--- {a: ~}\n...\n", "%YAML 1.2\n---\na: 0x10", "a: !!str 1", "- a\n-\n  - b", "a: .inf\nb: -.5e-3\n",
		"\"q k\": 'it''s'\n\"\": null", "a:\n    b\n    c\n", "{a: , b}", "[", "a: ]", "a: 'b\n\n  c'", "é: ü",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 1<<12 {
			return
		}
		doc, err := Parse("f.yaml", text)
		if err != nil {
			return
		}
		var any map[string]any
		_ = doc.Decode(&any)
		e := defaults()
		_ = doc.Decode(&e)
		written := doc.Bytes()
		again, err := Parse("again.yaml", written)
		if err != nil {
			t.Fatalf("%q was written as %q, which is refused: %v", text, written, err)
		}
		if changes, err := Diff(doc, again); err != nil || len(changes) > 0 {
			t.Fatalf("%q was written as %q and changed: %v", text, written, changes)
		}
	})
}

// FuzzString checks that any text survives being written as a value and as a key.
func FuzzString(f *testing.F) {
	for _, seed := range []string{"", "a", "a: b", "# x", "\n", " lead", "trail ", "\x00", "\u2028", "\ufeff", "\\", `"`, "yes", "1_0", "\x85", "🙂", strings.Repeat("4", 3000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text, err := Marshal(map[string]string{s: s})
		if err != nil {
			return // not valid UTF-8
		}
		doc, err := Parse("s.yaml", text)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", s, text, err)
		}
		var back map[string]string
		if err := doc.Decode(&back); err != nil || len(back) != 1 || back[s] != s {
			t.Fatalf("%q was written as %q and read as %q: %v", s, text, back, err)
		}
	})
}
