package decisionlog

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/onnxrl/onnxrl/runtime/columnar/parquetfile"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Models lists the models that a folder has logs of, sorted; none where it is no log.
func Models(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var list []string
	for _, e := range entries {
		name, err := url.PathUnescape(e.Name())
		if err != nil || !e.IsDir() {
			continue
		}
		files, err := Files(dir, name)
		if err != nil {
			return nil, err
		}
		if len(files) > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Files lists the files of a model in the order of time.
func Files(dir, model string) ([]string, error) {
	list, err := filepath.Glob(filepath.Join(escape(Folder(dir, model)), "*Z-*-*"+suffix))
	slices.Sort(list)
	return list, err
}

// escape has a pattern match a path as it is.
func escape(path string) string {
	return strings.NewReplacer(`*`, `[*]`, `?`, `[?]`, `[`, `[[]`).Replace(path)
}

// Read gives the rows of a model in the order of its files. The row is overwritten by the next one.
// Errors name file, row group and column.
func Read(ctx context.Context, dir, model string, do func(l *Layout, r *Row) error) error {
	files, err := Files(dir, model)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("%s has no decisions of the model %q", dir, model)
	}
	for _, path := range files {
		if err := ReadFile(ctx, path, do); err != nil {
			return err
		}
	}
	return nil
}

// ReadFile gives the rows of one file, as [Read] does.
func ReadFile(ctx context.Context, path string, do func(l *Layout, r *Row) error) error {
	if err := read(ctx, path, do); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func read(ctx context.Context, path string, do func(l *Layout, r *Row) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	file, err := parquetfile.Open(f)
	if err != nil {
		return err
	}
	// Closing a file that was read cannot lose anything.
	defer file.Close()
	names := file.Names()
	n := len(head) + 1 + len(tail)
	if len(names) < n || !slices.Equal(names[:len(head)], fieldNames(head)) || !slices.Equal(names[len(names)-len(tail):], fieldNames(tail)) {
		return fmt.Errorf("it has the columns %q, expected those of a log of decisions", names)
	}
	var layout *Layout
	for g := range file.Groups() {
		if err := ctx.Err(); err != nil {
			return err
		}
		r := &rows{n: file.Rows(g)}
		err := r.load(file, g, names)
		if err == nil && layout == nil {
			layout = r.layout()
		}
		if err == nil && !layout.Equal(r.layout()) {
			err = fmt.Errorf("its columns are not those of the groups before")
		}
		if err == nil {
			err = r.each(layout, do)
		}
		r.release()
		if err != nil {
			return fmt.Errorf("row group %d: %w", g, err)
		}
	}
	return nil
}

func fieldNames(list []arrow.Field) (names []string) {
	for _, f := range list {
		names = append(names, f.Name)
	}
	return names
}

// rows are those of a row group.
type rows struct {
	n      int
	arrays []arrow.Array
	data   []values
}

// values is a column of inputs, or of the action.
type values struct {
	Column
	bytes []byte
}

func (r *rows) release() {
	for _, a := range r.arrays {
		a.Release()
	}
}

func (r *rows) load(f *parquetfile.File, g int, names []string) error {
	for i, name := range names {
		a, err := f.Column(g, i)
		if err != nil {
			return err
		}
		r.arrays = append(r.arrays, a)
		if a.NullN() > 0 {
			return fmt.Errorf("column %q: %d values are missing", name, a.NullN())
		}
		var want arrow.Field
		switch tailAt := i - (len(names) - len(tail)); {
		case i < len(head):
			want = head[i]
		case tailAt >= 0:
			want = tail[tailAt]
		default:
			v, err := valuesOf(strings.TrimPrefix(name, ObsPrefix), a)
			if err != nil {
				return fmt.Errorf("column %q: %w", name, err)
			}
			r.data = append(r.data, v)
			continue
		}
		if !arrow.TypeEqual(a.DataType(), want.Type) {
			return fmt.Errorf("column %q is of %v, expected %v", name, a.DataType(), want.Type)
		}
	}
	return nil
}

// valuesOf copies a column of numbers, or of lists that are all as long.
func valuesOf(name string, a arrow.Array) (values, error) {
	v := values{Column: Column{Name: name, N: 1}}
	rows := a.Len()
	if l, ok := a.(*array.List); ok {
		v.List = true
		from, to := int64(0), int64(0)
		for i := range rows {
			begin, end := l.ValueOffsets(i)
			if i == 0 {
				from, v.N = begin, int(end-begin)
			}
			if int(end-begin) != v.N {
				return v, fmt.Errorf("row %d has %d elements, and row 0 has %d", i, end-begin, v.N)
			}
			to = end
		}
		a = array.NewSlice(l.ListValues(), from, to)
		defer a.Release()
	}
	for d, t := range types {
		if d != tensor.Bool && arrow.TypeEqual(a.DataType(), t) {
			v.DType = d
		}
	}
	if v.DType == tensor.Undefined {
		return v, fmt.Errorf("it is of %v, which no log has", a.DataType())
	}
	if a.Len() > 0 {
		d, size := a.Data(), v.DType.Size()
		v.bytes = d.Buffers()[1].Bytes()[d.Offset()*size : (d.Offset()+a.Len())*size]
	}
	return v, nil
}

func (r *rows) layout() *Layout {
	l := &Layout{}
	for _, v := range r.data {
		l.Obs = append(l.Obs, v.Column)
	}
	n := len(l.Obs) - 1
	l.Obs, l.Action = l.Obs[:n], l.Obs[n]
	return l
}

// each gives the rows one by one.
func (r *rows) each(l *Layout, do func(*Layout, *Row) error) error {
	var row Row
	text := func(c, i int) string { return r.arrays[c].(*array.String).Value(i) }
	flag := func(c, i int) bool { return r.arrays[c].(*array.Uint8).Value(i) != 0 }
	float := func(c, i int) float64 { return r.arrays[c].(*array.Float64).Value(i) }
	last := len(r.arrays) - len(tail)
	for i := range r.n {
		row = Row{
			Time: int64(r.arrays[0].(*array.Timestamp).Value(i)), Request: text(1, i), Row: r.arrays[2].(*array.Int32).Value(i), Version: text(3, i), Digest: text(4, i), Sequence: text(5, i), Start: flag(6, i), End: flag(7, i),
			Data: row.Data[:0], LogProb: float(last, i), Reward: float(last+1, i), Terminated: flag(last+2, i), Truncated: flag(last+3, i),
		}
		for _, v := range r.data {
			row.Data = append(row.Data, v.bytes[i*v.Size():(i+1)*v.Size()]...)
		}
		if err := do(l, &row); err != nil {
			return fmt.Errorf("row %d: %w", i, err)
		}
	}
	return nil
}
