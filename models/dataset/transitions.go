package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// A data set of episodes (agents/offline) is a folder with this file, whose column kind is 0 in
// transitions.
const (
	episodesFile = "dataset.json"
	kindColumn   = "kind"
)

// holdsEpisodes reports whether a path is a data set of episodes.
func holdsEpisodes(path string) bool {
	_, err := os.Stat(filepath.Join(path, episodesFile))
	return err == nil
}

// transitions is a table of episodes without the rows behind their last steps, in which nothing was
// done.
type transitions struct {
	Table
	// rows are those of each block that are transitions.
	rows [][]int
}

func newTransitions(t Table) (Table, error) {
	kind := slices.IndexFunc(t.Columns(), func(c Column) bool { return c.Name == kindColumn })
	if kind < 0 {
		return nil, fmt.Errorf("there is no column %q, which data sets of episodes have", kindColumn)
	}
	x := &transitions{Table: t}
	for b := range t.Blocks() {
		raw, err := t.Read(b, []int{kind})
		if err != nil {
			return nil, err
		}
		list := []int{}
		for i, k := range raw[0] {
			if k == 0 {
				list = append(list, i)
			}
		}
		x.rows = append(x.rows, list)
	}
	return x, nil
}

// Blocks implements Table.
func (x *transitions) Blocks() []int {
	out := make([]int, len(x.rows))
	for b, list := range x.rows {
		out[b] = len(list)
	}
	return out
}

// Read implements Table.
func (x *transitions) Read(block int, columns []int) ([][]float64, error) {
	raw, err := x.Table.Read(block, columns)
	if err != nil {
		return nil, err
	}
	cols := x.Columns()
	for k, c := range columns {
		w := cols[c].Width
		for to, from := range x.rows[block] {
			copy(raw[k][to*w:(to+1)*w], raw[k][from*w:(from+1)*w])
		}
		raw[k] = raw[k][:len(x.rows[block])*w]
	}
	return raw, nil
}
