package rng

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
)

// Key names a stream of randomness. Keys are comparable values without state; the zero Key is valid
// but belongs to no seed.
type Key struct {
	hi, lo uint64
}

// New returns the root key of a seed.
func New(seed uint64) Key {
	return derive(Key{0, seed}, "seed", nil)
}

// Split returns the key of a child. Name and indices are both part of the child's identity:
// Split("env", 1, 2), Split("env", 12) and Split("env1", 2) are unrelated.
func (k Key) Split(name string, index ...int) Key {
	return derive(k, name, index)
}

// Stream returns a new stream that starts at the key.
func (k Key) Stream() *Stream {
	s := new(Stream)
	s.Seed(k)
	return s
}

// derive is SHA-256 over a version tag, the parent, the length-prefixed name and the indices, cut
// to 128 bits.
func derive(k Key, name string, index []int) Key {
	var stack [160]byte
	b := append(stack[:0], "onnxrl/rng/1"...)
	b = binary.LittleEndian.AppendUint64(b, k.hi)
	b = binary.LittleEndian.AppendUint64(b, k.lo)
	b = binary.LittleEndian.AppendUint64(b, uint64(len(name)))
	b = append(b, name...)
	for _, i := range index {
		b = binary.LittleEndian.AppendUint64(b, uint64(i))
	}
	sum := sha256.Sum256(b)
	return Key{hi: binary.LittleEndian.Uint64(sum[0:]), lo: binary.LittleEndian.Uint64(sum[8:])}
}

// String returns the key as 32 hexadecimal digits.
func (k Key) String() string { return fmt.Sprintf("%016x%016x", k.hi, k.lo) }

// MarshalText writes the key as 32 hexadecimal digits.
func (k Key) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads what MarshalText writes.
func (k *Key) UnmarshalText(text []byte) error {
	var raw [16]byte
	if len(text) != 32 {
		return fmt.Errorf("read rng key: %d characters, want 32 hexadecimal digits", len(text))
	}
	if _, err := hex.Decode(raw[:], text); err != nil {
		return fmt.Errorf("read rng key: %w", err)
	}
	k.hi, k.lo = binary.BigEndian.Uint64(raw[:8]), binary.BigEndian.Uint64(raw[8:])
	return nil
}
