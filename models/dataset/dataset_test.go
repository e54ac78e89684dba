package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// record makes rows [from, from+n) of a table whose columns are a = i, b = 2i (int64), v = [i, −i]
// and flag = i is even. Arrow files hold v as a fixed-size list, Parquet as a list, the only kind
// it has.
func record(from, n int, list arrow.DataType) arrow.Record {
	schema := arrow.NewSchema([]arrow.Field{
		{Name: "a", Type: arrow.PrimitiveTypes.Float64}, {Name: "b", Type: arrow.PrimitiveTypes.Int64},
		{Name: "v", Type: list}, {Name: "flag", Type: arrow.FixedWidthTypes.Boolean},
		{Name: "name", Type: arrow.BinaryTypes.String},
	}, nil)
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer b.Release()
	for i := from; i < from+n; i++ {
		b.Field(0).(*array.Float64Builder).Append(float64(i))
		b.Field(1).(*array.Int64Builder).Append(int64(2 * i))
		l := b.Field(2).(array.ListLikeBuilder)
		l.Append(true)
		l.ValueBuilder().(*array.Float32Builder).AppendValues([]float32{float32(i), float32(-i)}, nil)
		b.Field(3).(*array.BooleanBuilder).Append(i%2 == 0)
		b.Field(4).(*array.StringBuilder).Append(fmt.Sprint("row", i))
	}
	return b.NewRecord()
}

const (
	rowCount  = 103
	blockRows = 10
)

// files writes the same table in every format.
func files(t *testing.T) map[string]string {
	dir := t.TempDir()
	out := map[string]string{"parquet": filepath.Join(dir, "t.parquet"), "arrow": filepath.Join(dir, "t.arrow"), "csv": filepath.Join(dir, "t.csv")}
	pf, err := os.Create(out["parquet"])
	if err != nil {
		t.Fatal(err)
	}
	variable, fixed := arrow.ListOf(arrow.PrimitiveTypes.Float32), arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Float32)
	pw, err := pqarrow.NewFileWriter(record(0, 1, variable).Schema(), pf, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	af, err := os.Create(out["arrow"])
	if err != nil {
		t.Fatal(err)
	}
	aw, err := ipc.NewFileWriter(af, ipc.WithSchema(record(0, 1, fixed).Schema()))
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("a,b,flag,name\n")
	for from := 0; from < rowCount; from += blockRows {
		n := min(blockRows, rowCount-from)
		if err := errors.Join(pw.Write(record(from, n, variable)), aw.Write(record(from, n, fixed))); err != nil {
			t.Fatal(err)
		}
		for i := from; i < from+n; i++ {
			fmt.Fprintf(&text, "%d,%d,%v,\"row, %d\"\n", i, 2*i, i%2 == 0, i)
		}
	}
	if err := errors.Join(pw.Close(), aw.Close(), af.Close(), os.WriteFile(out["csv"], []byte(text.String()), 0o644)); err != nil {
		t.Fatal(err)
	}
	return out
}

func mapped(t *testing.T, path string, missing Missing, fields ...Field) *Mapping {
	t.Helper()
	table, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	m, err := Map(table, fields, missing)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var ab = []Field{{Name: "x", Columns: []string{"a", "flag"}, DType: tensor.Float32, Shape: []int{2}}, {Name: "y", Columns: []string{"b"}, DType: tensor.Int64, Shape: []int{}}}

// drain reads an epoch in batches of n and returns column a of every row.
func drain(t *testing.T, l *Loader, n int) []int {
	t.Helper()
	x, y := tensor.New(tensor.Float32, n, 2), tensor.New(tensor.Int64, n)
	var seen []int
	for {
		k, err := l.Next(n, []*tensor.Tensor{x, y})
		if errors.Is(err, io.EOF) {
			return seen
		}
		if err != nil {
			t.Fatal(err)
		}
		for i := range k {
			a := int(x.Float32s()[2*i])
			if y.Int64s()[i] != int64(2*a) || x.Float32s()[2*i+1] != float32(1-a%2) {
				t.Fatalf("row %d: flag %g, b %d", a, x.Float32s()[2*i+1], y.Int64s()[i])
			}
			seen = append(seen, a)
		}
	}
}

func TestEveryFormatGivesTheSameRows(t *testing.T) {
	n := 0
	for format, path := range sorted.All(files(t)) {
		l, err := NewLoader(mapped(t, path, Fail, ab...), LoaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := drain(t, l, 8)
		if len(got) != rowCount || !slices.IsSorted(got) || got[rowCount-1] != rowCount-1 {
			t.Errorf("%s: rows %v", format, got)
		}
		n++
	}
	if n != 3 {
		t.Errorf("%d formats", n)
	}
}

func TestListColumnsFillShapes(t *testing.T) {
	for _, format := range []string{"parquet", "arrow"} {
		l, err := NewLoader(mapped(t, files(t)[format], Fail, Field{Name: "v", Columns: []string{"v"}, DType: tensor.Float32, Shape: []int{1, 2}}), LoaderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		v := tensor.New(tensor.Float32, rowCount, 1, 2)
		if n, err := l.Next(rowCount, []*tensor.Tensor{v}); n != rowCount || err != nil {
			t.Fatalf("%s: %d rows, %v", format, n, err)
		}
		if got := v.Float32s()[2*57 : 2*57+2]; got[0] != 57 || got[1] != -57 {
			t.Errorf("%s: row 57 is %v", format, got)
		}
	}
}

func TestShuffleIsAPermutationPerEpochAndResumes(t *testing.T) {
	path := files(t)["parquet"]
	for _, window := range []int{25, 1000} {
		o := LoaderOptions{Shuffle: true, Seed: 3, Window: window}
		l, err := NewLoader(mapped(t, path, Fail, ab...), o)
		if err != nil {
			t.Fatal(err)
		}
		var epochs [][]int
		for range 3 {
			e := drain(t, l, 7)
			epochs = append(epochs, e)
			s := slices.Sorted(slices.Values(e))
			if len(s) != rowCount || s[0] != 0 || s[rowCount-1] != rowCount-1 || len(slices.Compact(s)) != rowCount {
				t.Fatalf("window %d: an epoch is not a permutation: %v", window, e)
			}
			l.NextEpoch()
		}
		if slices.Equal(epochs[0], epochs[1]) {
			t.Errorf("window %d: two epochs have the same order", window)
		}
		for _, row := range []int{0, 1, 40, rowCount} {
			l, err := NewLoader(mapped(t, path, Fail, ab...), o)
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Seek(State{Epoch: 2, Row: row}); err != nil {
				t.Fatal(err)
			}
			if got := drain(t, l, 9); !slices.Equal(got, epochs[2][row:]) {
				t.Errorf("window %d: resumed at row %d: %v, want %v", window, row, got, epochs[2][row:])
			}
		}
	}
}

func TestSplitPartsAreDisjointAndComplete(t *testing.T) {
	path := files(t)["csv"]
	for _, tail := range []bool{false, true} {
		var all []int
		for _, part := range []Part{Train, Validation} {
			l, err := NewLoader(mapped(t, path, Fail, ab...), LoaderOptions{Part: part, Split: Split{Fraction: 0.3, Tail: tail, Seed: 1}})
			if err != nil {
				t.Fatal(err)
			}
			rows := drain(t, l, 10)
			if len(rows) != l.Rows() {
				t.Errorf("tail %v: %d rows, announced %d", tail, len(rows), l.Rows())
			}
			if part == Validation && tail && (len(rows) != 30 || rows[0] != rowCount-30) {
				t.Errorf("tail validation rows: %v", rows)
			}
			all = append(all, rows...)
		}
		slices.Sort(all)
		if len(all) != rowCount || len(slices.Compact(all)) != rowCount {
			t.Errorf("tail %v: the parts hold %d rows", tail, len(all))
		}
	}
}

func TestMissingValuesFailOrDrop(t *testing.T) {
	path := filepath.Join(t.TempDir(), "holes.csv")
	if err := os.WriteFile(path, []byte("a,b,flag\n0,0,true\n1,,false\n2,4,true\n3,6,NaN\n4,8,true\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	table, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	m, err := Map(table, ab, Fail)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLoader(m, LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Next(5, []*tensor.Tensor{tensor.New(tensor.Float32, 5, 2), tensor.New(tensor.Int64, 5)})
	if err == nil || !strings.Contains(err.Error(), "row 4") && !strings.Contains(err.Error(), "row 2") || !strings.Contains(err.Error(), "missing, or NaN, expected a finite number; mend it, or leave out rows without one (data.missing: drop)") {
		t.Errorf("missing values: error %v", err)
	}
	l, err = NewLoader(mapped(t, path, Drop, ab...), LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := drain(t, l, 2); !slices.Equal(got, []int{0, 2, 4}) || l.Rows() != 3 {
		t.Errorf("kept rows %v of %d", got, l.Rows())
	}
}

func TestBadDataIsNamed(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return p
	}
	good := files(t)["parquet"]
	data, err := os.ReadFile(good)
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		path   string
		fields []Field
		want   string
	}{
		{filepath.Join(dir, "absent.csv"), ab, "no such file"},
		{write("t.json", "{}"), ab, "extension"},
		{write("dup.csv", "a,a\n1,2\n"), ab, `"a" appears twice`},
		{write("ragged.csv", "a,b\n1,2\n1\n"), ab, "wrong number of fields"},
		{write("cut.parquet", string(data[:len(data)/2])), ab, "read parquet"},
		{write("cut.arrow", "ARROW1"), ab, "read arrow"},
		{good, []Field{{Name: "x", Columns: []string{"zz"}, DType: tensor.Float32}}, `needs column "zz"; the file has a, b, v, flag, name`},
		{good, []Field{{Name: "x", Columns: []string{"name"}, DType: tensor.Float32}}, `column "name"`},
		{good, []Field{{Name: "x", Columns: []string{"a", "v"}, DType: tensor.Float32, Shape: []int{2}}}, "shape [2] per row, 2 values, but its columns hold 3"},
		{good, []Field{{Name: "x", Columns: []string{"a"}, DType: tensor.Uint8, Shape: []int{}}}, "uint8"},
		{write("half.csv", "a,b,flag\n0.5,0.5,1\n"), ab, `column "b": 0.5 is not a whole number`},
		{write("word.csv", "a,b,flag\nx,0,1\n"), ab, `line 2, column "a": "x" is not a number`},
	}
	for _, c := range cases {
		err := func() error {
			table, err := Open(c.path)
			if err != nil {
				return err
			}
			defer table.Close()
			m, err := Map(table, c.fields, Fail)
			if err != nil {
				return err
			}
			_, err = m.read(0, false)
			return err
		}()
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), filepath.Base(c.path)) {
			t.Errorf("%s: error %v, want %q and the file's name", filepath.Base(c.path), err, c.want)
		}
	}
	if len(cases) != 12 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestFoldersAreOneTable(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("p%d.csv", i)), []byte(fmt.Sprintf("a,b,flag\n%d,%d,%d\n", i, 2*i, 1-i%2)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	l, err := NewLoader(mapped(t, dir, Fail, ab...), LoaderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := drain(t, l, 2); !slices.Equal(got, []int{0, 1, 2}) {
		t.Errorf("rows %v", got)
	}
	if err := os.WriteFile(filepath.Join(dir, "q.csv"), []byte("other\n1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "differ") {
		t.Errorf("mixed columns: %v", err)
	}
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a,b\n1,2\n"))
	f.Add([]byte("a;b\n\"1;\";2\n"))
	f.Add([]byte("\ufeffa\tb\nNaN\t\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "t.csv")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		table, err := Open(path)
		if err != nil {
			return
		}
		defer table.Close()
		for b := range table.Blocks() {
			for c := range table.Columns() {
				vals, err := table.Read(b, []int{c})
				if err == nil && len(vals[0]) != table.Blocks()[b] {
					t.Fatalf("block %d has %d rows, column %d gave %d", b, table.Blocks()[b], c, len(vals[0]))
				}
			}
		}
	})
}

func TestParseCell(t *testing.T) {
	for s, want := range sorted.All(map[string]float64{"1.5": 1.5, "-2e3": -2000, "true": 1, "False": 0}) {
		if got, err := parseCell(s); err != nil || got != want {
			t.Errorf("%q: %g, %v", s, got, err)
		}
	}
	if v, err := parseCell(""); err != nil || !math.IsNaN(v) {
		t.Errorf("empty cell: %g, %v", v, err)
	}
}
