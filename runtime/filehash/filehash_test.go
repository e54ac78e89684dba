package filehash

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSHA256 has two vectors of FIPS 180-4.
func TestSHA256(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	for _, c := range [][2]string{
		{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{strings.Repeat("a", 1_000_000), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
	} {
		if err := os.WriteFile(path, []byte(c[0]), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := SHA256(path); err != nil || got != c[1] {
			t.Errorf("%d bytes: %s, %v", len(c[0]), got, err)
		}
	}
	if _, err := SHA256(path + "x"); err == nil || !strings.Contains(err.Error(), path+"x") {
		t.Errorf("a file that is not there: %v", err)
	}
}
