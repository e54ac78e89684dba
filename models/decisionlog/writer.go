package decisionlog

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"

	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The most that a file has.
const (
	maxRows  = 1 << 16
	maxBytes = 32 << 20
)

// fileTime is the form of the time in a file's name, by which names sort.
const fileTime = "20060102T150405.000000Z"

// suffix is that of the files of a log.
const suffix = ".parquet"

// Folder is the folder of a model's files within that of the log.
func Folder(dir, model string) string { return filepath.Join(dir, url.PathEscape(model)) }

// Writer writes the decisions of one model. It is not safe for concurrent use.
type Writer struct {
	dir string
	// mark tells the files of several processes apart.
	mark   string
	layout *Layout
	b      *array.RecordBuilder
	rows   int
	bytes  int
	first  int64
	files  int
	// published are the rows in files of dir, as far as is known; removed those that were in it when
	// somebody removed it, and again says that it was made again since Removed was asked.
	published, removed int
	again              bool
}

// NewWriter returns a writer into the folder of a model within a log's, which are made.
func NewWriter(dir, model string) (*Writer, error) {
	w := &Writer{dir: Folder(dir, model)}
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		return nil, err
	}
	if err := atomicfile.Clean(w.dir); err != nil {
		return nil, err
	}
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	w.mark = fmt.Sprintf("%x", b)
	return w, nil
}

// Add adds a row, whose data has the layout. A file that is full, or whose rows have another
// layout, is published first. The row is copied.
func (w *Writer) Add(l *Layout, r *Row) error {
	if w.rows > 0 && (w.rows >= maxRows || w.bytes >= maxBytes || w.layout != l && !w.layout.Equal(l)) {
		if err := w.Publish(); err != nil {
			return err
		}
	}
	if w.rows == 0 {
		w.layout, w.first = l, r.Time
		w.b = array.NewRecordBuilder(memory.DefaultAllocator, l.schema())
	}
	w.rows++
	w.bytes += len(r.Data) + len(r.Request) + len(r.Version) + len(r.Digest) + len(r.Sequence) + 64
	k := 0
	next := func() array.Builder {
		k++
		return w.b.Field(k - 1)
	}
	text := func(s string) { next().(*array.StringBuilder).Append(s) }
	flag := func(on bool) {
		x := uint8(0)
		if on {
			x = 1
		}
		next().(*array.Uint8Builder).Append(x)
	}
	float := func(x float64) { next().(*array.Float64Builder).Append(x) }
	next().(*array.TimestampBuilder).Append(arrow.Timestamp(r.Time))
	text(r.Request)
	next().(*array.Int32Builder).Append(r.Row)
	text(r.Version)
	text(r.Digest)
	text(r.Sequence)
	flag(r.Start)
	flag(r.End)
	data := r.Data
	for _, c := range l.Obs {
		appendValues(next(), c, data[:c.Size()])
		data = data[c.Size():]
	}
	appendValues(next(), l.Action, data)
	float(r.LogProb)
	float(r.Reward)
	flag(r.Terminated)
	flag(r.Truncated)
	return nil
}

// appendValues appends a row of a column.
func appendValues(to array.Builder, c Column, b []byte) {
	if l, ok := to.(*array.ListBuilder); ok {
		l.Append(true)
		to = l.ValueBuilder()
	}
	for i := range c.N {
		x := b[i*c.DType.Size():]
		switch c.DType {
		case tensor.Float32:
			to.(*array.Float32Builder).Append(math.Float32frombits(binary.LittleEndian.Uint32(x)))
		case tensor.Float64:
			to.(*array.Float64Builder).Append(math.Float64frombits(binary.LittleEndian.Uint64(x)))
		case tensor.Int64:
			to.(*array.Int64Builder).Append(int64(binary.LittleEndian.Uint64(x)))
		case tensor.Int32:
			to.(*array.Int32Builder).Append(int32(binary.LittleEndian.Uint32(x)))
		default:
			to.(*array.Uint8Builder).Append(x[0])
		}
	}
}

// Rows is the number of rows that are not published.
func (w *Writer) Rows() int { return w.rows }

// Removed reports whether the folder was removed by somebody, and made again, since the last call,
// and how many rows that this writer had published were in it.
func (w *Writer) Removed() (rows int, again bool) {
	rows, again = w.removed, w.again
	w.removed, w.again = 0, false
	return rows, again
}

// folder makes the folder again where it is gone.
func (w *Writer) folder() error {
	if _, err := os.Stat(w.dir); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	// Another process may still be removing its parents.
	err := os.MkdirAll(w.dir, 0o755)
	for try := 0; try < 3 && errors.Is(err, fs.ErrNotExist); try++ {
		err = os.MkdirAll(w.dir, 0o755)
	}
	if err != nil {
		return err
	}
	w.removed, w.published, w.again = w.removed+w.published, 0, true
	return nil
}

// Publish writes the rows that are in memory as a file, into a folder that it makes again where it
// was removed; without any rows it makes only that. After an error they are dropped.
func (w *Writer) Publish() error {
	if w.rows == 0 {
		return w.folder()
	}
	rec := w.b.NewRecord()
	defer func() {
		rec.Release()
		w.b.Release()
		w.b, w.rows, w.bytes = nil, 0, 0
	}()
	w.files++
	name := fmt.Sprintf("%s-%s-%06d%s", time.UnixMicro(w.first).UTC().Format(fileTime), w.mark, w.files, suffix)
	write := func(to io.Writer) error {
		out, err := parquetfile.Create(to, rec.Schema(), parquet.WithCompressionLevel(1), parquet.WithDataPageVersion(parquet.DataPageV2))
		if err != nil {
			return err
		}
		return errors.Join(out.Write(rec), out.Close())
	}
	// It may be removed meanwhile.
	for try := 0; ; try++ {
		if err := w.folder(); err != nil {
			return err
		}
		err := atomicfile.WriteFile(filepath.Join(w.dir, name), write)
		if err == nil {
			w.published += w.rows
		}
		if try > 0 || !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
}
