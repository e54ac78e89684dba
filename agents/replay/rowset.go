package replay

import (
	"encoding/binary"
	"math"
)

// rowSet is a set of rows.
type rowSet []uint64

func newRowSet(n int) rowSet { return make(rowSet, (n+63)/64) }

// halves of 64 random bits give two numbers below n: half·n/2³², unless the rest of the division is
// below biased(n) (Lemire 2019, "Fast Random Integer Generation in an Interval"). Drawing rows so
// takes half of the time.
func biased(n int) uint32 { return -uint32(n) % uint32(n) }

func (b rowSet) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b rowSet) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b rowSet) clear(i int)    { b[i>>6] &^= 1 << (i & 63) }

func float32At(b []byte, off int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[off:]))
}
