package dashboard

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

const (
	// mostRows is the most rows of a chart of dates, mostTrades the most of a table.
	mostRows   = 2000
	mostTrades = 400
	// mostTable is the most rows that are read of a table.
	mostTable = 4 << 20
)

// ReportData is what a report of onnxrl evaluate has.
type ReportData struct {
	Item
	Title string `json:"title"`
	// Verdict is the report's first line, Warnings those below.
	Verdict    string              `json:"verdict"`
	Warnings   []string            `json:"warnings"`
	Benchmark  string              `json:"benchmark"`
	Strategies []ReportStrategy    `json:"strategies"`
	Curves     []Equity            `json:"curves"`
	Positions  *Holdings           `json:"positions"`
	Trades     []map[string]string `json:"trades"`
	// TradesOf counts all trades, of which Trades has the newest.
	TradesOf int `json:"trades_of"`
	// Limits says how often which limit has changed what was traded, where the report says so.
	Limits []string `json:"limits"`
}

// ReportStrategy is one of the compared, with the report's own numbers.
type ReportStrategy struct {
	Name    string                        `json:"name"`
	Role    string                        `json:"role"`
	Metrics map[string]performance.Number `json:"metrics"`
}

// Equity is the value of a strategy over time, and how far it lies below its greatest before.
type Equity struct {
	Strategy string               `json:"strategy"`
	Dates    []string             `json:"dates"`
	Value    []float64            `json:"value"`
	Drawdown []performance.Number `json:"drawdown"`
	// Rows is how many there are in the file.
	Rows int `json:"rows"`
}

// Holdings are weights over time, one list for each of Names.
type Holdings struct {
	Dates   []string               `json:"dates"`
	Names   []string               `json:"names"`
	Weights [][]performance.Number `json:"weights"`
	Rows    int                    `json:"rows"`
}

// Report reads a report.
func (b *Board) Report(id string) (*ReportData, error) {
	it, err := b.item(Report, id)
	if err != nil {
		return nil, err
	}
	text, err := readFile(filepath.Join(it.path, "summary.json"))
	if err != nil {
		return nil, fmt.Errorf("report %s: %w", id, err)
	}
	var s struct {
		Title   string `json:"title"`
		Verdict struct {
			Line string `json:"line"`
		} `json:"verdict"`
		Warnings   []string         `json:"warnings"`
		Benchmark  string           `json:"benchmark"`
		Strategies []ReportStrategy `json:"strategies"`
		Notes      []string         `json:"notes"`
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("report %s: summary.json: %w", id, err)
	}
	d := &ReportData{Item: it, Title: s.Title, Verdict: s.Verdict.Line, Warnings: append([]string{}, s.Warnings...), Benchmark: s.Benchmark, Strategies: append([]ReportStrategy{}, s.Strategies...), Trades: []map[string]string{}, Limits: []string{}}
	for _, n := range s.Notes {
		if len(n) > 14 && n[:14] == "Limits on risk" {
			d.Limits = append(d.Limits, n)
		}
	}
	if d.Curves, err = readEquity(filepath.Join(it.path, "equity.csv")); err != nil {
		return nil, fmt.Errorf("report %s: %w", id, err)
	}
	if d.Positions, err = readHoldings(filepath.Join(it.path, "positions.csv")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("report %s: %w", id, err)
	}
	if err := d.readTrades(filepath.Join(it.path, "trades.csv")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("report %s: %w", id, err)
	}
	return d, nil
}

// eachRow calls f with the cells of each row below the head, which the next call overwrites.
func eachRow(path string, head func(names []string) error, f func(row int, cells []string) error) error {
	file, err := openRegular(path)
	if err != nil {
		return err
	}
	defer file.Close()
	r := csv.NewReader(file)
	r.ReuseRecord = true
	names, err := r.Read()
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if err := head(slices.Clone(names)); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	for row := 0; ; row++ {
		cells, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && row == mostTable {
			err = fmt.Errorf("more than %d rows, which are too many to show", mostTable)
		}
		if err == nil {
			err = f(row, cells)
		}
		if err != nil {
			return fmt.Errorf("read %s: row %d: %w", path, row+2, err)
		}
	}
}

// columnsOf finds columns by their names.
func columnsOf(names []string, want ...string) ([]int, error) {
	at := make([]int, len(want))
	for i, w := range want {
		if at[i] = slices.Index(names, w); at[i] < 0 {
			return nil, fmt.Errorf("there is no column %s", w)
		}
	}
	return at, nil
}

// cell reads a number; an empty one is NaN.
func cell(text string) (float64, error) {
	if text == "" {
		return math.NaN(), nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no number", text)
	}
	return v, nil
}

func readEquity(path string) ([]Equity, error) {
	var at []int
	var list []Equity
	index := map[string]int{}
	err := eachRow(path, func(names []string) (err error) {
		at, err = columnsOf(names, "date", "strategy", "value", "drawdown")
		return err
	}, func(_ int, c []string) error {
		i, ok := index[c[at[1]]]
		if !ok {
			name := c[at[1]]
			i = len(list)
			index[name] = i
			list = append(list, Equity{Strategy: name})
		}
		v, err := cell(c[at[2]])
		if err != nil {
			return err
		}
		d, err := cell(c[at[3]])
		if err != nil {
			return err
		}
		e := &list[i]
		e.Dates, e.Value, e.Drawdown = append(e.Dates, c[at[0]]), append(e.Value, v), append(e.Drawdown, performance.Number(d))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i := range list {
		e := &list[i]
		e.Rows = len(e.Dates)
		keep := thin(e.Value, mostRows)
		e.Dates, e.Value, e.Drawdown = pick(e.Dates, keep), pick(e.Value, keep), pick(e.Drawdown, keep)
	}
	return list, nil
}

func readHoldings(path string) (*Holdings, error) {
	h := &Holdings{}
	var cash []float64
	err := eachRow(path, func(names []string) error {
		if len(names) < 2 || names[0] != "date" {
			return errors.New("expected the columns date and weights")
		}
		h.Names = names[1:]
		h.Weights = make([][]performance.Number, len(h.Names))
		return nil
	}, func(_ int, c []string) error {
		h.Dates = append(h.Dates, c[0])
		for i := range h.Names {
			v, err := cell(c[i+1])
			if err != nil {
				return err
			}
			h.Weights[i] = append(h.Weights[i], performance.Number(v))
			if i == 0 {
				cash = append(cash, v)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	h.Rows = len(h.Dates)
	keep := thin(cash, mostRows)
	h.Dates = pick(h.Dates, keep)
	for i := range h.Weights {
		h.Weights[i] = pick(h.Weights[i], keep)
	}
	return h, nil
}

// readTrades keeps the newest trades of the first strategy, which is the judged one.
func (d *ReportData) readTrades(path string) error {
	var names []string
	strategy, first := -1, ""
	ring := make([]map[string]string, 0, mostTrades)
	err := eachRow(path, func(head []string) error {
		names = head
		strategy = slices.Index(head, "strategy")
		return nil
	}, func(row int, c []string) error {
		if strategy >= 0 {
			if row == 0 {
				first = c[strategy]
			}
			if c[strategy] != first {
				return nil
			}
		}
		m := map[string]string{}
		for i, n := range names {
			m[n] = c[i]
		}
		if len(ring) < mostTrades {
			ring = append(ring, m)
		} else {
			ring[d.TradesOf%mostTrades] = m
		}
		d.TradesOf++
		return nil
	})
	if err != nil {
		return err
	}
	for i := range ring {
		// The newest first.
		d.Trades = append(d.Trades, ring[((d.TradesOf-1-i)%len(ring)+len(ring))%len(ring)])
	}
	return nil
}
