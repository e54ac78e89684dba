package app

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// marketFiles writes the data that pages ask of the reader, made up: 16 American stocks and four A
// shares, of two of which another vendor has older bars. There is a bar a week, in so many years
// that the splits of qtmrl and ashare have data, and walk-forwards one fold.
func marketFiles(t *testing.T, dir string) {
	t.Helper()
	day := func(year int) time.Time { return time.Date(year, 1, 5, 0, 0, 0, 0, time.UTC) }
	shares := []string{"000001.SZ", "300015.SZ", "600000.SH", "601398.SH"}
	for name, f := range sorted.All(map[string]struct {
		columns        string
		symbols        []string
		begins, ends   time.Time
		from, to       time.Time
		adjustedPrices bool
	}{
		"us16_daily.csv.gz": {
			columns: "adj_close", adjustedPrices: true,
			symbols: []string{"AAPL", "MSFT", "NVDA", "CVX", "OXY", "AAL", "UAL", "DAL", "CCL", "RCL", "WYNN", "LVS", "AXP", "BAC", "JNJ", "GOOGL"},
			begins:  day(2009), ends: day(2022), from: day(2009), to: day(2022),
		},
		"cn_daily.csv.gz": {columns: "preclose,adj_factor,is_st", symbols: shares, begins: day(2009), ends: day(2021).AddDate(0, 5, 0), from: day(2012), to: day(2022)},
		"older.csv.gz":    {columns: "preclose,adj_factor,is_st", symbols: shares[:2], begins: day(2009), ends: day(2021), from: day(2009), to: day(2013)},
	}) {
		var out bytes.Buffer
		z := gzip.NewWriter(&out)
		fmt.Fprintf(z, "date,symbol,open,high,low,close,volume,%s\n", f.columns)
		for i, symbol := range f.symbols {
			s, before := rng.New(uint64(i)).Stream(), 20.0
			for d := f.begins; d.Before(f.ends); d = d.AddDate(0, 0, 7) {
				// Moves stay within the limits of the exchanges, and prices are whole cents.
				open := cents(before * (1 + 0.01*(2*s.Float64()-1)))
				last := cents(open * (1 + 0.02*(2*s.Float64()-1)))
				volume := 1_000_000 + int(1_000_000*s.Float64())
				more := fmt.Sprintf("%.2f,1,0", before)
				if f.adjustedPrices {
					more = fmt.Sprintf("%.2f", last)
				}
				if !d.Before(f.from) && d.Before(f.to) {
					fmt.Fprintf(z, "%s,%s,%.2f,%.2f,%.2f,%.2f,%d,%s\n", d.Format(time.DateOnly), symbol, open, max(open, last), min(open, last), last, volume, more)
				}
				before = max(last, 5)
			}
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// cents rounds a price.
func cents(x float64) float64 { return math.Round(100*x) / 100 }
