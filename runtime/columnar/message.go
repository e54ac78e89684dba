package columnar

import (
	"encoding/binary"
	"fmt"
)

// Kind is what a message of the Arrow format is; the numbers are the format's.
type Kind byte

// The kinds of messages that streams have.
const (
	Schema          Kind = 1
	DictionaryBatch Kind = 2
	RecordBatch     Kind = 3
)

// Message is what the header of a message says.
type Message struct {
	Kind Kind
	// Compressed says that the buffers of a batch are, and Bytes is the size of all of them when
	// they are not any more.
	Compressed bool
	Bytes      int64
}

var errHeader = fmt.Errorf("%w: the header of a message points outside of it", ErrDamaged)

// CheckMessage looks at the header of a message that came from elsewhere, before the Arrow library
// does, which believes every length: all that a schema points to lies in the header, and the buffers
// of a batch lie in the body, of whose uncompressed size at most so many bytes are right. A nil
// error says that decoding it asks for no more memory than that. Errors are ErrDamaged.
func CheckMessage(header, body []byte, most int64) (m Message, err error) {
	w := &fbWalk{buf: header, left: len(header)}
	root := w.u32(0)
	if at := w.slot(root, 1); at > 0 {
		m.Kind = Kind(w.at(at, 1)[0])
	}
	at := w.slot(root, 2)
	if w.bad || at == 0 {
		return m, errHeader
	}
	at += w.u32(at)
	switch m.Kind {
	case Schema:
		w.table(at, &fbSchema, 0)
	case DictionaryBatch:
		// The batch is a part of it.
		if at = w.slot(at, 1) + w.u32(w.slot(at, 1)); w.bad {
			return m, errHeader
		}
		fallthrough
	case RecordBatch:
		if err := w.batch(at, body, most, &m); err != nil {
			return m, err
		}
	default:
		return m, fmt.Errorf("%w: a message of type %d, expected a schema or a batch", ErrDamaged, m.Kind)
	}
	if w.bad {
		return m, errHeader
	}
	return m, nil
}

// vector is where the elements of a table's vector lie, and how many there are.
func (w *fbWalk) vector(pos, slot, size int) (at, n int) {
	if at = w.slot(pos, slot); at == 0 {
		return 0, 0
	}
	at += w.u32(at)
	if n = w.u32(at); n > len(w.buf)/size {
		w.bad = true
		return 0, 0
	}
	w.at(at+4, n*size)
	return at + 4, n
}

// batch checks a RecordBatch of format/Message.fbs.
func (w *fbWalk) batch(pos int, body []byte, most int64, m *Message) error {
	const pair = 16
	rows := int64(0)
	if at := w.slot(pos, 0); at > 0 {
		rows = w.i64(at)
	}
	nodes, n := w.vector(pos, 1, pair)
	for i := range n {
		length, nulls := w.i64(nodes+pair*i), w.i64(nodes+pair*i+8)
		// An element may have no bytes at all, as a null or an empty list, and then its number means
		// nothing; those of the others are compared with their buffers where they are read.
		if length < 0 || nulls < 0 || nulls > length {
			return fmt.Errorf("%w: column %d has %d values, of which %d are missing", ErrDamaged, i, length, nulls)
		}
	}
	m.Compressed = w.slot(pos, 3) > 0
	buffers, k := w.vector(pos, 2, pair)
	for i := range k {
		offset, length := w.i64(buffers+pair*i), w.i64(buffers+pair*i+8)
		if offset < 0 || length < 0 || offset > int64(len(body)) || length > int64(len(body))-offset {
			return fmt.Errorf("%w: buffer %d is bytes %d to %d+%d of a body of %d", ErrDamaged, i, offset, offset, length, len(body))
		}
		if m.Compressed && length >= 8 {
			// The size comes first; −1 is a buffer that is as it is.
			if size := int64(binary.LittleEndian.Uint64(body[offset:])); size != -1 {
				if size < 0 || size > most {
					return fmt.Errorf("%w: buffer %d is %d bytes when it is not compressed, expected at most %d in all", ErrDamaged, i, size, most)
				}
				length = size
			}
		}
		// Several may lie at the same place, and each is copied.
		if m.Bytes += length; m.Bytes > most {
			return fmt.Errorf("%w: the buffers of a batch are more than %d bytes", ErrDamaged, most)
		}
	}
	variadic, v := w.vector(pos, 4, 8)
	left := int64(k)
	for i := range v {
		c := w.i64(variadic + 8*i)
		if c < 0 || c > left {
			return fmt.Errorf("%w: %d buffers of a column of a batch that has %d", ErrDamaged, c, k)
		}
		left -= c
	}
	if w.bad || rows < 0 {
		return errHeader
	}
	return nil
}
