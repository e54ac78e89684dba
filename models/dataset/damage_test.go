package dataset

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// A damaged file is an error, whatever is damaged; it must never end the program or ask for memory
// that the file cannot fill.
func TestDamagedTablesAreErrors(t *testing.T) {
	tried := 0
	for _, format := range []string{"parquet", "arrow"} {
		path := files(t)[format]
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for at := 0; at < len(data); at += max(1, len(data)/longtest.Cases(t, 150, 30)) {
			for _, cut := range []bool{false, true} {
				bad := append([]byte(nil), data...)
				if cut {
					bad = bad[:at]
				} else {
					bad[at] ^= 0x41
				}
				p := filepath.Join(t.TempDir(), "t."+format)
				if err := os.WriteFile(p, bad, 0o644); err != nil {
					t.Fatal(err)
				}
				tried++
				table, err := Open(p)
				if err != nil {
					continue
				}
				for b := range min(len(table.Blocks()), 20) {
					for c := range table.Columns() {
						// Flipped bits in values read as other values; what matters is that reading
						// ends.
						_, _ = table.Read(b, []int{c})
					}
				}
				table.Close()
			}
		}
	}
	if tried < 500*longtest.Cases(t, 150, 30)/150 {
		t.Errorf("only %d damaged files", tried)
	}
}
