package parquetfile

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// splitFile opens a file of testdata/README.md.
func splitFile(t *testing.T, name string) (*File, []byte) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f, data
}

// TestByteStreamSplit compares numbers that pyarrow has written by BYTE_STREAM_SPLIT, in pages of both
// versions, with the formulas that they come from.
func TestByteStreamSplit(t *testing.T) {
	for _, name := range []string{"split_v1.parquet", "split_v2.parquet"} {
		f, _ := splitFile(t, name)
		at := 0
		for g := range f.Groups() {
			var columns []arrow.Array
			for c := range 6 {
				a, err := f.Column(g, c)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				defer a.Release()
				columns = append(columns, a)
			}
			for row := range f.Rows(g) {
				i := at + row
				if got := columns[0].(*array.Float32).Value(row); got != float32(i)/8 {
					t.Fatalf("%s: f32 of row %d is %v", name, i, got)
				}
				if f64, i32, none := columns[1].(*array.Float64), columns[2].(*array.Int32), i%7 == 3; f64.IsNull(row) != none || i32.IsNull(row) != none || !none && (f64.Value(row) != float64(i)*1.25-300 || i32.Value(row) != int32(i*i-5000)) {
					t.Fatalf("%s: row %d has %v and %v", name, i, f64.Value(row), i32.Value(row))
				}
				if got := columns[3].(*array.Int64).Value(row); got != int64(i-500)<<40 {
					t.Fatalf("%s: i64 of row %d is %v", name, i, got)
				}
				when := columns[4].(*array.Timestamp)
				if got := when.Value(row).ToTime(when.DataType().(*arrow.TimestampType).Unit); !got.Equal(time.Date(2024, 1, 1, i, 0, 0, 0, time.UTC)) {
					t.Fatalf("%s: the time of row %d is %v", name, i, got)
				}
				if got := columns[5].(*array.Float64).Value(row); got != float64(i) {
					t.Fatalf("%s: plain of row %d is %v", name, i, got)
				}
			}
			at += f.Rows(g)
		}
		if at != 1000 {
			t.Errorf("%s: %d rows", name, at)
		}
	}
}

// TestUnsupported: what is not read is named, with what to do, and is no damage.
func TestUnsupported(t *testing.T) {
	for name, want := range sorted.All(map[string]string{
		"split_v1.parquet": `column "half" (float16) has the encoding BYTE_STREAM_SPLIT, which is not read; write the file with PLAIN or a dictionary`,
		"lz4.parquet":      `column "x" (float64) has the compression LZ4_RAW, which is not read; write the file with snappy, zstd, gzip or none`,
	}) {
		f, _ := splitFile(t, name)
		_, err := f.Column(0, len(f.Names())-1)
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, columnar.ErrUnsupported) || errors.Is(err, columnar.ErrDamaged) {
			t.Errorf("%s: error %v, expected %q", name, err, want)
		}
	}
}

// TestSplitDamage: whatever byte is damaged, reading ends with rows or an error.
func TestSplitDamage(t *testing.T) {
	draws := longtest.Cases(t, 300, 60)
	for _, name := range []string{"split_v1.parquet", "split_v2.parquet"} {
		_, data := splitFile(t, name)
		r, refused := rand.New(rand.NewPCG(5, 6)), 0
		for range draws {
			bad := bytes.Clone(data)
			bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
			f, err := Open(bytes.NewReader(bad))
			for g := 0; err == nil && g < f.Groups(); g++ {
				for c := 0; err == nil && c < min(6, len(f.Names())); c++ {
					var a arrow.Array
					if a, err = f.Column(g, c); err == nil {
						a.Release()
					}
				}
			}
			if err == nil {
				continue
			}
			if refused++; !errors.Is(err, columnar.ErrDamaged) && !errors.Is(err, columnar.ErrUnsupported) {
				t.Fatalf("%s: error %v", name, err)
			}
		}
		if refused < draws/6 {
			t.Errorf("%s: only %d of %d damaged files were refused", name, refused, draws)
		}
	}
}
