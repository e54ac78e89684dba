package logs

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// dailyColumns are those of a world's stats.csv that are of no agent and of no product.
var dailyColumns = []string{
	"activity_level", "breach_level", "n_breaches", "n_contracts_cancelled", "n_contracts_concluded", "n_contracts_dropped", "n_contracts_erred", "n_contracts_executed", "n_contracts_nullified", "n_contracts_nullified_now",
	"n_contracts_nullified_price", "n_contracts_nullified_quantity", "n_contracts_signed", "n_negotiation_failed", "n_negotiation_rounds_failed", "n_negotiation_rounds_successful", "n_negotiation_successful", "n_negotiations",
	"n_registered_negotiations_after", "n_registered_negotiations_before",
}

// aggregates are what agg_stats.csv has of each column and of step; their names follow that of the
// column.
var aggregates = []string{"_mean", "max", "min", "_sum", "_var", "_median"}

// aggregateColumns are those of agg_stats.csv.
func aggregateColumns() (list []string) {
	for _, name := range append(slices.Clone(dailyColumns), "step") {
		for _, a := range aggregates {
			list = append(list, name+a)
		}
	}
	for _, name := range append(slices.Clone(dailyColumns), "path", "step") {
		if name != "path" {
			name += "_final"
		}
		list = append(list, name)
	}
	return list
}

// dailyStats writes stats.csv of the tournament, a row for each day of each world, and
// agg_stats.csv, a row for each world.
func (t *Tournament) dailyStats(results []*result) error {
	w, err := newTable(t.dir, "stats.csv", append(slices.Clone(dailyColumns), "path", "step", "world")...)
	if err != nil {
		return err
	}
	all, err := newTable(t.dir, "agg_stats.csv", aggregateColumns()...)
	if err != nil {
		return errors.Join(err, w.close())
	}
	for _, r := range results {
		if err = t.worldDays(w, all, r); err != nil {
			break
		}
	}
	return errors.Join(err, w.close(), all.close())
}

// worldDays adds the days of a world.
func (t *Tournament) worldDays(w, all *table, r *result) error {
	path := filepath.Join(t.dir, r.Paths, "stats.csv")
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	in := csv.NewReader(f)
	head, err := in.Read()
	days := make([]column, len(dailyColumns)+1)
	for day := 0; err == nil; day++ {
		var row []string
		if row, err = in.Read(); err != nil {
			break
		}
		for i, name := range dailyColumns {
			k := slices.Index(head, name)
			if k < 0 {
				return fmt.Errorf("%s: there is no column %s", path, name)
			}
			w.text(row[k])
			if err := days[i].add(row[k]); err != nil {
				return fmt.Errorf("%s: row %d, column %s: %w", path, day+1, name, err)
			}
		}
		if err := days[len(days)-1].add(strconv.Itoa(day)); err != nil {
			return err
		}
		w.text(r.Paths)
		w.whole(day)
		w.text(r.RunID)
		w.end()
	}
	if !errors.Is(err, io.EOF) {
		return fmt.Errorf("%s: %w", path, err)
	}
	for i := range days {
		days[i].aggregate(all)
	}
	for i := range days {
		if i == len(days)-1 {
			all.text(r.Paths)
		}
		all.text(days[i].last)
	}
	all.end()
	return nil
}

// column has the numbers of a column, of which last is as it was written.
type column struct {
	values []float64
	last   string
	// real says that not all are whole, as they are written.
	real bool
}

func (c *column) add(text string) error {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return fmt.Errorf("%q is no number", text)
	}
	c.values, c.last = append(c.values, x), text
	c.real = c.real || strings.ContainsAny(text, ".eEn")
	return nil
}

// aggregate writes the aggregates; the variance is that of a sample.
func (c *column) aggregate(t *table) {
	list := slices.Sorted(slices.Values(c.values))
	n, sum, squares := len(list), 0.0, 0.0
	if n == 0 {
		t.raw(strings.Repeat(",", len(aggregates)-1))
		return
	}
	for _, x := range c.values {
		sum += x
	}
	mean := sum / float64(n)
	for _, x := range c.values {
		squares += float64((x - mean) * (x - mean))
	}
	number := t.number
	if !c.real {
		number = func(x float64) { t.whole(int(x)) }
	}
	t.number(mean)
	number(list[n-1])
	number(list[0])
	number(sum)
	t.number(squares / float64(n-1))
	t.number((list[(n-1)/2] + list[n/2]) / 2)
}
