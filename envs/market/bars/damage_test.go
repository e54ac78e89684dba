package bars

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Whatever byte of a Parquet or Arrow file or of an Arrow stream is damaged, reading ends with rows
// or an error and never with a panic, which in a goroutine of a library would end the program, nor
// by asking for more memory than there is.
func TestDamagedFiles(t *testing.T) {
	longtest.Slow(t)
	for name, file := range sorted.All(map[string]string{"parquet": parquetTwo(t, false), "arrow file": arrowTwo(t, false), "arrow stream": arrowTwo(t, true)}) {
		t.Run(name, func(t *testing.T) { damage(t, file) })
	}
}

func damage(t *testing.T, file string) {
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "damaged"+filepath.Ext(file))
	r := rand.New(rand.NewPCG(1, 2))
	refused := 0
	for range 400 {
		bad := bytes.Clone(data)
		for range 1 + r.IntN(3) {
			bad[r.IntN(len(bad))] = byte(r.Uint32())
		}
		if err := os.WriteFile(path, bad, 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(source(path), nil); err != nil {
			refused++
		}
	}
	for n := range len(data) {
		if n%37 != 0 {
			continue
		}
		if err := os.WriteFile(path, data[:n], 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(source(path), nil); err == nil {
			t.Errorf("a file cut after %d of %d bytes was read", n, len(data))
		}
	}
	if refused < 50 {
		t.Errorf("only %d of 400 damaged files were refused", refused)
	}
}
