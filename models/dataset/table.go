package dataset

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Table is a source of rows in blocks. It is safe for concurrent use.
type Table interface {
	// Columns lists the columns in file order.
	Columns() []Column
	// Blocks returns the number of rows of each block.
	Blocks() []int
	// Read returns the given columns of one block, each as rows × width float64 values, row-major.
	// A missing value is NaN.
	Read(block int, columns []int) ([][]float64, error)
	// Name is the file's name, for messages.
	Name() string
	Close() error
}

// Column describes one column: Width values per row (1 for plain columns, more for fixed-size
// lists).
type Column struct {
	Name  string
	Width int
	// Err says why the column cannot be read as numbers; it matters only when the column is used.
	Err error
}

// Open opens a table: a .parquet, .arrow, .feather, .csv or .csv.gz file, or a folder or glob
// pattern of such files, which are then read as one table in name order and must have the same
// columns. Of a data set of episodes (agents/offline) the rows are its transitions.
func Open(path string) (Table, error) {
	files, err := Files(path)
	if err != nil {
		return nil, fmt.Errorf("open data %q: %w", path, err)
	}
	var parts []Table
	for _, f := range files {
		t, err := openFile(f)
		if err != nil {
			for _, p := range parts {
				p.Close()
			}
			return nil, fmt.Errorf("open data %q: %w", f, err)
		}
		parts = append(parts, t)
	}
	t := parts[0]
	if len(parts) > 1 {
		if t, err = concat(path, parts); err != nil {
			return nil, err
		}
	}
	if !holdsEpisodes(path) {
		return t, nil
	}
	x, err := newTransitions(t)
	if err != nil {
		t.Close()
		return nil, fmt.Errorf("open data %q: %w", path, err)
	}
	return x, nil
}

func openFile(path string) (Table, error) {
	low := strings.ToLower(path)
	switch {
	case strings.HasSuffix(low, ".parquet"):
		return openParquet(path)
	case strings.HasSuffix(low, ".arrow"), strings.HasSuffix(low, ".feather"):
		return openArrow(path)
	case strings.HasSuffix(low, ".csv"), strings.HasSuffix(low, ".csv.gz"):
		return openCSV(path)
	}
	return nil, errors.New("the extension is none of .parquet, .arrow, .feather, .csv, .csv.gz")
}

// Files lists the files that [Open] reads for a path, in order.
func Files(path string) ([]string, error) {
	path, err := objects.Local(path)
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(path, "*?[") {
		files, err := filepath.Glob(path)
		if err == nil && len(files) == 0 {
			err = errors.New("the pattern matches no file")
		}
		return files, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		low := strings.ToLower(e.Name())
		for _, ext := range []string{".parquet", ".arrow", ".feather", ".csv", ".csv.gz"} {
			if strings.HasSuffix(low, ext) && !e.IsDir() {
				files = append(files, filepath.Join(path, e.Name()))
				break
			}
		}
	}
	if len(files) == 0 {
		return nil, errors.New("the folder holds no .parquet, .arrow, .feather or .csv file")
	}
	return files, nil
}

// joined presents several tables as one.
type joined struct {
	name   string
	parts  []Table
	blocks []int
	at     [][2]int
}

func concat(name string, parts []Table) (Table, error) {
	j := &joined{name: name, parts: parts}
	for i, p := range parts {
		if !slices.EqualFunc(p.Columns(), parts[0].Columns(), func(a, b Column) bool { return a.Name == b.Name && a.Width == b.Width }) {
			j.Close()
			return nil, fmt.Errorf("open data %q: the columns of %s differ from those of %s", name, p.Name(), parts[0].Name())
		}
		for b, n := range p.Blocks() {
			j.blocks = append(j.blocks, n)
			j.at = append(j.at, [2]int{i, b})
		}
	}
	return j, nil
}

func (j *joined) Columns() []Column { return j.parts[0].Columns() }
func (j *joined) Blocks() []int     { return j.blocks }
func (j *joined) Name() string      { return j.name }

func (j *joined) Read(block int, columns []int) ([][]float64, error) {
	at := j.at[block]
	return j.parts[at[0]].Read(at[1], columns)
}

func (j *joined) Close() error {
	var errs []error
	for _, p := range j.parts {
		errs = append(errs, p.Close())
	}
	return errors.Join(errs...)
}
