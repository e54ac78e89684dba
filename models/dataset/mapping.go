package dataset

import (
	"fmt"
	"github.com/onnxrl/onnxrl/runtime/glob"
	"math"
	"strings"
	"sync/atomic"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Field is one tensor filled from columns: a model input, a target, or the sample weights.
type Field struct {
	// Name of the tensor; Columns are column names or globs (* matches any run of characters),
	// concatenated in the order given, a glob in file order.
	Name    string
	Columns []string
	// DType and Shape of one row; the columns' widths must add up to the shape's elements. A nil
	// shape accepts any width.
	DType tensor.DType
	Shape []int
	// Limits bound the elements of a row, in row-major order, where they are indices: class labels,
	// token ids. An element without a limit is nil, and so is Limits without any.
	Limits []*Limit
}

// Limit is what an element that serves as an index may be. A fraction counts as the whole number
// that a cast makes of it.
type Limit struct {
	// Min and Max are the smallest and the largest index; Also is one more number that is allowed,
	// if not nil.
	Min, Max int64
	Also     *int64
	// Of says what is indexed, for errors: "a class of output \"y\"".
	Of string
}

// check reports a number outside the limit.
func (l *Limit) check(v float64) error {
	if l == nil {
		return nil
	}
	i := int64(v)
	if i >= l.Min && i <= l.Max || l.Also != nil && i == *l.Also {
		return nil
	}
	also := ""
	if l.Also != nil {
		also = fmt.Sprintf(", or %d", *l.Also)
	}
	return fmt.Errorf("%g is not %s: expected %d to %d%s", v, l.Of, l.Min, l.Max, also)
}

// Missing says what happens to rows with a missing or non-finite value.
type Missing string

// The policies. Fail is the default: training data with holes is an error that names the place.
const (
	Fail Missing = "error"
	Drop Missing = "drop"
)

// fieldPlan is a resolved field.
type fieldPlan struct {
	Field
	cols  []int
	width int
}

// rowBytes is the size of one row.
func (p *fieldPlan) rowBytes() int { return p.DType.ByteLen(p.width) }

// Mapping is a table with its fields resolved to columns. It is safe for concurrent use; loaders of
// several parts share one, and with it the blocks that are kept in memory.
type Mapping struct {
	table   Table
	fields  []fieldPlan
	columns []int
	missing Missing
	// first is the number of rows before each block, with the total at the end; kept holds blocks
	// of tables that stay in memory.
	first []int
	kept  []atomic.Pointer[block]
}

// Map resolves fields against a table. Errors name the field, what was asked for and the columns
// there are.
func Map(t Table, fields []Field, missing Missing) (*Mapping, error) {
	if missing == "" {
		missing = Fail
	}
	if missing != Fail && missing != Drop {
		return nil, fmt.Errorf("map %s: policy %q for missing values, expected %q or %q", t.Name(), missing, Fail, Drop)
	}
	m := &Mapping{table: t, missing: missing, first: []int{0}, kept: make([]atomic.Pointer[block], len(t.Blocks()))}
	for i, n := range t.Blocks() {
		m.first = append(m.first, m.first[i]+n)
	}
	slot := map[int]int{}
	for _, f := range fields {
		p := fieldPlan{Field: f}
		for _, pat := range f.Columns {
			found := false
			for i, c := range t.Columns() {
				if !glob.Match(pat, c.Name) {
					continue
				}
				found = true
				if c.Err != nil {
					return nil, fmt.Errorf("map %s: column %q for %q: %w", t.Name(), c.Name, f.Name, c.Err)
				}
				if _, ok := slot[i]; !ok {
					slot[i] = len(m.columns)
					m.columns = append(m.columns, i)
				}
				p.cols = append(p.cols, slot[i])
				p.width += c.Width
			}
			if !found {
				return nil, fmt.Errorf("map %s: %q needs column %q; the file has %s", t.Name(), f.Name, pat, columnList(t))
			}
		}
		if f.Shape != nil {
			want, err := tensor.Len(f.Shape)
			if err != nil {
				return nil, fmt.Errorf("map %s: %q: %w", t.Name(), f.Name, err)
			}
			if want != p.width {
				return nil, fmt.Errorf("map %s: %q has shape %v per row, %d values, but its columns hold %d", t.Name(), f.Name, f.Shape, want, p.width)
			}
		}
		if f.Limits != nil && len(f.Limits) != p.width {
			return nil, fmt.Errorf("map %s: %q has %d limits for %d values per row", t.Name(), f.Name, len(f.Limits), p.width)
		}
		switch f.DType {
		case tensor.Float32, tensor.Float64, tensor.Int64, tensor.Int32, tensor.Bool:
		default:
			return nil, fmt.Errorf("map %s: %q is %v; columns can fill float32, float64, int64, int32 and bool", t.Name(), f.Name, f.DType)
		}
		m.fields = append(m.fields, p)
	}
	return m, nil
}

func columnList(t Table) string {
	var names []string
	for _, c := range t.Columns() {
		names = append(names, c.Name)
	}
	if len(names) > 24 {
		names = append(names[:24], fmt.Sprintf("… (%d in all)", len(t.Columns())))
	}
	return strings.Join(names, ", ")
}

// Rows returns the rows of the table, missing values or not.
// notFinite names a value that is no finite number; what is missing is NaN.
func notFinite(v float64) string {
	if math.IsNaN(v) {
		return "missing, or NaN"
	}
	return fmt.Sprint(v)
}

func (m *Mapping) Rows() int { return m.first[len(m.first)-1] }

// block is one block in memory: per field the rows' values in the field's type, and which rows are
// whole.
type block struct {
	fields []*tensor.Tensor
	valid  []bool
}

// read returns a block, from memory where it was kept. It is kept when keep is set.
func (m *Mapping) read(b int, keep bool) (*block, error) {
	if blk := m.kept[b].Load(); blk != nil {
		return blk, nil
	}
	blk, err := m.load(b)
	if err == nil && keep {
		m.kept[b].Store(blk)
	}
	return blk, err
}

// load reads a block and checks its values.
func (m *Mapping) load(b int) (*block, error) {
	raw, err := m.table.Read(b, m.columns)
	if err != nil {
		return nil, err
	}
	rows := m.table.Blocks()[b]
	out := &block{valid: make([]bool, rows)}
	for i := range out.valid {
		out.valid[i] = true
	}
	for _, f := range m.fields {
		t := tensor.New(f.DType, rows, f.width)
		at := 0
		for _, c := range f.cols {
			col := m.table.Columns()[m.columns[c]]
			for i, v := range raw[c] {
				r, k := i/col.Width, i%col.Width
				if math.IsNaN(v) || math.IsInf(v, 0) {
					if m.missing == Fail {
						return nil, fmt.Errorf("%s: row %d, column %q: %s, expected a finite number; mend it, or leave out rows without one (data.missing: %s)",
							m.table.Name(), m.first[b]+r+1, col.Name, notFinite(v), Drop)
					}
					out.valid[r] = false
					continue
				}
				err := fits(f.DType, v)
				if err == nil && f.Limits != nil {
					err = f.Limits[at+k].check(v)
				}
				if err != nil {
					return nil, fmt.Errorf("%s: row %d, column %q: %w", m.table.Name(), m.first[b]+r+1, col.Name, err)
				}
				put(t, r*f.width+at+k, v)
			}
			at += col.Width
		}
		out.fields = append(out.fields, t)
	}
	return out, nil
}

// fits reports a value that the field's type cannot hold exactly as meant.
func fits(d tensor.DType, v float64) error {
	switch d {
	case tensor.Int64, tensor.Int32:
		if v != math.Trunc(v) || math.Abs(v) > 1<<53 || d == tensor.Int32 && (v > math.MaxInt32 || v < math.MinInt32) {
			return fmt.Errorf("%g is not a whole number of type %v", v, d)
		}
	case tensor.Bool:
		if v != 0 && v != 1 {
			return fmt.Errorf("%g is not 0 or 1", v)
		}
	case tensor.Float32:
		if math.IsInf(float64(float32(v)), 0) {
			return fmt.Errorf("%g does not fit float32", v)
		}
	}
	return nil
}

// put writes a value that fits into element i of a tensor.
func put(t *tensor.Tensor, i int, v float64) {
	switch t.DType() {
	case tensor.Float32:
		t.Float32s()[i] = float32(v)
	case tensor.Float64:
		t.Float64s()[i] = v
	case tensor.Int64:
		t.Int64s()[i] = int64(v)
	case tensor.Int32:
		t.Int32s()[i] = int32(v)
	case tensor.Bool:
		t.Bools()[i] = v != 0
	}
}
