package columnar

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// The Arrow library believes every length in a file's footer, or in a stream's messages, and
// allocates it before looking at the data, so a flipped bit there ends the program for lack of
// memory. What follows walks the FlatBuffers tables beforehand and makes sure that every string,
// vector and block lies inside. The slots are those of Arrow's format/File.fbs, format/Schema.fbs
// and format/Message.fbs.

// fbTable lists the slots of a table that hold lengths.
type fbTable []fbSlot

// fbSlot is a string or vector of elem bytes each; of tables, when of is set; or one table, when
// elem is 0.
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

var (
	errFooter  = errors.New("the footer is wrong")
	errMessage = errors.New("a message is wrong")
)

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
	w.blocks(w.u32(0), 2, size)
	w.blocks(w.u32(0), 3, size)
	if w.bad {
		return fmt.Errorf("%w: a length points outside of its %d bytes", errFooter, n)
	}
	return nil
}

// checkStream walks the messages of an Arrow stream of the given size: none is longer than what is
// left, and the schema's lengths lie inside of it.
func checkStream(r io.ReaderAt, size int64) error {
	const longHeader, schema = 0xffffffff, 1
	for pos := int64(0); pos < size; {
		word := make([]byte, 4)
		next := func() (int64, error) {
			_, err := r.ReadAt(word, pos)
			pos += 4
			return int64(binary.LittleEndian.Uint32(word)), err
		}
		n, err := next()
		if err == nil && n == longHeader {
			n, err = next()
		}
		if err != nil {
			return fmt.Errorf("%w: %w", errMessage, err)
		}
		if n == 0 {
			return nil
		}
		if n > size-pos || n > maxFooter {
			return fmt.Errorf("%w: a length of %d with %d bytes left", errMessage, n, size-pos)
		}
		buf := make([]byte, n)
		if _, err := r.ReadAt(buf, pos); err != nil {
			return err
		}
		pos += n
		w := fbWalk{buf: buf, left: len(buf)}
		root := w.u32(0)
		if at := w.slot(root, 1); at > 0 && w.at(at, 1)[0] == schema {
			if at := w.slot(root, 2); at > 0 {
				w.table(at+w.u32(at), &fbSchema, 0)
			}
		}
		if at := w.slot(root, 3); at > 0 {
			body := w.i64(at)
			w.bad = w.bad || body < 0 || body > size-pos
			pos += body
		}
		if w.bad {
			return fmt.Errorf("%w: a length points outside", errMessage)
		}
	}
	return nil
}

// fbWalk reads with bounds; bad is set by the first read outside. left bounds the tables visited,
// since several offsets may lead to the same one.
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

func (w *fbWalk) i64(pos int) int64 { return int64(binary.LittleEndian.Uint64(w.at(pos, 8))) }

// slot is where the value of a table's slot lies, 0 where it has none.
func (w *fbWalk) slot(pos, slot int) int {
	vtable := pos - int(int32(w.u32(pos)))
	if w.bad || 4+2*slot+2 > w.u16(vtable) {
		return 0
	}
	if off := w.u16(vtable + 4 + 2*slot); off > 0 {
		return pos + off
	}
	return 0
}

// blocks checks a vector of places in the file: offset, length of the metadata and length of the
// body.
func (w *fbWalk) blocks(pos, slot int, size int64) {
	const block = 24
	at := w.slot(pos, slot)
	if at == 0 {
		return
	}
	at += w.u32(at)
	for i := 0; i < w.u32(at) && !w.bad; i++ {
		p := at + 4 + block*i
		offset, meta, body := w.i64(p), int64(int32(w.u32(p+8))), w.i64(p+16)
		w.bad = w.bad || offset < 0 || meta < 0 || body < 0 || offset > size || meta > size-offset || body > size-offset-meta
	}
}

func (w *fbWalk) table(pos int, t *fbTable, depth int) {
	if w.left--; w.left < 0 || depth > 64 {
		w.bad = true
		return
	}
	for _, s := range *t {
		at := w.slot(pos, s.slot)
		if at == 0 {
			continue
		}
		target := at + w.u32(at)
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
