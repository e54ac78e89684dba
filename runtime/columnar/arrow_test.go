package columnar

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// buffer is a file in memory that can be written.
type buffer struct{ bytes.Buffer }

func (b *buffer) Seek(int64, int) (int64, error) { return int64(b.Len()), nil }

// arrowSample has batches of 2 and 3 rows of an int64 that counts, as a file and as a stream.
func arrowSample(t testing.TB) (file, stream []byte) {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}, {Name: "label", Type: arrow.BinaryTypes.String}}, nil)
	var f, s buffer
	fw, err := ipc.NewFileWriter(&f, ipc.WithSchema(schema))
	if err != nil {
		t.Fatal(err)
	}
	sw := ipc.NewWriter(&s, ipc.WithSchema(schema))
	b, x := array.NewRecordBuilder(memory.DefaultAllocator, schema), int64(0)
	for _, rows := range []int{2, 3} {
		for range rows {
			b.Field(0).(*array.Int64Builder).Append(x)
			b.Field(1).(*array.StringBuilder).Append("row")
			x++
		}
		rec := b.NewRecord()
		if err := errors.Join(fw.Write(rec), sw.Write(rec)); err != nil {
			t.Fatal(err)
		}
		rec.Release()
	}
	if err := errors.Join(fw.Close(), sw.Close()); err != nil {
		t.Fatal(err)
	}
	return f.Bytes(), s.Bytes()
}

// sum adds up the first column; both forms of reading are tried.
func sum(data []byte, stream bool) (total, rows int64, err error) {
	r := bytes.NewReader(data)
	count := func(rec arrow.Record) {
		if rec.NumCols() == 0 {
			return // the schema was damaged
		}
		if x, ok := rec.Column(0).(*array.Int64); ok {
			for i := range x.Len() {
				total += x.Value(i)
				rows++
			}
		}
	}
	if stream {
		s, err := OpenArrowStream(r, r.Size())
		if err != nil {
			return 0, 0, err
		}
		defer s.Close()
		for {
			rec, err := s.Next()
			if err == io.EOF {
				return total, rows, nil
			}
			if err != nil {
				return 0, 0, err
			}
			count(rec)
		}
	}
	f, err := OpenArrow(r, r.Size())
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	for i := range f.Batches() {
		rec, err := f.Batch(i)
		if err != nil {
			return 0, 0, err
		}
		count(rec)
		rec.Release()
	}
	return total, rows, nil
}

func TestArrow(t *testing.T) {
	file, stream := arrowSample(t)
	damaged := 0
	for _, data := range [][]byte{file, stream} {
		isStream := len(data) == len(stream)
		if total, rows, err := sum(data, isStream); err != nil || total != 10 || rows != 5 {
			t.Fatalf("%d in %d rows, %v", total, rows, err)
		}
		// Whatever is damaged: rows or an error that is ErrDamaged.
		for at := range data {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				bad := bytes.Clone(data)
				bad[at] ^= flip
				if _, _, err := sum(bad, isStream); err != nil {
					damaged++
					if !errors.Is(err, ErrDamaged) {
						t.Fatalf("byte %d: %v", at, err)
					}
				}
			}
		}
		// A length that the file cannot hold is refused before memory is asked for, wherever it
		// stands.
		for at := 0; at+4 <= len(data); at += 4 {
			bad := bytes.Clone(data)
			binary.LittleEndian.PutUint32(bad[at:], 0x7fff_fff0)
			if _, _, err := sum(bad, isStream); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("length at %d: %v", at, err)
			}
		}
	}
	if damaged < 500 {
		t.Errorf("only %d damaged files were refused", damaged)
	}
}

// FuzzArrow reads files and streams.
func FuzzArrow(f *testing.F) {
	file, stream := arrowSample(f)
	f.Add(file)
	f.Add(stream)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, stream := range []bool{false, true} {
			if _, _, err := sum(data, stream); err != nil && !errors.Is(err, ErrDamaged) {
				t.Error(err)
			}
		}
	})
}

// FuzzMessage checks the header of a message and decodes it.
func FuzzMessage(f *testing.F) {
	_, stream := arrowSample(f)
	for at := 0; at+8 <= len(stream); {
		n := int(binary.LittleEndian.Uint32(stream[at+4:]))
		if n == 0 {
			break
		}
		header := stream[at+8 : at+8+n]
		w := &fbWalk{buf: header}
		size := 0
		if k := w.slot(w.u32(0), 3); k > 0 {
			size = int(w.i64(k))
		}
		f.Add(header, stream[at+8+n:at+8+n+size])
		at += 8 + n + size
	}
	f.Fuzz(func(t *testing.T, header, body []byte) {
		const most = 1 << 20
		m, err := CheckMessage(header, body, most)
		if err != nil && !errors.Is(err, ErrDamaged) || m.Bytes > most && err == nil {
			t.Fatal(m, err)
		}
		if err != nil || m.Kind != Schema {
			return
		}
		// The library may return an error, and never panics.
		if r, err := ipc.NewReaderFromMessageReader(&one{header, body}); err == nil {
			r.Release()
		}
	})
}

// one reads one message.
type one struct{ header, body []byte }

func (o *one) Message() (*ipc.Message, error) {
	if o.header == nil {
		return nil, io.EOF
	}
	m := ipc.NewMessage(memory.NewBufferBytes(o.header), memory.NewBufferBytes(o.body))
	o.header = nil
	return m, nil
}

func (o *one) Retain()  {}
func (o *one) Release() {}
