package replay

import (
	"encoding/binary"
	"math"
)

// bits is a set of rows.
type bits []uint64

func newBits(n int) bits { return make(bits, (n+63)/64) }

func (b bits) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b bits) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b bits) clear(i int)    { b[i>>6] &^= 1 << (i & 63) }

func float32At(b []byte, off int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[off:]))
}
