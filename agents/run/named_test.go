package run

import (
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
)

// TestKeptName: what lies in a directory keeps its name, also where the directory has another.
func TestKeptName(t *testing.T) {
	dir := t.TempDir()
	if name, err := KeptName(dir); err != nil || name != filepath.Base(dir) {
		t.Errorf("%q, %v", name, err)
	}
	if err := KeepName(dir, "search"); err != nil {
		t.Fatal(err)
	}
	if name, err := KeptName(dir); err != nil || name != "search" {
		t.Errorf("%q, %v", name, err)
	}
	if err := atomicfile.WriteBytes(filepath.Join(dir, NameFile), []byte("{")); err != nil {
		t.Fatal(err)
	}
	if _, err := KeptName(dir); err == nil {
		t.Error("a damaged file has a name")
	}
}
