package prepared

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/atomicfile/faultdisk"
	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// csvText is a market of four stocks over 400 weekdays from 2015-01-01: ALL trades throughout, LATE
// is listed on day 150, GONE ends on day 250, and HALT has a row without volume on day 300 and none
// on days 301 to 303.
func csvText(seed uint64) string {
	var b strings.Builder
	b.WriteString("date,symbol,open,high,low,close,adj_close,volume,limit\n")
	r := rand.New(rand.NewPCG(seed, 3))
	prices := map[string]float64{"ALL": 20, "LATE": 35, "GONE": 50, "HALT": 80}
	day := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	for d := 0; d < 400; day = day.AddDate(0, 0, 1) {
		if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			continue
		}
		for _, s := range []string{"ALL", "LATE", "GONE", "HALT"} {
			o := prices[s] * math.Exp(0.01*r.NormFloat64())
			c := o * math.Exp(0.02*r.NormFloat64())
			prices[s] = c
			h, l, v := max(o, c)*(1+0.01*r.Float64()), min(o, c)*(1-0.01*r.Float64()), math.Round(1e6*r.Float64())
			if s == "HALT" && d == 300 {
				v = 0
			}
			if s == "LATE" && d < 150 || s == "GONE" && d > 250 || s == "HALT" && d > 300 && d < 304 {
				continue
			}
			fmt.Fprintf(&b, "%s,%s,%.4f,%.4f,%.4f,%.4f,%.6f,%.0f,%.2f\n", day.Format(time.DateOnly), s, o, h, l, c, c/2, v, c*1.1)
		}
		d++
	}
	return b.String()
}

// config prepares the market above: 260 days of training, 70 of validation and 69 of test, before
// the first ones are dropped.
func config(t testing.TB, text string) Config {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bars.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("test.yaml", []byte(`
source: {path: x, extra: [limit]}
window: 10
assets: [ALL, LATE, GONE, HALT]
features: {indicators: {sma: [5, 20], rsi: [14], macd: [12, 26, 9], supertrend: [10, 3.0]}, calendar: [weekday]}
split: {train: [2015-01-01, 2015-12-30], valid: [2015-12-31, 2016-04-06], test: [2016-04-07, 2016-12-31]}
`))
	if err != nil {
		t.Fatal(err)
	}
	c := Default()
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	c.Source.Path = path
	return c
}

func mustBuild(t testing.TB, c Config) *Set {
	t.Helper()
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	s, err := Build(c, data)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestBuild(t *testing.T) {
	s := mustBuild(t, config(t, csvText(1)))
	m := s.Manifest
	// macd_12_26_9 needs 33 bars, so the first 33 days are dropped.
	if m.T != 367 || m.N != 4 || m.F != 16 || m.W != 10 || m.DroppedRows != 33 || !slices.Equal(s.X.Shape(), []int{367, 4, 16}) {
		t.Fatalf("T=%d N=%d F=%d W=%d, %d dropped, shape %v", m.T, m.N, m.F, m.W, m.DroppedRows, s.X.Shape())
	}
	if m.Split.Train.Lo != 0 || m.Split.Train.Hi != 226 || m.Split.Valid.Lo != 227 || m.Split.Test.Hi != 367 || len(m.Ranges) != 3 {
		t.Errorf("split %+v, ranges %+v", m.Split, m.Ranges)
	}
	if m.From != "2015-02-17" || m.Ranges[0].To != "2015-12-29" || m.Ranges[2].From != "2016-04-07" {
		t.Errorf("from %s, ranges %+v", m.From, m.Ranges)
	}
	if m.Adjusted != "adj_close" || math.Abs(s.Close[0]-10) > 5 || len(m.Inputs) != 1 || m.Inputs[0].Rows != 400*2+250+251-3 {
		t.Errorf("adjusted by %s, first close %v, inputs %+v", m.Adjusted, s.Close[0], m.Inputs)
	}
	status := func(day, n int) bars.Status { return s.Status[(day-33)*4+n] }
	for _, c := range []struct {
		day, n   int
		status   bars.Status
		tradable bool
	}{
		{33, 0, bars.Traded, true},
		{33, 1, bars.Unlisted, false}, {149, 1, bars.Unlisted, false}, {150, 1, bars.Traded, false}, {182, 1, bars.Traded, false}, {183, 1, bars.Traded, true},
		{250, 2, bars.Traded, true}, {251, 2, bars.Missing, false}, {270, 2, bars.Missing, false}, {271, 2, bars.Gone, false}, {399, 2, bars.Gone, false},
		{299, 3, bars.Traded, true}, {300, 3, bars.Suspended, false}, {301, 3, bars.Missing, false}, {304, 3, bars.Traded, true},
	} {
		if got := status(c.day, c.n); got != c.status || s.Tradable(c.day-33, c.n) != c.tradable {
			t.Errorf("%s on day %d is %v and tradable: %v, expected %v and %v", m.Symbols[c.n], c.day, got, s.Tradable(c.day-33, c.n), c.status, c.tradable)
		}
	}
	// Nothing is invented before the listing, and the flag says when it is.
	for day := 33; day < 183; day++ {
		row := s.Row(day-33, 1)
		for i, v := range row[:15] {
			if v != 0 {
				t.Fatalf("LATE has %s = %v on day %d", m.Features[i].Name, v, day)
			}
		}
		if (row[15] == 1) != (day >= 150) || day < 150 && s.Close[(day-33)*4+1] != 0 {
			t.Fatalf("LATE on day %d: listed %v, close %v", day, row[15], s.Close[(day-33)*4+1])
		}
	}
	// Scaled columns have mean 0 and deviation 1 over the defined rows of the training range.
	for i, f := range m.Features {
		sum, square, n := 0.0, 0.0, 0.0
		for at := range m.Split.Train.Hi {
			for k := range 4 {
				if v := float64(s.Row(at, k)[i]); s.Defined[at*4+k] {
					sum, square, n = sum+v, square+v*v, n+1
				}
			}
		}
		if f.Scaled && (math.Abs(sum/n) > 1e-5 || math.Abs(square/n-1) > 1e-4 || int(n) != f.Count) {
			t.Errorf("%s has mean %v and variance %v over %v rows", f.Name, sum/n, square/n, n)
		}
	}
	// A window is a view.
	w := s.Window(50)
	if len(w) != 10*4*16 || &w[0] != &s.Row(41, 0)[0] || w[len(w)-1] != s.Row(50, 3)[15] {
		t.Error("the window is not the ten rows up to 50")
	}
	if n := testing.AllocsPerRun(100, func() { s.Window(60) }); n != 0 {
		t.Errorf("a window costs %v allocations", n)
	}
}

func same(a, b *Set) error {
	am, err := json.Marshal(a.Manifest)
	if err != nil {
		return err
	}
	bm, err := json.Marshal(b.Manifest)
	if err != nil {
		return err
	}
	bits := func(x, y float64) bool {
		return math.Float64bits(x) == math.Float64bits(y) || math.IsNaN(x) && math.IsNaN(y)
	}
	switch {
	case !bytes.Equal(am, bm):
		return fmt.Errorf("manifests differ:\n%s\n%s", am, bm)
	case !bytes.Equal(a.X.Bytes(), b.X.Bytes()) || !slices.Equal(a.X.Shape(), b.X.Shape()):
		return errors.New("the features differ")
	case !slices.Equal(a.Status, b.Status) || !slices.Equal(a.Defined, b.Defined):
		return errors.New("the masks differ")
	case !slices.EqualFunc(a.Times, b.Times, func(x, y time.Time) bool { return x.Equal(y) && x.Format(time.RFC3339) == y.Format(time.RFC3339) }):
		return errors.New("the times differ")
	}
	for i, pair := range [][2][]float64{{a.Open, b.Open}, {a.High, b.High}, {a.Low, b.Low}, {a.Close, b.Close}, {a.Volume, b.Volume}, {a.Extra, b.Extra}} {
		if len(pair[0]) == 0 || !slices.EqualFunc(pair[0], pair[1], bits) {
			return fmt.Errorf("price column %d differs", i)
		}
	}
	for c := range a.Quotes {
		if !slices.EqualFunc(a.Quotes[c], b.Quotes[c], bits) {
			return fmt.Errorf("the quotes %v differ", bars.QuoteColumn(c))
		}
	}
	return nil
}

// A set of version 1 is one without quotes.
func TestOpenVersion1(t *testing.T) {
	s := mustBuild(t, config(t, strings.ReplaceAll(csvText(2), "adj_close", "other")))
	dir := t.TempDir()
	if err := s.Save(dir); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, ManifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, bytes.Replace(text, []byte(`"version": 2`), []byte(`"version": 1`), 1), 0o644); err != nil {
		t.Fatal(err)
	}
	got, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got.Manifest.Version != 1 || len(got.Manifest.Quotes) > 0 || got.Close[5] != s.Close[5] {
		t.Errorf("version %d with the quotes %v", got.Manifest.Version, got.Manifest.Quotes)
	}
}

// Quotes are the numbers of the file, beside what features see.
func TestQuotes(t *testing.T) {
	s := mustBuild(t, config(t, csvText(1)))
	if want := []string{"raw_open", "raw_high", "raw_low", "raw_close", "raw_volume", "factor"}; !slices.Equal(s.Manifest.Quotes, want) {
		t.Fatalf("quotes %q, expected %q", s.Manifest.Quotes, want)
	}
	compared := 0
	for i, st := range s.Status {
		raw, factor := s.Quotes[bars.RawClose][i], s.Quotes[bars.Factor][i]
		if st == bars.Unlisted {
			continue
		}
		compared++
		if raw*factor != s.Close[i] || raw != math.Round(raw*1e4)/1e4 || s.Quotes[bars.LimitUp] != nil {
			t.Fatalf("row %d: the close %v times %v is not %v", i, raw, factor, s.Close[i])
		}
		if st == bars.Missing && (s.Quotes[bars.RawVolume][i] != 0 || s.Quotes[bars.RawOpen][i] != raw) {
			t.Errorf("row %d is missing, and its open is %v, its close %v", i, s.Quotes[bars.RawOpen][i], raw)
		}
	}
	if compared < 1300 {
		t.Errorf("%d rows were compared", compared)
	}
}

func TestSaveAndOpen(t *testing.T) {
	for _, zone := range []string{"", "America/New_York"} {
		c := config(t, csvText(2))
		c.Source.Timezone = zone
		s := mustBuild(t, c)
		dir := filepath.Join(t.TempDir(), "a", "set")
		if err := s.Save(dir); err != nil {
			t.Fatal(err)
		}
		got, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := same(s, got); err != nil {
			t.Fatal(err)
		}
		if zone != "" && got.Times[0].Location().String() != zone {
			t.Errorf("times are in %v", got.Times[0].Location())
		}
		// Equal inputs give equal files, and saving again over them leaves nothing else.
		other := t.TempDir()
		if err := mustBuild(t, c).Save(other); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{ManifestName, s.Manifest.Files.Features.Name, s.Manifest.Files.Prices.Name} {
			a, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			b, err := os.ReadFile(filepath.Join(other, name))
			if err != nil || !bytes.Equal(a, b) {
				t.Errorf("%s differs between two runs: %v", name, err)
			}
		}
		c.Window = 5
		c.Normalization.Clip = 1
		if err := mustBuild(t, c).Save(dir); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(dir)
		if err != nil || len(files) != 3 {
			t.Errorf("%d files after saving again: %v", len(files), err)
		}
		if again, err := Open(dir); err != nil || again.Manifest.W != 5 || again.Manifest.DataSHA256 == s.Manifest.DataSHA256 {
			t.Errorf("the second set cannot be opened or is the first: %v", err)
		}
	}
}

// Whatever operation of the disk fails, the folder holds the old set or the new one.
func TestSaveSurvivesFaults(t *testing.T) {
	longtest.Nightly(t)
	c := config(t, csvText(3))
	old := mustBuild(t, c)
	c.Window = 12
	c.Normalization.Clip = 2
	next := mustBuild(t, c)
	dir := t.TempDir()
	if err := old.Save(dir); err != nil {
		t.Fatal(err)
	}
	check := func(what string, err error) {
		t.Helper()
		got, openErr := Open(dir)
		if openErr != nil {
			t.Fatalf("%s: the set is lost: %v", what, openErr)
		}
		if err == nil && got.Manifest.W != 12 {
			t.Fatalf("%s: no error and the old set", what)
		}
		if err := same(got, map[int]*Set{10: old, 12: next}[got.Manifest.W]); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
	faults := 0
	for n := 1; ; n++ {
		disk := faultdisk.New(atomicfile.OS)
		disk.FailAt(n, io.ErrUnexpectedEOF)
		err := next.SaveOn(disk, dir)
		check(fmt.Sprintf("operation %d", n), err)
		if !disk.Failed() {
			break
		}
		faults++
		if err == nil && n < 10 {
			t.Fatalf("operation %d failed without an error", n)
		}
		if err := old.Save(dir); err != nil {
			t.Fatal(err)
		}
	}
	if faults < 12 {
		t.Errorf("%d faults", faults)
	}
	if err := old.Save(dir); err != nil {
		t.Fatal(err)
	}
	disk := faultdisk.New(atomicfile.OS)
	disk.SetRoom(1000)
	err := next.SaveOn(disk, dir)
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "save prepared data: write "+dir) {
		t.Errorf("full disk: %v", err)
	}
	check("full disk", err)
}

func TestOpenRefuses(t *testing.T) {
	s := mustBuild(t, config(t, csvText(4)))
	fresh := func() string {
		dir := t.TempDir()
		if err := s.Save(dir); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	edit := func(file string, change func([]byte) []byte) func(string) error {
		return func(dir string) error {
			path := filepath.Join(dir, file)
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.WriteFile(path, change(data), 0o644)
		}
	}
	replace := func(old, new string) func([]byte) []byte {
		return func(b []byte) []byte {
			if !bytes.Contains(b, []byte(old)) {
				t.Fatalf("the manifest does not hold %q", old)
			}
			return bytes.Replace(b, []byte(old), []byte(new), 1)
		}
	}
	fresh() // only a saved set knows the names of its files
	features, prices := s.Manifest.Files.Features.Name, s.Manifest.Files.Prices.Name
	for name, c := range sorted.All(longtest.Few(t, map[string]struct {
		damage func(dir string) error
		want   string
	}{
		"no manifest":     {func(dir string) error { return os.Remove(filepath.Join(dir, ManifestName)) }, "manifest.json: no such file"},
		"no features":     {func(dir string) error { return os.Remove(filepath.Join(dir, features)) }, features + ": no such file"},
		"flipped byte":    {edit(prices, func(b []byte) []byte { b[len(b)/2] ^= 1; return b }), prices + " was changed or is damaged"},
		"cut features":    {edit(features, func(b []byte) []byte { return b[:len(b)-9] }), features + " was changed or is damaged"},
		"cut manifest":    {edit(ManifestName, func(b []byte) []byte { return b[:len(b)/2] }), "manifest.json is damaged"},
		"other version":   {edit(ManifestName, replace(`"version": 2`, `"version": 9`)), "it has version 9, and this program reads versions 1 to 3"},
		"old with quotes": {edit(ManifestName, replace(`"version": 2`, `"version": 1`)), "it has version 1, which knows no quotes"},
		"unknown quotes":  {edit(ManifestName, replace(`"raw_open"`, `"raw_sides"`)), "there are no quotes"},
		"other format":    {edit(ManifestName, replace(Format, "something")), "it is no manifest of prepared market data"},
		"lying T":         {edit(ManifestName, replace(`"t": 367`, `"t": 999999999999`)), "are impossible"},
		"lying N":         {edit(ManifestName, replace(`"n": 4`, `"n": 5`)), "it names 4 symbols"},
		"changed mean":    {edit(ManifestName, replace(`"mean": `, `"mean": 1`)), "it was changed after it was written"},
		"changed split":   {edit(ManifestName, replace(`"lo": 0`, `"lo": 3`)), "it was changed after it was written"},
		"path in a name":  {edit(ManifestName, replace(features, "../"+features)), "is no name of a table"},
		"changed columns": {edit(ManifestName, replace(`"name": "open"`, `"name": "opened"`)), "it was changed after it was written"},
	}, 5)) {
		dir := fresh()
		if err := c.damage(dir); err != nil {
			t.Fatal(err)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
}

func TestBuildRefuses(t *testing.T) {
	text := csvText(5)
	short := strings.Join(strings.SplitAfter(text, "\n")[:60], "")
	for name, c := range sorted.All(map[string]struct {
		text string
		edit func(*Config)
		want string
	}{
		"long window":       {text, func(c *Config) { c.Window = 500 }, "the window of 500 bars is longer than the data: 367 of 400 bars are left after dropping the first 33"},
		"window over train": {text, func(c *Config) { c.Window = 230 }, "the window of 230 bars is longer than the data up to the end of train"},
		"undefined feature": {short, func(c *Config) { c.Assets = c.Assets[:1] }, "macd_12_26_9 (needs 34 bars)"},
		"no such symbol":    {text, func(c *Config) { c.Assets = []string{"ALL", "NONE"} }, `symbol "NONE" has no rows; there are ALL, GONE, HALT, LATE`},
		"symbol twice":      {text, func(c *Config) { c.Assets = []string{"ALL", "ALL"} }, `assets[1]: "ALL" is empty or there twice`},
		"empty split":       {text, func(c *Config) { c.Split.Test.From, c.Split.Test.To = day("2030-01-01"), day("2031-01-01") }, "test is empty: no data from 2030-01-01"},
		"overlap":           {text, func(c *Config) { c.Split.Valid.From = day("2015-06-01") }, "split.valid: overlaps or comes before train"},
		"conflict":          {strings.Replace(text, ",LATE,", ",ALL,", 1), nil, "check the data: symbol ALL: 2015-07-30"},
		"calendar":          {text, func(c *Config) { c.Calendar.From = day("2040-01-01") }, "no rows from 2040-01-01 on"},
	}) {
		cfg := config(t, c.text)
		if c.edit != nil {
			c.edit(&cfg)
		}
		data, err := Read(cfg)
		if err == nil {
			_, err = Build(cfg, data)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
}

func day(s string) bars.Date {
	d, err := bars.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return d
}

func FuzzManifest(f *testing.F) {
	s := mustBuild(f, config(f, csvText(6)))
	dir := f.TempDir()
	if err := s.Save(dir); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dir, ManifestName)
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"format":"onnxrl market data","version":1,"t":1,"n":1,"f":1,"w":1}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		if got, err := Open(dir); err == nil && !bytes.Equal(got.X.Bytes(), s.X.Bytes()) {
			t.Fatal("a changed manifest gives other features")
		}
	})
}
