package printable

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func TestText(t *testing.T) {
	for in, want := range sorted.All(map[string]string{
		"plain\ttext\n":          "plain\ttext\n",
		"größer 中 👩\u200d🔬\r\n":  "größer 中 👩\u200d🔬\r\n",
		"n\x1b]0;pwn\a":          `n\u001b]0;pwn\u0007`,
		"a\rb":                   `a\u000db`,
		"\u202e\u2066\u009b\x7f": `\u202e\u2066\u009b\u007f`,
		"\xff\xc3":               `\xff\xc3`,
	}) {
		if got := Text(in); got != want {
			t.Errorf("%q: %q, expected %q", in, got, want)
		}
		// However it is cut, a writer gives the same.
		for _, size := range []int{1, 2, 3, 100} {
			var b bytes.Buffer
			w := NewWriter(&b)
			for rest := []byte(in); len(rest) > 0; rest = rest[min(size, len(rest)):] {
				if n, err := w.Write(rest[:min(size, len(rest))]); err != nil || n != min(size, len(rest)) {
					t.Fatal(n, err)
				}
			}
			if _, err := w.Write([]byte(".")); err != nil || b.String() != Text(in+".") {
				t.Errorf("%q in pieces of %d: %q", in, size, b.String())
			}
			if Raw(w) != &b || Raw(&b) != &b {
				t.Error("another writer below")
			}
		}
	}
	if got, want := Name("a\r\n\tb\rc\x1b"), `a\r\n\tb\u000dc\u001b`; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

// TestJSON: escapes are those of JSON, so documents say the same.
func TestJSON(t *testing.T) {
	text, err := json.Marshal("\x7f\u009b\u202e\x1b")
	if err != nil {
		t.Fatal(err)
	}
	var back string
	if err := json.Unmarshal([]byte(Text(string(text))), &back); err != nil || back != "\x7f\u009b\u202e\x1b" {
		t.Errorf("%q, %v", back, err)
	}
}
