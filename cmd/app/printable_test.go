package app

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"
)

// TestControlCharactersAreNotPrinted: the names of a model's nodes, weights and metadata reach no
// terminal as they are, in tables, text, JSON, errors and logs.
func TestControlCharactersAreNotPrinted(t *testing.T) {
	const path = "testdata/name_escape.onnx"
	for _, args := range [][]string{
		{"graph", "stats", path}, {"graph", "show", path}, {"graph", "dump", "--names", path}, {"graph", "check", path}, {"graph", "svg", path}, {"graph", "to-dot", path},
		{"graph", "diff", path, digitsModel}, {"graph", "explain", path, "--loss", "y"}, {"graph", "stats", path, "--json"}, {"graph", "show", path, "--log-format", "json"},
		{"compare", path, "--engine", "go"}, {"grad", "build", path, "--loss", "y", "-o", filepath.Join(t.TempDir(), "g.onnx")}, {"graph", "show", "no\x1b[31mthing.onnx"},
		{"models", "publish", path, "--name", "x\x1b[31m", "--store", t.TempDir()},
	} {
		var out, errw bytes.Buffer
		a := newApp("onnxrl", strings.NewReader(""), &out, &errw)
		a.run(context.Background(), a.command(), args)
		if text := out.String() + errw.String(); strings.ContainsFunc(text, func(r rune) bool {
			return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == '\u202e' || r >= 0x80 && r < 0xa0
		}) {
			t.Errorf("%q printed %q", args, text)
		} else if text == "" {
			t.Errorf("%q printed nothing", args)
		}
		if args[1] == "stats" && len(args) == 3 && (!strings.Contains(out.String(), `n\u001b]0;pwn\u0007\r\n  MatMul`)) {
			t.Errorf("the table is\n%s", out.String())
		}
	}
}
