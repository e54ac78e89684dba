// Package filehash names the contents of files.
package filehash

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// SHA256 returns the SHA-256 of a file's bytes (FIPS 180-4), as 64 lower-case hexadecimal digits.
// Its errors are those of opening and reading, and name the file.
func SHA256(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	// Closing a file that was read cannot lose anything.
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
