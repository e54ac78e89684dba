package objects

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Digest names content: "sha256:" and the 64 lower-case hexadecimal digits of its SHA-256.
type Digest string

const digestPrefix = "sha256:"

// DigestOf returns the digest of bytes.
func DigestOf(b []byte) Digest {
	sum := sha256.Sum256(b)
	return digestOfSum(sum[:])
}

func digestOfSum(sum []byte) Digest { return Digest(digestPrefix + hex.EncodeToString(sum)) }

// Check returns an error unless d has the form of a digest. Digests become parts of keys and file
// names, so none that comes from elsewhere is used unchecked.
func (d Digest) Check() error {
	digits, ok := strings.CutPrefix(string(d), digestPrefix)
	if !ok || !isSum(digits) {
		return fmt.Errorf("digest %q: expected sha256: and 64 lower-case hexadecimal digits", string(d))
	}
	return nil
}

func (d Digest) hex() string { return strings.TrimPrefix(string(d), digestPrefix) }

func isSum(s string) bool {
	return len(s) == 2*sha256.Size && strings.Trim(s, "0123456789abcdef") == ""
}

// Blob is content of known size.
type Blob struct {
	Digest Digest
	// Size is in bytes.
	Size int64
}

func (b Blob) check() error {
	if b.Size < 0 {
		return fmt.Errorf("blob %s: size %d", b.Digest, b.Size)
	}
	return b.Digest.Check()
}
