package bars

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"
)

// csvTable reads a text file with a header line row by row.
type csvTable struct {
	f      input
	r      *csv.Reader
	header []string
	row    []string
	first  bool // row is the first one, which was read for want of a header
	// semicolons says that they separate the cells.
	semicolons bool
}

// openCSV opens a file; header stands for the header line of files without one. The delimiter is
// the one of comma, semicolon and tab that is most frequent in the first line.
func openCSV(path string, header []string) (_ table, err error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	var in io.Reader = f
	if strings.HasSuffix(strings.ToLower(path), ".gz") {
		if in, err = gzip.NewReader(bufio.NewReaderSize(f, 1<<16)); err != nil {
			return nil, fmt.Errorf("unpack gzip: %w", err)
		}
	}
	text, first, err := plainText(in)
	if err != nil {
		return nil, err
	}
	t := &csvTable{f: f, r: csv.NewReader(text), header: header}
	t.r.Comma = delimiter(first)
	t.semicolons = t.r.Comma == ';'
	t.r.ReuseRecord = true
	t.r.TrimLeadingSpace = true
	if header != nil {
		t.r.FieldsPerRecord = len(header)
		return t, nil
	}
	row, err := t.r.Read()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the file is empty")
	}
	if err != nil {
		return nil, err
	}
	if isWide(row) {
		return newWideTable(t, row)
	}
	if t.header = headless(row); t.header != nil {
		t.row, t.first = row, true
		return t, nil
	}
	t.header, err = columnNames(row)
	return t, err
}

// delimiter is the one of comma, semicolon and tab that is most frequent in a line.
func delimiter(line string) rune {
	best := ','
	for _, c := range []rune{';', '\t'} {
		if strings.Count(line, string(c)) > strings.Count(line, string(best)) {
			best = c
		}
	}
	return best
}

// columnNames checks the names of a header line. Columns without a name are numbered, such as the
// index that pandas writes.
func columnNames(row []string) ([]string, error) {
	var header []string
	for i, name := range row {
		if !utf8.ValidString(name) || strings.ContainsRune(name, 0) {
			return nil, errors.New("the file is no table of text: there are other bytes in its first line")
		}
		name = strings.Clone(strings.TrimSpace(name))
		for _, other := range header {
			if other == name && name != "" {
				return nil, fmt.Errorf("the column %q is there twice", name)
			}
		}
		if name == "" {
			name = fmt.Sprintf("column %d", i+1)
		}
		header = append(header, name)
	}
	return header, nil
}

func (t *csvTable) Header() []string { return t.header }
func (t *csvTable) Select([]int)     {}
func (t *csvTable) Close() error     { return t.f.Close() }

func (t *csvTable) Next() (err error) {
	if t.first {
		t.first = false
		return nil
	}
	t.row, err = t.r.Read()
	// Wind ends its tables with a line that names it.
	if len(t.row) > 0 && strings.HasPrefix(t.row[0], "数据来源") {
		return io.EOF
	}
	return err
}

func (t *csvTable) Line() int {
	line, _ := t.r.FieldPos(0)
	return line
}

func (t *csvTable) Text(column int) (string, error) { return strings.TrimSpace(t.row[column]), nil }

func (t *csvTable) Number(column int) (float64, error) {
	return number(strings.TrimSpace(t.row[column]), t.semicolons)
}

func (t *csvTable) Time(column int, c *clock) (time.Time, error) {
	return c.parse(strings.TrimSpace(t.row[column]))
}
