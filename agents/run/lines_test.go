package run

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadLinesDamaged changes each byte of a file that was written whole: what comes back has all
// elements, or is an error that names file and line.
func TestReadLinesDamaged(t *testing.T) {
	type element struct {
		Member int    `json:"member"`
		Name   string `json:"name"`
	}
	list := []element{{0, "a"}, {1, "b"}, {2, "c"}}
	path := filepath.Join(t.TempDir(), "members.jsonl")
	if err := WriteLines(path, list); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	refused := 0
	for at := range text {
		for _, x := range []byte{'\n', ' ', text[at] ^ 1, text[at] ^ 0x40} {
			bad := append([]byte(nil), text...)
			bad[at] = x
			if err := os.WriteFile(path, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			got, err := ReadLines[element](path)
			if err != nil {
				if refused++; !strings.HasPrefix(err.Error(), path+":") {
					t.Fatalf("byte %d is %q: %v", at, x, err)
				}
			} else if len(got) != len(list) {
				t.Fatalf("byte %d is %q: %d elements of %d, and no error", at, x, len(got), len(list))
			}
		}
	}
	if refused < 3*len(text)/2 {
		t.Errorf("%d of %d are refused", refused, 4*len(text))
	}
	// A line that is gone, but for its end.
	lines := strings.SplitAfter(string(text), "\n")
	if err := os.WriteFile(path, []byte(lines[0]+"\n"+lines[2]), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadLines[element](path); fmt.Sprint(err) != path+":2: the line is empty" {
		t.Error(err)
	}
}
