package bars

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// wideTable reads a text file whose columns are those of several symbols, as pandas writes columns of
// two levels and yfinance therefore its downloads: a line of fields and one of symbols, in either
// order, then a line with the name of the time alone.
//
//	Price,Close,Close,Open,Open
//	Ticker,AAPL,MSFT,AAPL,MSFT
//	Date,,,,
//	2024-01-02,185.6,370.9,187.2,373.9
//
// Its rows are those of one symbol and time that have a value, with the columns of a table of rows.
type wideTable struct {
	csv     *csvTable
	header  []string // the time, the symbol, and the fields
	symbols []string
	at      [][]int // by symbol, the place in a line of each field, -1 where there is none
	symbol  int     // of the row
}

// wideKey is the column of symbols.
const wideKey = "Ticker"

// levels are the names that the lines of fields and of symbols begin with.
var levels = struct{ fields, symbols []string }{[]string{"Price", "Attributes"}, []string{wideKey, "Symbols"}}

// isWide reports whether a line is the first of a wide table.
func isWide(first []string) bool {
	if len(first) < 2 {
		return false
	}
	// Without a name of the level its names are repeated, which no other header does.
	twice := first[0] == "" && slices.Contains(first[2:], first[1])
	return twice || slices.Contains(levels.fields, first[0]) || slices.Contains(levels.symbols, first[0]) && len(first) > 2 && slices.Contains(first[2:], first[1])
}

// newWideTable reads the two other lines of the header.
func newWideTable(csv *csvTable, first []string) (*wideTable, error) {
	lines := [][]string{slices.Clone(first)}
	for len(lines) < 3 {
		row, err := csv.r.Read()
		if errors.Is(err, io.EOF) {
			return nil, errors.New("the header has three lines, of fields, of symbols and of the name of the time, and the file ends in it")
		}
		if err != nil {
			return nil, err
		}
		lines = append(lines, slices.Clone(row))
	}
	for _, line := range lines {
		for i := range line {
			line[i] = strings.TrimSpace(line[i])
		}
	}
	fields, symbols := lines[0], lines[1]
	if slices.Contains(levels.symbols, fields[0]) || slices.Contains(levels.fields, symbols[0]) || !slices.ContainsFunc(fields[1:], isPrice) {
		fields, symbols = symbols, fields
	}
	blank := func(cell string) bool { return cell == "" }
	if !slices.ContainsFunc(fields[1:], isPrice) || slices.ContainsFunc(symbols[1:], blank) || !blank(strings.Join(lines[2][1:], "")) {
		return nil, fmt.Errorf("the header begins like that of a table of several symbols (%s): expected a line of fields such as Open and Close, one of symbols, and one with the name of the time alone", strings.Join(first[:2], ","))
	}
	name := lines[2][0]
	if name == "" {
		name = "Date"
	}
	t := &wideTable{csv: csv, header: []string{name, wideKey}}
	for i := 1; i < len(fields); i++ {
		if !slices.Contains(t.header[2:], fields[i]) {
			t.header = append(t.header, fields[i])
		}
		if !slices.Contains(t.symbols, symbols[i]) {
			t.symbols = append(t.symbols, symbols[i])
		}
	}
	t.at = make([][]int, len(t.symbols))
	for s := range t.at {
		t.at[s] = slices.Repeat([]int{-1}, len(t.header)-2)
	}
	for i := 1; i < len(fields); i++ {
		place := &t.at[slices.Index(t.symbols, symbols[i])][slices.Index(t.header[2:], fields[i])]
		if *place >= 0 {
			return nil, fmt.Errorf("the column %s of %s is there twice", fields[i], symbols[i])
		}
		*place = i
	}
	t.symbol = len(t.symbols) - 1
	return t, nil
}

// isPrice reports whether a field is one that every bar has.
func isPrice(field string) bool { return plain(field) == "close" }

func (t *wideTable) Header() []string { return t.header }
func (t *wideTable) Select([]int)     {}
func (t *wideTable) Line() int        { return t.csv.Line() }
func (t *wideTable) Close() error     { return t.csv.Close() }

// Next goes to the next symbol that has a value, in this line or a later one.
func (t *wideTable) Next() error {
	for {
		if t.symbol++; t.symbol == len(t.symbols) {
			if err := t.csv.Next(); err != nil {
				return err
			}
			t.symbol = 0
		}
		for _, at := range t.at[t.symbol] {
			if at >= 0 && strings.TrimSpace(t.csv.row[at]) != "" {
				return nil
			}
		}
	}
}

func (t *wideTable) Text(column int) (string, error) {
	switch column {
	case 0:
		return t.csv.Text(0)
	case 1:
		return t.symbols[t.symbol], nil
	}
	if at := t.at[t.symbol][column-2]; at >= 0 {
		return t.csv.Text(at)
	}
	return "", nil
}

func (t *wideTable) Number(column int) (float64, error) {
	text, err := t.Text(column)
	if err != nil {
		return 0, err
	}
	return number(text, t.csv.semicolons)
}

func (t *wideTable) Time(column int, c *clock) (time.Time, error) {
	text, err := t.Text(column)
	if err != nil {
		return time.Time{}, err
	}
	return c.parse(text)
}
