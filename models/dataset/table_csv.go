package dataset

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
)

// csvBlockRows is the number of lines of a CSV block.
const csvBlockRows = 8192

// csvTable reads runs of lines. Opening scans the file once and notes where each run starts, so
// that any block can be read without the ones before it.
type csvTable struct {
	path   string
	r      io.ReaderAt
	closer io.Closer
	size   int64
	comma  rune
	cols   []Column
	blocks []int
	start  []int64
	// first is the line number of the first row of each block, for messages.
	first []int
}

func openCSV(path string) (Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	t := &csvTable{path: path, r: f, closer: f, comma: ','}
	if info, err := f.Stat(); err == nil {
		t.size = info.Size()
	}
	if strings.HasSuffix(strings.ToLower(path), ".gz") {
		// Compressed text cannot be entered in the middle, so it is unpacked into memory.
		z, err := gzip.NewReader(f)
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		data, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("read gzip: %w", err)
		}
		t.r, t.closer, t.size = bytes.NewReader(data), nil, int64(len(data))
	}
	if err := t.scan(); err != nil {
		t.Close()
		return nil, err
	}
	return t, nil
}

func (t *csvTable) reader(from, to int64) *csv.Reader {
	r := csv.NewReader(io.NewSectionReader(t.r, from, to-from))
	r.Comma = t.comma
	r.ReuseRecord = true
	r.TrimLeadingSpace = true
	return r
}

func (t *csvTable) scan() error {
	head := make([]byte, 4096)
	n, _ := t.r.ReadAt(head, 0)
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	for _, c := range []rune{';', '\t'} {
		if strings.Count(line, string(c)) > strings.Count(line, string(t.comma)) {
			t.comma = c
		}
	}
	r := t.reader(0, t.size)
	header, err := r.Read()
	if err != nil {
		return fmt.Errorf("read csv header: %w", err)
	}
	seen := map[string]bool{}
	for i, name := range header {
		if i == 0 {
			name = strings.TrimPrefix(name, "\ufeff")
		}
		if seen[name] {
			return fmt.Errorf("read csv header: column %q appears twice", name)
		}
		seen[name] = true
		t.cols = append(t.cols, Column{Name: strings.Clone(name), Width: 1})
	}
	rows := 0
	for {
		pos := r.InputOffset()
		_, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("read csv: %w", err)
		}
		if rows%csvBlockRows == 0 {
			line, _ := r.FieldPos(0)
			t.start, t.blocks, t.first = append(t.start, pos), append(t.blocks, 0), append(t.first, line)
		}
		t.blocks[len(t.blocks)-1]++
		rows++
	}
	return nil
}

func (t *csvTable) Columns() []Column { return t.cols }
func (t *csvTable) Blocks() []int     { return t.blocks }
func (t *csvTable) Name() string      { return t.path }

func (t *csvTable) Close() error {
	if t.closer != nil {
		return t.closer.Close()
	}
	return nil
}

func (t *csvTable) Read(block int, columns []int) ([][]float64, error) {
	end := t.size
	if block+1 < len(t.start) {
		end = t.start[block+1]
	}
	r := t.reader(t.start[block], end)
	r.FieldsPerRecord = len(t.cols)
	out := make([][]float64, len(columns))
	for i := range out {
		out[i] = make([]float64, 0, t.blocks[block])
	}
	for row := range t.blocks[block] {
		rec, err := r.Read()
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", t.path, err)
		}
		for i, c := range columns {
			v, err := parseCell(rec[c])
			if err != nil {
				return nil, fmt.Errorf("read %s, line %d, column %q: %q is not a number", t.path, t.first[block]+row, t.cols[c].Name, rec[c])
			}
			out[i] = append(out[i], v)
		}
	}
	return out, nil
}

// parseCell reads a number; empty cells and the usual spellings of a missing value are NaN.
func parseCell(s string) (float64, error) {
	switch s {
	case "", "NA", "N/A", "null", "NULL", "None", "nan", "NaN":
		return math.NaN(), nil
	case "true", "True", "TRUE":
		return 1, nil
	case "false", "False", "FALSE":
		return 0, nil
	}
	return strconv.ParseFloat(s, 64)
}
