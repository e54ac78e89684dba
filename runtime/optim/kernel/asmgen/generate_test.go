package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestCommitted fails when the committed kernels are not the generator's.
func TestCommitted(t *testing.T) {
	files, err := generate()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) != 5 {
		t.Fatalf("%d files generated, want 5", len(files))
	}
	for name, want := range sorted.All(files) {
		got, err := os.ReadFile(filepath.Join("..", name))
		if err != nil {
			t.Fatal(err)
		}
		// A checkout may have translated line ends.
		if got = bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")); !bytes.Equal(got, want) {
			t.Errorf("%s is stale: run go generate ./runtime/optim/kernel", name)
		}
	}
}
