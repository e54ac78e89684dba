package logs

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// table is a file of comma separated values, written row by row.
type table struct {
	file *os.File
	out  *bufio.Writer
	row  []byte
	err  error
}

// newTable begins a file with a head.
func newTable(dir, name string, columns ...string) (*table, error) {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return nil, err
	}
	t := &table{file: f, out: bufio.NewWriterSize(f, 1<<16)}
	for _, c := range columns {
		t.text(c)
	}
	t.end()
	return t, nil
}

// text adds a cell.
func (t *table) text(s string) {
	if strings.ContainsAny(s, ",\"\r\n") {
		t.row = append(t.row, '"')
		t.row = append(t.row, strings.ReplaceAll(s, `"`, `""`)...)
		t.row = append(t.row, '"', ',')
		return
	}
	t.row = append(append(t.row, s...), ',')
}

// quoted adds a cell that has commas and no quotation marks.
func (t *table) quoted(b []byte) {
	t.row = append(append(append(t.row, '"'), b...), '"', ',')
}

// raw adds cells that are written out, with the commas between them.
func (t *table) raw(s string) { t.row = append(append(t.row, s...), ',') }

// whole adds a whole number.
func (t *table) whole(x int) { t.row = append(strconv.AppendInt(t.row, int64(x), 10), ',') }

// number adds a number, and nothing for NaN.
func (t *table) number(x float64) {
	if !math.IsNaN(x) {
		t.row = appendFloat(t.row, x)
	}
	t.row = append(t.row, ',')
}

// flag adds True or False.
func (t *table) flag(b bool) { t.raw(python(b)) }

// end writes the row.
func (t *table) end() {
	if n := len(t.row); n > 0 {
		t.row[n-1] = '\n'
	}
	if _, err := t.out.Write(t.row); t.err == nil {
		t.err = err
	}
	t.row = t.row[:0]
}

// close writes what is left.
func (t *table) close() error {
	if err := t.out.Flush(); t.err == nil {
		t.err = err
	}
	if err := t.file.Close(); t.err == nil {
		t.err = err
	}
	return t.err
}

// appendFloat writes a number as Python does: the fewest digits that give it again.
func appendFloat(to []byte, x float64) []byte {
	size := math.Abs(x)
	switch {
	case math.IsInf(x, 1):
		return append(to, "inf"...)
	case math.IsInf(x, -1):
		return append(to, "-inf"...)
	case math.IsNaN(x):
		return append(to, "nan"...)
	case size != 0 && (size < 1e-4 || size >= 1e16):
		return strconv.AppendFloat(to, x, 'e', -1, 64)
	}
	from := len(to)
	to = strconv.AppendFloat(to, x, 'f', -1, 64)
	for _, c := range to[from:] {
		if c == '.' {
			return to
		}
	}
	return append(to, ".0"...)
}

func python(b bool) string {
	if b {
		return "True"
	}
	return "False"
}
