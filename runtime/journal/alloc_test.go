package journal

import (
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// TestSealAllocatesNothing: frames are sealed on the way to a decision.
func TestSealAllocatesNothing(t *testing.T) {
	w, frame := &Writer{salt: 1 << 63}, make([]byte, FrameHead+100)
	if n := testing.AllocsPerRun(100, func() { w.Seal(frame, 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	for _, v := range []uint64{0, 1, 1 << 63, 0x0123456789abcdef} {
		b := binary.LittleEndian.AppendUint64(nil, v)
		if got, want := addNumber(5, v), crc32.Update(5, castagnoli, b); got != want {
			t.Errorf("%x: %x, expected %x", v, got, want)
		}
	}
}
