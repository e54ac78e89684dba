package bars

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// WrittenTicks is what [WriteTicks] has written.
type WrittenTicks struct {
	Rows, Symbols int
	Files         []File
}

// WriteTicks writes the ticks of a source, in the order of its rows, as a table in a file whose name
// ends in .parquet or .csv, which must not exist: datetime, symbol, price, volume in shares and
// amount in money, both of the tick alone, bid, ask, bid_size1, ask_size1 and so on as far as the
// source has them, and its extra columns. Rows that say nothing, such as snapshots before a first
// trade, are left out. Bars of what is written are those of the source. No more than a row group is
// in memory. A file that cannot be written whole is removed.
func WriteTicks(path string, s Source, symbols []string) (w WrittenTicks, err error) {
	ext := filepath.Ext(path)
	if ext != ".parquet" && ext != ".csv" {
		return w, fmt.Errorf("write ticks: %s: expected a name that ends in .parquet or .csv", path)
	}
	// Bars are not made; their size only says that the rows are ticks.
	s.Bars = "ticks=1"
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return w, err
	}
	defer func() {
		if err = errors.Join(err, f.Close()); err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(path))
		}
	}()
	var to tableWriter
	var values []float64
	var columns, list []tickColumn // of the table, and of the file that is being read
	var of *tickColumns
	seen := map[string]bool{}
	d, err := read(s, symbols, func(symbol string, t *Tick, c *tickColumns) error {
		if of != c {
			of, list = c, c.table(s.Extra)
			if to == nil {
				columns = list
				names := make([]string, len(columns))
				for i, c := range columns {
					names[i] = c.name
				}
				values = make([]float64, len(columns))
				if to, err = newTableWriter(f, ext, names); err != nil {
					return err
				}
			}
			if name := difference(columns, list); name != "" {
				return fmt.Errorf("only some of the files have the column %s", name)
			}
		}
		seen[symbol] = true
		w.Rows++
		for i, c := range list {
			values[i] = c.of(t)
		}
		return to.add(t.Time, symbol, values)
	}, 0)
	if err != nil {
		return w, err
	}
	if to == nil {
		return w, errors.New("the source has no ticks")
	}
	w.Symbols, w.Files = len(seen), d.Files
	return w, to.close()
}

// tickColumn is one of the numbers of a table of ticks.
type tickColumn struct {
	name string
	of   func(*Tick) float64
}

// table lists the numbers that files with these columns have.
func (c *tickColumns) table(extra []string) []tickColumn {
	list := []tickColumn{{"price", func(t *Tick) float64 { return t.Price }}}
	if c.volume >= 0 {
		list = append(list, tickColumn{"volume", func(t *Tick) float64 { return t.Volume }})
	}
	if c.amount >= 0 {
		list = append(list, tickColumn{"amount", func(t *Tick) float64 { return t.Amount }})
	}
	if c.bid >= 0 {
		list = append(list, tickColumn{"bid", func(t *Tick) float64 { return t.Bid }})
	}
	if c.ask >= 0 {
		list = append(list, tickColumn{"ask", func(t *Tick) float64 { return t.Ask }})
	}
	for i := range c.sizes {
		name := fmt.Sprintf("bid_size%d", i+1)
		if i >= c.bids {
			name = fmt.Sprintf("ask_size%d", i-c.bids+1)
		}
		list = append(list, tickColumn{name, func(t *Tick) float64 { return t.Sizes[i] }})
	}
	for i, name := range extra {
		list = append(list, tickColumn{name, func(t *Tick) float64 { return t.Extra[len(t.Extra)-len(extra)+i] }})
	}
	return list
}

// difference is the name of a column that one of two tables lacks, empty where there is none.
func difference(a, b []tickColumn) string {
	for i := range max(len(a), len(b)) {
		switch {
		case i >= len(a):
			return b[i].name
		case i >= len(b) || a[i].name != b[i].name:
			return a[i].name
		}
	}
	return ""
}
