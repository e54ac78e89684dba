package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The Arrow library believes every length in a file's footer and allocates it before looking at the data, so a flipped bit there ends the program for lack of memory. checkFooter walks the
// footer's FlatBuffers tables beforehand and makes sure that every string and vector lies inside. The slots are those of Arrow's format/File.fbs and format/Schema.fbs.

// fbTable lists the slots of a table that hold lengths.
type fbTable []fbSlot

// fbSlot is a string or vector of elem bytes each; of tables, when of is set; or one table, when elem is 0.
type fbSlot struct {
	slot, elem int
	of         *fbTable
}

var (
	fbKeyValue = fbTable{{0, 1, nil}, {1, 1, nil}}
	fbSchema   = fbTable{{1, 4, &fbField}, {2, 4, &fbKeyValue}, {3, 8, nil}}
	fbFooter   = fbTable{{1, 0, &fbSchema}, {2, 24, nil}, {3, 24, nil}, {4, 4, &fbKeyValue}}
	fbField    fbTable
)

func init() {
	// A field's children are fields, which a composite literal cannot say of itself.
	fbField = fbTable{{0, 1, nil}, {5, 4, &fbField}, {6, 4, &fbKeyValue}}
}

var errFooter = errors.New("the footer is damaged")

// maxFooter bounds the footer; that of a table with ten thousand columns takes about a megabyte.
const maxFooter = 64 << 20

// checkFooter reads the footer of an Arrow file of the given size and checks its lengths.
func checkFooter(r io.ReaderAt, size int64) error {
	const magic = "ARROW1"
	tail := make([]byte, 4+len(magic))
	if size < int64(len(tail)) {
		return errFooter
	}
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	if string(tail[4:]) != magic || n > size-int64(len(tail)) || n > maxFooter {
		return errFooter
	}
	buf := make([]byte, n)
	if _, err := r.ReadAt(buf, size-int64(len(tail))-n); err != nil {
		return err
	}
	w := fbWalk{buf: buf, left: len(buf)}
	w.table(w.u32(0), &fbFooter, 0)
	if w.bad {
		return fmt.Errorf("%w: a length points outside of its %d bytes", errFooter, n)
	}
	return nil
}

// fbWalk reads with bounds; bad is set by the first read outside. left bounds the tables visited, since several offsets may lead to the same one.
type fbWalk struct {
	buf  []byte
	left int
	bad  bool
}

func (w *fbWalk) at(pos, n int) []byte {
	if w.bad || pos < 0 || n < 0 || pos > len(w.buf)-n {
		w.bad = true
		return make([]byte, 8)
	}
	return w.buf[pos : pos+n]
}

func (w *fbWalk) u32(pos int) int { return int(binary.LittleEndian.Uint32(w.at(pos, 4))) }
func (w *fbWalk) u16(pos int) int { return int(binary.LittleEndian.Uint16(w.at(pos, 2))) }

func (w *fbWalk) table(pos int, t *fbTable, depth int) {
	if w.left--; w.left < 0 || depth > 64 {
		w.bad = true
		return
	}
	vtable := pos - int(int32(w.u32(pos)))
	size := w.u16(vtable)
	for _, s := range *t {
		if w.bad || 4+2*s.slot+2 > size {
			continue
		}
		off := w.u16(vtable + 4 + 2*s.slot)
		if off == 0 {
			continue
		}
		target := pos + off + w.u32(pos+off)
		if s.elem == 0 {
			w.table(target, s.of, depth+1)
			continue
		}
		n := w.u32(target)
		if n > len(w.buf)/s.elem {
			w.bad = true
			return
		}
		w.at(target+4, n*s.elem)
		if s.of == nil {
			continue
		}
		for i := 0; i < n && !w.bad; i++ {
			p := target + 4 + 4*i
			w.table(p+w.u32(p), s.of, depth+1)
		}
	}
}
