package rng

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

var _ rand.Source = (*Stream)(nil)

// Stream is a sequence of random numbers. It implements math/rand/v2.Source, for use with gonum and
// the standard library; the sequences drawn through those are theirs to change. The zero Stream is
// valid and starts at the zero Key.
type Stream struct {
	pcg rand.PCG
}

// Seed moves the stream to the start of a key's sequence.
func (s *Stream) Seed(k Key) { s.pcg.Seed(k.hi, k.lo) }

// Uint64 returns 64 uniform bits.
func (s *Stream) Uint64() uint64 { return s.pcg.Uint64() }

// Float64 returns a uniform multiple of 2^-53 in [0, 1).
func (s *Stream) Float64() float64 { return float64(s.pcg.Uint64()>>11) * 0x1p-53 }

// Float32 returns a uniform multiple of 2^-24 in [0, 1).
func (s *Stream) Float32() float32 { return float32(s.pcg.Uint64()>>40) * 0x1p-24 }

// open returns a uniform value in (0, 1), never an end, so that its logarithm is finite.
func (s *Stream) open() float64 { return (float64(s.pcg.Uint64()>>12) + 0.5) * 0x1p-52 }

// Bernoulli returns true with probability p; p <= 0 is never and p >= 1 always.
func (s *Stream) Bernoulli(p float64) bool { return s.Float64() < p }

// IntN returns a uniform integer in [0, n) without bias (Lemire 2019, "Fast Random Integer
// Generation in an Interval"). It panics if n <= 0.
func (s *Stream) IntN(n int) int {
	if n <= 0 {
		panic("rng: IntN of a number that is not positive")
	}
	return int(s.uint64N(uint64(n)))
}

func (s *Stream) uint64N(n uint64) uint64 {
	hi, lo := bits.Mul64(s.pcg.Uint64(), n)
	if lo < n {
		for threshold := -n % n; lo < threshold; {
			hi, lo = bits.Mul64(s.pcg.Uint64(), n)
		}
	}
	return hi
}

// Shuffle permutes n elements by calling swap, every order equally likely (Fisher-Yates).
func (s *Stream) Shuffle(n int, swap func(i, j int)) {
	for i := n - 1; i > 0; i-- {
		swap(i, int(s.uint64N(uint64(i+1))))
	}
}

// Perm fills dst with a random permutation of 0..len(dst)-1.
func (s *Stream) Perm(dst []int) {
	for i := range dst {
		dst[i] = i
	}
	for i := len(dst) - 1; i > 0; i-- {
		j := int(s.uint64N(uint64(i + 1)))
		dst[i], dst[j] = dst[j], dst[i]
	}
}

// FillUniform32 fills dst with the values that as many calls of low + (high-low)*Float32() give.
func (s *Stream) FillUniform32(dst []float32, low, high float32) {
	span := high - low
	for i := range dst {
		// The conversion keeps compilers from fusing the product and the sum, which would change
		// the last bit.
		dst[i] = low + float32(span*s.Float32())
	}
}

// MarshalBinary returns the state.
func (s *Stream) MarshalBinary() ([]byte, error) { return s.pcg.MarshalBinary() }

// UnmarshalBinary restores a state; the stream then continues exactly as the saved one did.
func (s *Stream) UnmarshalBinary(data []byte) error {
	// PCG.UnmarshalBinary looks only at the prefix and the first 16 bytes after it.
	if len(data) != 20 || !bytes.HasPrefix(data, []byte("pcg:")) {
		return fmt.Errorf("restore rng stream: %d bytes, want 20 that start with \"pcg:\"", len(data))
	}
	return s.pcg.UnmarshalBinary(data)
}

// MarshalText returns the state as "pcg:" and 32 hexadecimal digits, which is how it appears in
// JSON.
func (s *Stream) MarshalText() ([]byte, error) {
	raw, err := s.pcg.MarshalBinary()
	if err != nil {
		return nil, err
	}
	return hex.AppendEncode([]byte("pcg:"), raw[4:]), nil
}

// UnmarshalText reads what MarshalText writes.
func (s *Stream) UnmarshalText(text []byte) error {
	digits, ok := bytes.CutPrefix(text, []byte("pcg:"))
	if !ok || len(digits) != 32 {
		return fmt.Errorf("restore rng stream: %q, want \"pcg:\" and 32 hexadecimal digits", text)
	}
	raw, err := hex.AppendDecode([]byte("pcg:"), digits)
	if err != nil {
		return fmt.Errorf("restore rng stream: %w", err)
	}
	return s.UnmarshalBinary(raw)
}
