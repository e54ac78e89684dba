package bars

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestWriteTicks: bars of the ticks that were written are those of the source, to the bit, whatever
// units, totals, books and other columns it has.
func TestWriteTicks(t *testing.T) {
	cases := 0
	for name, x := range sorted.All(map[string]struct {
		header string
		lines  []string
		change func(*Source)
		has    string // the header that is written
	}{
		"trades": {"time,symbol,price,volume", []string{"09:30:00 10 100", "09:30:01 10.5 200", "09:30:01 10.25 50", "09:31:00 11 1"}, nil, "datetime,symbol,price,volume"},
		"totals in lots": {"time,symbol,price,cum_volume,cum_amount,手数", []string{"09:30:00 10 100 1000 1", "09:30:01 10.5 300 3100 2", "09:31:02 10.5 300 3100 2"}, func(s *Source) {
			s.Columns.Volume, s.Columns.Amount, s.Cumulative = "cum_volume", "cum_amount", true
		}, "datetime,symbol,price,volume,amount"},
		"a book": {"time,symbol,price,volume,bid,ask,bid_size1,bid_size2,ask_size1,mood", []string{"09:30:00 10 100 9.9 10.1 5 6 7 0.5", "09:30:03 10 0 9.8 10.2 1 2 3 -1"}, func(s *Source) {
			s.Extra = []string{"mood"}
		}, "datetime,symbol,price,volume,bid,ask,bid_size1,bid_size2,ask_size1,mood"},
	}) {
		s := DefaultSource()
		s.Path, s.Bars = ticksCSV(t, x.header, x.lines...), "1m"
		if x.change != nil {
			x.change(&s)
		}
		want, err := Read(s, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for _, ext := range []string{".parquet", ".csv"} {
			out := filepath.Join(t.TempDir(), "ticks"+ext)
			w, err := WriteTicks(out, s, nil)
			if err != nil || w.Rows != len(x.lines) || w.Symbols != 1 {
				t.Fatalf("%s%s: %+v, %v", name, ext, w, err)
			}
			again := DefaultSource()
			again.Path, again.Bars, again.Extra = out, "1m", s.Extra
			got, err := Read(again, nil)
			if err != nil {
				t.Fatalf("%s%s: %v", name, ext, err)
			}
			if a, b := describe(got), describe(want); !reflect.DeepEqual(a, b) || len(a) == 0 {
				t.Errorf("%s%s: %v, expected %v", name, ext, a, b)
			}
			for i, r := range got.Series[0].Records {
				if want := want.Series[0].Records[i]; r.Quote[Spread] != want.Quote[Spread] && want.Quote[Spread] == want.Quote[Spread] || !reflect.DeepEqual(r.Extra, want.Extra) {
					t.Errorf("%s%s: bar %d is %+v, expected %+v", name, ext, i, r, want)
				}
			}
			if ext == ".csv" {
				text, err := os.ReadFile(out)
				if err != nil {
					t.Fatal(err)
				}
				if header, _, _ := strings.Cut(string(text), "\n"); header != x.has {
					t.Errorf("%s: the header is %s", name, header)
				}
			}
			if _, err := WriteTicks(out, s, nil); err == nil || !strings.Contains(err.Error(), "exists") {
				t.Errorf("%s%s: written twice: %v", name, ext, err)
			}
			cases++
		}
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
}

// TestWriteTicksFails: nothing is left of what could not be written whole.
func TestWriteTicksFails(t *testing.T) {
	good := ticksCSV(t, "time,symbol,price,volume", "09:30:00 10 100")
	bad := filepath.Join(filepath.Dir(good), "z.csv")
	for text, says := range sorted.All(map[string]string{
		"time,symbol,price\n2024-03-05T09:30:00,A,10\n":          "only some of the files have the column volume",
		"time,symbol,price,volume\n2024-03-05T09:30:00,A,x,1\n":  `column "price"`,
		"time,symbol,price,volume\n2024-03-03T09:30:00,A,10,1\n": "earlier than the row before",
	}) {
		if err := os.WriteFile(bad, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, out := DefaultSource(), filepath.Join(t.TempDir(), "ticks.parquet")
		s.Path = filepath.Dir(good)
		_, err := WriteTicks(out, s, nil)
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, expected %q", err, says)
		}
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Errorf("%s: a file is left: %v", says, err)
		}
	}
	s := DefaultSource()
	s.Path = good
	if _, err := WriteTicks("ticks.txt", s, nil); err == nil || !strings.Contains(err.Error(), ".parquet or .csv") {
		t.Error(err)
	}
}
