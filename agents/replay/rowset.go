package replay

import (
	"encoding/binary"
	"math"
)

// rowSet is a set of rows.
type rowSet []uint64

func newRowSet(n int) rowSet { return make(rowSet, (n+63)/64) }

func (b rowSet) has(i int) bool { return b[i>>6]>>(i&63)&1 != 0 }
func (b rowSet) set(i int)      { b[i>>6] |= 1 << (i & 63) }
func (b rowSet) clear(i int)    { b[i>>6] &^= 1 << (i & 63) }

func float32At(b []byte, off int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[off:]))
}

func putFloat32(b []byte, x float32) { binary.LittleEndian.PutUint32(b, math.Float32bits(x)) }
