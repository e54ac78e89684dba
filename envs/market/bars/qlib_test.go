package bars

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// quotes are rows of two symbols with factors, a suspended day and days on which one of them is
// missing.
const quotes = `date,symbol,open,high,low,close,volume,adj_factor,turn,suspended
2020-01-02,600000.SH,10,10.5,9.9,10.2,1000,1,0.5,0
2020-01-03,600000.SH,10.2,10.3,10,10.1,1100,1,0.6,0
2020-01-06,600000.SH,5.05,5.2,5,5.1,2300,2,0.7,0
2020-01-07,600000.SH,5.1,5.1,5.1,5.1,0,2,,1
2020-01-08,600000.SH,5.1,5.3,5.05,5.25,2500,2,0.4,0
2020-01-03,300001.SZ,20,21,19,20.5,500,1.5,1,0
2020-01-07,300001.SZ,20.5,22,20,21.9,700,1.5,2,0
`

func quotesFile(t *testing.T) Source {
	path := filepath.Join(t.TempDir(), "quotes.csv")
	if err := os.WriteFile(path, []byte(quotes), 0o666); err != nil {
		t.Fatal(err)
	}
	s := DefaultSource()
	s.Path, s.Extra = path, []string{"turn"}
	return s
}

func written(t *testing.T) string {
	t.Helper()
	d, err := Read(quotesFile(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(t.TempDir(), "qlib")
	if err := WriteQlib(root, "day", d); err != nil {
		t.Fatal(err)
	}
	return root
}

// Rows that are written as a Qlib folder come back: adjusted prices in float32, and none where a
// day has no trading.
func TestQlibFolder(t *testing.T) {
	root := written(t)
	s := DefaultSource()
	s.Path, s.Extra = root, []string{"turn", "factor"}
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text := d.Adjustment.String(); text != "prices: adjusted already, as Qlib stores them" || !d.HasVolume || len(d.Series) != 2 || len(d.Files[0].SHA256) != 64 || d.Files[0].Rows != 6 {
		t.Errorf("%s, %+v", text, d.Files)
	}
	want := map[string][][]float64{ // day of January, open, high, low, close, volume, turn, factor
		"300001.SZ": {{3, 30, 31.5, 28.5, 30.75, 500 / 1.5, 1, 1.5}, {7, 30.75, 33, 30, 32.85, 700 / 1.5, 2, 1.5}},
		"600000.SH": {{2, 10, 10.5, 9.9, 10.2, 1000, 0.5, 1}, {3, 10.2, 10.3, 10, 10.1, 1100, 0.6, 1}, {6, 10.1, 10.4, 10, 10.2, 1150, 0.7, 2}, {8, 10.2, 10.6, 10.1, 10.5, 1250, 0.4, 2}},
	}
	n := 0
	for _, series := range d.Series {
		rows := want[series.Symbol]
		if len(rows) != len(series.Records) {
			t.Fatalf("%s has %d rows", series.Symbol, len(series.Records))
		}
		for i, r := range series.Records {
			if at := time.Date(2020, 1, int(rows[i][0]), 0, 0, 0, 0, time.UTC); !r.Time.Equal(at) || r.Factor != 1 {
				t.Errorf("%s: %v, factor %v, expected %v", series.Symbol, r.Time, r.Factor, at)
			}
			for k, v := range append([]float64{r.Open, r.High, r.Low, r.Close, r.Volume}, r.Extra...) {
				if v != float64(float32(rows[i][k+1])) {
					t.Errorf("%s, row %d, number %d: %v, expected %v", series.Symbol, i, k, v, float32(rows[i][k+1]))
				}
				n++
			}
		}
	}
	raw, _, err := Clean(d.Series[1], DefaultRules(), "keep")
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{10, 10.5, 9.9, 10.2, 1000, 1}, {10.2, 10.3, 10, 10.1, 1100, 1}, {5.05, 5.2, 5, 5.1, 2300, 2}, {5.1, 5.3, 5.05, 5.25, 2500, 2}} {
		if q := raw.Records[i].Quote; !slices.Equal(q[RawOpen:PrevClose], want) || !slices.Contains(raw.Quoted, RawClose) {
			t.Errorf("row %d: quoted at %v, expected %v", i, q[RawOpen:PrevClose], want)
		}
		n += 6
	}
	if n != 66 {
		t.Errorf("compared %d numbers", n)
	}
	// The files of another symbol do not matter to a reader that does not ask for it.
	if err := os.WriteFile(filepath.Join(root, "features/600000.sh/close.day.bin"), []byte("x"), 0o666); err != nil {
		t.Fatal(err)
	}
	if one, err := Read(s, []string{"300001.SZ"}); err != nil || len(one.Series[0].Records) != 2 || one.Files[0].SHA256 == d.Files[0].SHA256 {
		t.Error(err)
	}
}

// TestQlibFactors: a row whose factor is blank, negative, 0 or infinite is written with that of the
// row before in time, as Clean reads it, and a first row without one is refused.
func TestQlibFactors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "factors.csv")
	const head = "date,symbol,open,high,low,close,volume,adj_factor,amount\n"
	rows := []string{
		"2023-01-03,A,100,101,99,100,100,-1,10000", "2023-01-02,A,10,10.1,9.9,10,1000,0.5,10000", "2023-01-04,A,100,101,99,100,100,0,10000", "2023-01-05,A,100,101,99,100,100,,10000",
		"2023-01-06,A,100,101,99,100,100,Inf,10000", "2023-01-09,A,100,101,99,100,100,0.05,10000", "2023-01-10,A,,,,,,,",
	}
	write := func(rows ...string) (*Data, string, error) {
		if err := os.WriteFile(path, []byte(head+strings.Join(rows, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		s := DefaultSource()
		s.Path, s.Extra = path, []string{"vwap"}
		d, err := Read(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(t.TempDir(), "qlib")
		return d, root, WriteQlib(root, "day", d)
	}
	d, root, err := write(rows...)
	if err != nil {
		t.Fatal(err)
	}
	if want := "A: rows without an adjustment, which have that of the row before: 4"; !slices.Contains(d.Notes, want) {
		t.Errorf("notes %q, expected %q", d.Notes, want)
	}
	want, _, err := Clean(d.Series[0], DefaultRules(), "inverse")
	if err != nil {
		t.Fatal(err)
	}
	s := DefaultSource()
	s.Path, s.Extra = root, []string{"vwap", "factor"}
	back, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := back.Series[0].Records
	if len(got) != 6 || len(want.Records) != 6 {
		t.Fatalf("%d rows, expected %d", len(got), len(want.Records))
	}
	for i, r := range got {
		w := want.Records[i]
		for name, x := range sorted.All(map[string][2]float64{"open": {r.Open, w.Open}, "close": {r.Close, w.Close}, "volume": {r.Volume, w.Volume}, "vwap": {r.Extra[0], w.Extra[0]}, "factor": {r.Extra[1], w.Factor}}) {
			if math.Abs(x[0]/x[1]-1) > 1e-6 {
				t.Errorf("%s: the %s is %v, expected %v", formatTime(r.Time), name, x[0], x[1])
			}
		}
	}
	for _, first := range []string{"-1", "0", "", "Inf"} {
		if _, _, err := write("2023-01-01,A,10,10,10,10,1000,"+first+",10000", rows[1]); err == nil || !strings.Contains(err.Error(), "symbol A: 2023-01-01 (factors.csv, line 2): the first row has no adjustment") {
			t.Errorf("a first factor of %q: error %v", first, err)
		}
	}
}

func TestQlibFolderErrors(t *testing.T) {
	write := func(name, text string) func(string) error {
		return func(root string) error { return os.WriteFile(filepath.Join(root, name), []byte(text), 0o666) }
	}
	bits := func(v float32) string {
		u := math.Float32bits(v)
		return string([]byte{byte(u), byte(u >> 8), byte(u >> 16), byte(u >> 24)})
	}
	cases := []struct {
		name   string
		damage func(root string) error
		want   string
	}{
		{"calendar out of order", write("calendars/day.txt", "2020-01-03\n\n2020-01-02\n"), `calendars/day.txt:3: "2020-01-02" does not come after "2020-01-03"`},
		{"empty calendar", write("calendars/day.txt", "\n"), "calendars/day.txt: the calendar is empty"},
		{"two calendars", write("calendars/1min.txt", "2020-01-02 09:31:00\n"), "there are the calendars [1min day]; the frequency must be given"},
		{"no tabs", write("instruments/all.txt", "600000.SH 2020-01-02 2020-01-08\n"), "instruments/all.txt:1: \"600000.SH 2020-01-02 2020-01-08\"; expected symbol"},
		{"overlap", write("instruments/all.txt", "600000.SH\t2020-01-02\t2020-01-05\n600000.SH\t2020-01-05\t2020-01-08\n"), "instruments/all.txt:2: 600000.SH from 2020-01-05 to 2020-01-08 overlaps its range from 2020-01-02 to 2020-01-05"},
		{"backwards", write("instruments/all.txt", "600000.SH\t2020-01-08\t2020-01-02\n"), "the range ends before it begins"},
		{"no instruments", write("instruments/all.txt", ""), "there are no instruments"},
		{"path as a symbol", write("instruments/all.txt", "../x\t2020-01-02\t2020-01-08\n"), "expected symbol"},
		{"unknown symbol", write("instruments/all.txt", "600001.SH\t2020-01-02\t2020-01-08\n"), "features/600001.sh"},
		{"no close", func(root string) error { return os.Remove(filepath.Join(root, "features/600000.sh/close.day.bin")) }, "600000.SH has no field close; it has [factor high"},
		{"cut bytes", write("features/600000.sh/open.day.bin", "abcde"), "features/600000.sh/open.day.bin: 5 bytes are not a number of float32"},
		{"empty file", write("features/600000.sh/open.day.bin", ""), "0 bytes are not"},
		{"broken start", write("features/600000.sh/open.day.bin", bits(0.5)+bits(1)), "it begins at 0.5, which is no position in a calendar of 5 times"},
		{"NaN start", write("features/600000.sh/open.day.bin", bits(float32(math.NaN()))), "it begins at NaN"},
		{"factor of 0", write("features/600000.sh/factor.day.bin", bits(0)+bits(0)), "600000.SH at 2020-01-02: "},
		{"too long", write("features/600000.sh/open.day.bin", bits(3)+strings.Repeat(bits(1), 3)), "3 values from position 3 on go beyond the calendar's 5 times"},
	}
	for _, c := range cases {
		root := written(t)
		if err := c.damage(root); err != nil {
			t.Fatal(err)
		}
		s := DefaultSource()
		s.Path = root
		if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), root) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
	if len(cases) != 16 {
		t.Error(len(cases))
	}
	s := DefaultSource()
	s.Path, s.Adjust = written(t), "factor"
	if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), "source.adjust: factor: the prices of a Qlib folder are adjusted already") {
		t.Error(err)
	}
	s.Adjust, s.Instruments = "auto", "csi300"
	if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), "instruments/csi300.txt") {
		t.Error(err)
	}
	d, err := Read(quotesFile(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteQlib(s.Path, "day", d); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Error(err)
	}
	d.Series[0].Records = append(d.Series[0].Records, d.Series[0].Records[0])
	root := filepath.Join(t.TempDir(), "twice")
	if err := WriteQlib(root, "day", d); err == nil || !strings.Contains(err.Error(), "quotes.csv line 7: a second row of 300001.SZ at 2020-01-03") {
		t.Error(err)
	}
	if left, err := filepath.Glob(root + "*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
