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

// TestFunctionTable compares the indices of table.h, the API version and the layout of custom
// operators with the header of the onnxruntime_go module that the program is built with.
func TestFunctionTable(t *testing.T) {
	source, err := os.ReadFile("table.h")
	if err != nil {
		t.Fatal(err)
	}
	enum := regexp.MustCompile(`(?s)\nenum \{\n(.*?)\};`).FindSubmatch(source)
	if enum == nil {
		t.Fatal("table.h has no table of indices")
	}
	entries := regexp.MustCompile(`(\w+) = (\d+),`).FindAllSubmatch(enum[1], -1)
	const expected = 44
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
	members := regexp.MustCompile(`(?s)typedef struct \{\n(.*?)\} custom_op;`).FindSubmatch(source)
	if members == nil {
		t.Fatal("table.h has no custom_op")
	}
	fmt.Fprintf(&program, "%s\n_Static_assert(sizeof(custom_op) == sizeof(OrtCustomOp), \"custom_op\");\n", members[0])
	names := regexp.MustCompile(`\(\*(\w+)\)\(|uint32_t (\w+);`).FindAllSubmatch(members[1], -1)
	if len(names) != 26 {
		t.Errorf("custom_op has %d members, expected 26", len(names))
	}
	for _, n := range names {
		name := string(n[1]) + string(n[2])
		fmt.Fprintf(&program, "_Static_assert(offsetof(custom_op, %s) == offsetof(OrtCustomOp, %s), \"%s\");\n", name, name, name)
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
