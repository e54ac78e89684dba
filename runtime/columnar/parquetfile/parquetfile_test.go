package parquetfile

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/compress"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"github.com/onnxrl/onnxrl/runtime/columnar"
	"github.com/onnxrl/onnxrl/runtime/longtest"
)

// sample is a file with row groups of 4, 0 and 3 rows: x counts, label repeats, list is nested.
func sample(t testing.TB) []byte {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}, {Name: "label", Type: arrow.BinaryTypes.String}, {Name: "list", Type: arrow.ListOf(arrow.PrimitiveTypes.Int32)},
	}, nil)
	var out bytes.Buffer
	w, err := pqarrow.NewFileWriter(schema, &out, parquet.NewWriterProperties(parquet.WithCompression(compress.Codecs.Zstd)), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	x := 0
	for _, rows := range []int{4, 0, 3} {
		for range rows {
			if x == 2 {
				b.Field(0).(*array.Float64Builder).AppendNull()
			} else {
				b.Field(0).(*array.Float64Builder).Append(float64(x))
			}
			b.Field(1).(*array.StringBuilder).Append("abc"[x%3 : x%3+1])
			b.Field(2).(*array.ListBuilder).Append(true)
			x++
		}
		if err := w.Write(b.NewRecord()); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// read returns all values of the first two columns.
func read(data []byte) (xs []float64, labels string, err error) {
	f, err := Open(bytes.NewReader(data))
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	for g := range f.Groups() {
		x, err := f.Column(g, 0)
		if err != nil {
			return nil, "", err
		}
		l, err := f.Column(g, 1)
		if err != nil {
			return nil, "", err
		}
		if _, err := f.Column(g, 2); err != nil {
			return nil, "", err
		}
		numbers, ok := x.(*array.Float64)
		texts, also := l.(*array.String)
		if !ok || !also {
			return nil, "", errors.New("other types")
		}
		for i := range f.Rows(g) {
			if numbers.IsNull(i) {
				xs = append(xs, math.NaN())
			} else {
				xs = append(xs, numbers.Value(i))
			}
			labels += texts.Value(i)
		}
	}
	return xs, labels, nil
}

func TestColumns(t *testing.T) {
	data := sample(t)
	xs, labels, err := read(data)
	if err != nil || len(xs) != 7 || labels != "abcabca" || !math.IsNaN(xs[2]) || xs[6] != 6 {
		t.Fatalf("%v %q: %v", xs, labels, err)
	}
	f, err := Open(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	if names := f.Names(); len(names) != 3 || names[2] != "list" {
		t.Errorf("columns %v", names)
	}
	list, err := f.Column(0, 2)
	if err != nil {
		t.Fatal(err)
	}
	defer list.Release()
	if l, ok := list.(*array.List); !ok || l.Len() != f.Rows(0) {
		t.Errorf("column %q is %v", "list", list)
	}
}

func TestDamage(t *testing.T) {
	data := sample(t)
	r := rand.New(rand.NewPCG(3, 4))
	refused, draws := 0, longtest.Cases(t, 500, 100)
	for range draws {
		bad := bytes.Clone(data)
		bad[r.IntN(len(bad))] ^= byte(1 + r.IntN(255))
		if _, _, err := read(bad); err != nil {
			refused++
			if !errors.Is(err, columnar.ErrDamaged) && !errors.Is(err, columnar.ErrUnsupported) && err.Error() != "other types" {
				t.Fatalf("error %v", err)
			}
		}
	}
	if refused < draws/5 {
		t.Errorf("only %d of %d damaged files were refused", refused, draws)
	}
}

// FuzzParquet reads files.
func FuzzParquet(f *testing.F) {
	f.Add(sample(f))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, _, err := read(data); err != nil && !errors.Is(err, columnar.ErrDamaged) && err.Error() != "other types" {
			t.Error(err)
		}
	})
}
