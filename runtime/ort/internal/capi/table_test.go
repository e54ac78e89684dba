//go:build cgo

package capi

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFunctionTable compares the indices of shim.c, and the API version, with the
// header of the onnxruntime_go module that the program is built with.
func TestFunctionTable(t *testing.T) {
	source, err := os.ReadFile("shim.c")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`(?s)\nenum \{\n(.*?)\};`).FindSubmatch(source)
	if enum == nil {
		t.Fatal("shim.c has no table of indices")
	}
	entries := regexp.MustCompile(`(\w+) = (\d+),`).FindAllSubmatch(enum[1], -1)
	const expected = 32
	if len(entries) != expected || bytes.Count(enum[1], []byte("\n")) != expected {
		t.Errorf("%d indices, expected %d", len(entries), expected)
	}
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/yalue/onnxruntime_go").Output()
	if err != nil {
		t.Fatal(err)
	}
	var program strings.Builder
	program.WriteString("#include <stddef.h>\n#include \"onnxruntime_c_api.h\"\n")
	fmt.Fprintf(&program, "_Static_assert(ORT_API_VERSION == %d, \"API version\");\n", APIVersion)
	for _, e := range entries {
		fmt.Fprintf(&program, "_Static_assert(offsetof(OrtApi, %s) == %s * sizeof(void *), \"%s\");\n", e[1], e[2], e[1])
	}
	file := filepath.Join(t.TempDir(), "check.c")
	if err := os.WriteFile(file, []byte(program.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	cc, err := exec.Command("go", "env", "CC").Output()
	if err != nil {
		t.Fatal(err)
	}
	compiler := strings.Fields(string(cc))
	args := append(compiler[1:], "-fsyntax-only", "-I", strings.TrimSpace(string(out)), file)
	if out, err := exec.Command(compiler[0], args...).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
