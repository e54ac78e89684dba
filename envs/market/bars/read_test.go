package bars

import (
	"bytes"
	"compress/gzip"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"
	"golang.org/x/text/encoding/simplifiedchinese"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func source(path string, edits ...func(*Source)) Source {
	s := DefaultSource()
	s.Path = path
	for _, e := range edits {
		e(&s)
	}
	return s
}

func mustRead(t testing.TB, s Source, symbols ...string) *Data {
	t.Helper()
	d, err := Read(s, symbols)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const two = `date,symbol,open,high,low,close,adj_close,volume
2020-01-02,B,10,11,9,10.5,5.25,100
2020-01-02,A,20,22,19,21,21,200
2020-01-03,A,21,23,20,22,22,
2020-01-03,B,10.5,12,10,11,5.5,0
`

func TestReadFormatsAgree(t *testing.T) {
	gz := filepath.Join(t.TempDir(), "two.csv.gz")
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	if _, err := w.Write([]byte(two)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(gz, buf.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for name, rows := range sorted.All(map[string]string{
		"A.csv": "Date,Open,High,Low,Close,Adj Close,Volume\n2020-01-02,20,22,19,21,21,200\n2020-01-03,21,23,20,22,22,\n",
		"B.csv": "Date,Open,High,Low,Close,Adj Close,Volume\n2020-01-02,10,11,9,10.5,5.25,100\n2020-01-03,10.5,12,10,11,5.5,0\n",
	}) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(rows), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, ".A.csv.tmp-123"), []byte("broken"), 0o644); err != nil {
		t.Fatal(err)
	}
	want := mustRead(t, source(write(t, "two.csv", two)))
	if len(want.Series) != 2 || want.Series[0].Symbol != "A" || len(want.Series[1].Records) != 2 || want.Adjustment.By != "adj_close" || !want.HasVolume {
		t.Fatalf("read %+v", want)
	}
	for name, s := range sorted.All(map[string]Source{
		"gzip":       source(gz),
		"semicolons": source(write(t, "two.csv", "\ufeff"+strings.ReplaceAll(two, ",", ";"))),
		"tabs":       source(write(t, "two.tsv", strings.ReplaceAll(two, ",", "\t"))),
		"names":      source(write(t, "two.csv", strings.Replace(two, "date,symbol,open,high,low,close,adj_close,volume", "Trade Date,TICKER,O,H,L,C,Adj. Close,Vol", 1))),
		"windows":    source(write(t, "two.csv", strings.ReplaceAll(two, "\n", "\r\n"))),
		"folder":     source(folder),
		"yahoo":      source(filepath.Join(folder, "*.csv"), func(s *Source) { s.Preset = "yahoo" }),
		"columns":    source(write(t, "two.csv", strings.Replace(two, "close,adj", "last,adj", 1)), func(s *Source) { s.Columns.Close = "last" }),
		"layout":     source(write(t, "two.csv", strings.ReplaceAll(strings.ReplaceAll(two, "2020-01-02", "02.01.2020"), "2020-01-03", "03.01.2020")), func(s *Source) { s.TimeFormat = "%d.%m.%Y" }),
		"slashes":    source(write(t, "two.csv", strings.ReplaceAll(two, "2020-01-0", "2020/1/"))),
		"unix":       source(write(t, "two.csv", strings.ReplaceAll(strings.ReplaceAll(two, "2020-01-02", "1577923200000"), "2020-01-03", "1578009600000"))),
		"parquet":    source(parquetTwo(t, false)),
		"typed":      source(parquetTwo(t, true)),
		"arrow":      source(arrowTwo(t, false)),
		"stream":     source(arrowTwo(t, true)),
	}) {
		got := mustRead(t, s)
		if len(got.Series) != 2 {
			t.Errorf("%s: %d series", name, len(got.Series))
			continue
		}
		for i, ws := range want.Series {
			gs := got.Series[i]
			if gs.Symbol != ws.Symbol || len(gs.Records) != len(ws.Records) {
				t.Errorf("%s: series %d is %s with %d rows", name, i, gs.Symbol, len(gs.Records))
				continue
			}
			for j := range ws.Records {
				g, w := gs.Records[j], ws.Records[j]
				if !g.Time.Equal(w.Time) || !SameRow(&g, &w) {
					t.Errorf("%s: %s row %d is %+v, expected %+v", name, ws.Symbol, j, g, w)
				}
			}
		}
	}
}

// recordTwo holds the values of the text above; typed with a dictionary of symbols and dates
// instead of strings.
func recordTwo(t testing.TB, typed bool) arrow.Record {
	t.Helper()
	mem := memory.DefaultAllocator
	times, symbols := []string{"2020-01-02", "2020-01-02", "2020-01-03", "2020-01-03"}, []string{"B", "A", "A", "B"}
	var timeArray, symbolArray arrow.Array
	fields := []arrow.Field{{Name: "date", Type: arrow.BinaryTypes.String}, {Name: "symbol", Type: arrow.BinaryTypes.String}}
	if typed {
		fields[0].Type = arrow.FixedWidthTypes.Date32
		b := array.NewDate32Builder(mem)
		for _, s := range times {
			at, err := time.Parse(time.DateOnly, s)
			if err != nil {
				t.Fatal(err)
			}
			b.Append(arrow.Date32FromTime(at))
		}
		timeArray = b.NewArray()
		dict := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}
		fields[1].Type = dict
		d := array.NewDictionaryBuilder(mem, dict).(*array.BinaryDictionaryBuilder)
		for _, s := range symbols {
			if err := d.AppendString(s); err != nil {
				t.Fatal(err)
			}
		}
		symbolArray = d.NewArray()
	} else {
		b, c := array.NewStringBuilder(mem), array.NewStringBuilder(mem)
		b.AppendValues(times, nil)
		c.AppendValues(symbols, nil)
		timeArray, symbolArray = b.NewArray(), c.NewArray()
	}
	arrays := []arrow.Array{timeArray, symbolArray}
	for i, values := range [][]float64{{10, 20, 21, 10.5}, {11, 22, 23, 12}, {9, 19, 20, 10}, {10.5, 21, 22, 11}, {5.25, 21, 22, 5.5}} {
		fields = append(fields, arrow.Field{Name: []string{"open", "high", "low", "close", "adj_close"}[i], Type: arrow.PrimitiveTypes.Float64})
		b := array.NewFloat64Builder(mem)
		b.AppendValues(values, nil)
		arrays = append(arrays, b.NewArray())
	}
	fields = append(fields, arrow.Field{Name: "volume", Type: arrow.PrimitiveTypes.Int64, Nullable: true})
	b := array.NewInt64Builder(mem)
	b.AppendValues([]int64{100, 200, 0, 0}, []bool{true, true, false, true})
	return array.NewRecord(arrow.NewSchema(fields, nil), append(arrays, b.NewArray()), 4)
}

func parquetTwo(t *testing.T, typed bool) string {
	t.Helper()
	rec := recordTwo(t, typed)
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, parquet.NewWriterProperties(), pqarrow.NewArrowWriterProperties(pqarrow.WithStoreSchema()))
	if err != nil {
		t.Fatal(err)
	}
	// Two row groups, and one without rows between them.
	for _, part := range []arrow.Record{rec.NewSlice(0, 3), rec.NewSlice(0, 0), rec.NewSlice(3, 4)} {
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return write(t, "two.parquet", buf.String())
}

func arrowTwo(t *testing.T, stream bool) string {
	t.Helper()
	rec := recordTwo(t, true)
	var buf bytes.Buffer
	var w interface {
		Write(arrow.Record) error
		Close() error
	}
	path := filepath.Join(t.TempDir(), "two.arrow")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if w = ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema())); !stream {
		if w, err = ipc.NewFileWriter(f, ipc.WithSchema(rec.Schema())); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []arrow.Record{rec.NewSlice(0, 1), rec.NewSlice(1, 4)} {
		if err := w.Write(part); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if stream {
		return write(t, "two.arrow", buf.String())
	}
	return path
}

func TestReadRefuses(t *testing.T) {
	corrupt, err := os.ReadFile(parquetTwo(t, false))
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(corrupt)
	for i := 40; i < len(flipped)/2; i += 3 {
		flipped[i] ^= 0x5a
	}
	empty := t.TempDir()
	for name, c := range sorted.All(map[string]struct {
		source  Source
		symbols []string
		want    string
	}{
		"no file":           {source(filepath.Join(t.TempDir(), "none.csv")), nil, "none.csv: no such file"},
		"no match":          {source(filepath.Join(empty, "*.csv")), nil, "no file matches"},
		"empty folder":      {source(empty), nil, "holds no file that ends in .csv"},
		"empty file":        {source(write(t, "a.csv", "")), nil, "the file is empty"},
		"no text":           {source(write(t, "a.csv", "\x00\x01,PK\xff\n1,2\n")), nil, "no table of text"},
		"no rows":           {source(write(t, "a.csv", "date,open,high,low,close\n")), nil, "there are no rows"},
		"missing column":    {source(write(t, "a.csv", "date,open,high,low\n2020-01-02,1,1,1\n")), nil, "no close (looked for close, c, closeprice, 收盘, 收盘价, sdqclose); the file has the columns date, open, high, low"},
		"wrong column name": {source(write(t, "a.csv", two), func(s *Source) { s.Columns.Close = "lst" }), nil, `no close (column "lst")`},
		"no extra":          {source(write(t, "a.csv", two), func(s *Source) { s.Extra = []string{"limit_up"} }), nil, `no extra column "limit_up"`},
		"no factor":         {source(write(t, "a.csv", two), func(s *Source) { s.Adjust = "factor" }), nil, "no factor (looked for"},
		"twice":             {source(write(t, "a.csv", "date,close,close\n")), nil, `the column "close" is there twice`},
		"no number":         {source(write(t, "a.csv", strings.Replace(two, "22,19", "x22,19", 1))), nil, `line 3, column "high": "x22" is not a number`},
		"no time":           {source(write(t, "a.csv", strings.Replace(two, "2020-01-03,A", "yesterday,A", 1))), nil, `line 4, column "date": "yesterday" does not have the time format`},
		"ambiguous time":    {source(write(t, "a.csv", strings.ReplaceAll(two, "2020-01-02", "01/02/2020"))), nil, "day and month cannot be told apart: set source.time_format"},
		"ragged":            {source(write(t, "a.csv", two+"2020-01-04,A,1\n")), nil, "record on line 6: wrong number of fields"},
		"blank symbol":      {source(write(t, "a.csv", strings.Replace(two, ",B,", ",,", 1))), nil, `line 2, column "symbol": expected a symbol`},
		"unknown symbol":    {source(write(t, "a.csv", two)), []string{"A", "C"}, `symbol "C" has no rows; there are A, B`},
		"cut gzip":          {source(write(t, "a.csv.gz", "\x1f\x8b\x08\x00\x00\x00\x00\x00")), nil, "unexpected EOF"},
		"cut parquet":       {source(write(t, "a.parquet", string(corrupt[:len(corrupt)/2]))), nil, "is damaged"},
		"flipped parquet":   {source(write(t, "a.parquet", string(flipped))), nil, "damaged"},
		"text as parquet":   {source(write(t, "a.parquet", two)), nil, "is damaged"},
		"text as arrow":     {source(write(t, "a.arrow", two)), nil, "is damaged"},
		"bad zone":          {source(write(t, "a.csv", two), func(s *Source) { s.Timezone = "Mars/Base" }), nil, "timezone"},
		"bad preset":        {source(write(t, "a.csv", two), func(s *Source) { s.Preset = "yahooo" }), nil, `did you mean "yahoo"?`},
		"bad format":        {source(write(t, "a.csv", two), func(s *Source) { s.TimeFormat = "%Q" }), nil, "is not supported"},
		"different adjusts": {source(mixedFolder(t)), nil, "set source.adjust"},
	}) {
		_, err := Read(c.source, c.symbols)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
}

func mixedFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range sorted.All(map[string]string{"A.csv": "date,open,high,low,close\n2020-01-02,1,1,1,1\n", "B.csv": "date,open,high,low,close,adj_close\n2020-01-02,1,1,1,1,1\n"}) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestPresets: the files of vendors are read by their presets and, by their headers alone, the same
// way.
func TestPresets(t *testing.T) {
	for name, c := range sorted.All(map[string]struct {
		text   string
		symbol string
		volume float64
		close  float64
		halted bool
		amount float64
	}{
		"stooq":    {"<TICKER>,<PER>,<DATE>,<TIME>,<OPEN>,<HIGH>,<LOW>,<CLOSE>,<VOL>,<OPENINT>\nAAPL.US,D,20200102,000000,1,2,1,2,50,0\n", "AAPL.US", 50, 2, false, 0},
		"tushare":  {"ts_code,trade_date,open,high,low,close,pre_close,vol,amount\n000001.SZ,20200102,1,2,1,2,1,50,7\n", "000001.SZ", 5000, 2, false, 7000},
		"baostock": {"date,code,open,high,low,close,volume,tradestatus\n2020-01-02,sh.600000,1,2,1,2,0,0\n", "sh.600000", 0, 2, true, 0},
		"akshare":  {"日期,股票代码,开盘,收盘,最高,最低,成交量,成交额,振幅,涨跌幅,涨跌额,换手率\n2020-01-02,600000,1,2,2,1,50,7,0,0,0,0\n", "600000", 5000, 2, false, 7},
		"wind":     {gb18030(t, "代码,简称,日期,前收盘价(元),开盘价(元),最高价(元),最低价(元),收盘价(元),成交量（手）,成交金额(万元)\n000001.SZ,平安银行,2020-01-02,1,1,2,1,2,50,7\n数据来源：Wind,,,,,,,,,\n"), "000001.SZ", 5000, 2, false, 70_000},
		"binance":  {"1577923200000,1,2,1,2,50,1578009599999,7,1,1,1,0\n", "BTCUSDT", 50, 2, false, 0},
	}) {
		for _, preset := range []string{name, "auto"} {
			d := mustRead(t, source(write(t, "BTCUSDT.csv", c.text), func(s *Source) { s.Preset = preset }))
			r := d.Series[0].Records[0]
			if d.Series[0].Symbol != c.symbol || r.Volume != c.volume || r.Close != c.close || r.Suspended != c.halted || !r.Time.Equal(time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)) {
				t.Errorf("%s by %s: %s %+v", name, preset, d.Series[0].Symbol, r)
			}
			if slices.Contains(d.Series[0].Quoted, Amount) && r.Quote[Amount] != c.amount {
				t.Errorf("%s by %s: the amount is %v, expected %v", name, preset, r.Quote[Amount], c.amount)
			}
		}
	}
	// A column that the vendor does not name is found beside it.
	more := mustRead(t, source(write(t, "x.csv", "ts_code,trade_date,open,high,low,close,vol,up_limit,down_limit\n000001.SZ,2020-01-02,1,2,1,2,50,2.2,1.8\n")))
	if r := more.Series[0].Records[0]; r.Volume != 5000 || r.Quote[LimitUp] != 2.2 || r.Quote[LimitDown] != 1.8 {
		t.Errorf("%+v", r)
	}
	if len(presets) != 8 {
		t.Errorf("%d presets; test the new one", len(presets))
	}
	// Units count without a preset too, and amounts have theirs.
	d := mustRead(t, source(write(t, "x.csv", "交易日期,证券代码,开盘价,最高价,最低价,收盘价,成交量(万股),成交金额(亿元),前收盘价\n20200102,A,1,2,1,2,3,4,1.5\n")))
	r := d.Series[0].Records[0]
	if r.Volume != 30_000 || r.Quote[Amount] != 4e8 || r.Quote[PrevClose] != 1.5 || d.Series[0].Symbol != "A" {
		t.Errorf("%+v", r)
	}
}

// gb18030 is a text as Chinese programs write it.
func gb18030(t *testing.T, text string) string {
	t.Helper()
	s, err := simplifiedchinese.GB18030.NewEncoder().String(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestTimeZones(t *testing.T) {
	read := func(text, zone string) time.Time {
		t.Helper()
		d := mustRead(t, source(write(t, "A.csv", "date,open,high,low,close\n"+text+",1,1,1,1\n"), func(s *Source) { s.Timezone = zone }))
		return d.Series[0].Records[0].Time
	}
	for _, c := range []struct{ text, zone, want string }{
		{"2020-07-01", "", "2020-07-01T00:00:00Z"},
		{"2020-07-01", "America/New_York", "2020-07-01T00:00:00-04:00"},
		{"2020-01-02 09:30", "America/New_York", "2020-01-02T09:30:00-05:00"},
		{"2020-01-02 00:00:00-05:00", "", "2020-01-02T00:00:00Z"}, // as written: the trading day, not the day before or after
		{"2020-01-02 00:00:00-05:00", "America/New_York", "2020-01-02T00:00:00-05:00"},
		{"2020-01-02T14:30:00Z", "America/New_York", "2020-01-02T09:30:00-05:00"},
		{"1577975400", "America/New_York", "2020-01-02T09:30:00-05:00"},
		{"1577975400", "", "2020-01-02T14:30:00Z"},
		{"2025-01-02 09:45", "Asia/Shanghai", "2025-01-02T09:45:00+08:00"},
	} {
		if got := read(c.text, c.zone).Format(time.RFC3339); got != c.want {
			t.Errorf("%s in zone %q is %s, expected %s", c.text, c.zone, got, c.want)
		}
	}
}

func TestSymbolsWithoutAdjustedPrices(t *testing.T) {
	text := "date,symbol,open,high,low,close,adj_close\n2020-01-02,A,1,1,1,1,0.5\n2020-01-02,B,2,2,2,2,\n"
	d := mustRead(t, source(write(t, "a.csv", text)))
	if w := d.Adjustment.Without; len(w) != 1 || w[0] != "B" || d.Series[1].Records[0].Factor != 1 {
		t.Errorf("read %+v", d)
	}
	d = mustRead(t, source(write(t, "a.csv", text), func(s *Source) { s.Adjust = "adj_close" }))
	if _, _, err := Clean(d.Series[1], DefaultRules(), "keep"); err == nil || !strings.Contains(err.Error(), "the first row has no adjustment") {
		t.Errorf("error %v", err)
	}
}

func FuzzReadCSV(f *testing.F) {
	f.Add(two)
	f.Add("date;open;high;low;close\n20200102;1;2;1;NaN\n")
	f.Add("\ufeffDate,Open,High,Low,Close,Adj Close\n2020-01-02 00:00:00-05:00,1,2,1,-2,1\n")
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text string) {
		path := filepath.Join(dir, "fuzz.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		d, err := Read(source(path), nil)
		if err != nil {
			return
		}
		for _, s := range d.Series {
			clean, _, err := Clean(s, DefaultRules(), "splits")
			if err != nil {
				continue
			}
			for i, r := range clean.Records {
				if !(r.Low > 0) || r.High < max(r.Open, r.Close) || r.Low > min(r.Open, r.Close) || math.IsInf(r.High, 0) || !(r.Volume >= 0) || math.IsInf(r.Volume, 0) {
					t.Fatalf("row %+v is not clean", r)
				}
				if i > 0 && !clean.Records[i-1].Time.Before(r.Time) {
					t.Fatal("the rows are not in the order of time")
				}
			}
		}
	})
}

func FuzzReadParquet(f *testing.F) {
	data, err := os.ReadFile(writeSeed(f, recordTwo(f, false)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(dir, "fuzz.parquet")
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		if d, err := Read(source(path), nil); err == nil && len(d.Series) == 0 {
			t.Fatal("neither rows nor an error")
		}
	})
}

func writeSeed(f *testing.F, rec arrow.Record) string {
	f.Helper()
	var buf bytes.Buffer
	w, err := pqarrow.NewFileWriter(rec.Schema(), &buf, parquet.NewWriterProperties(), pqarrow.DefaultWriterProps())
	if err == nil {
		err = w.Write(rec)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		f.Fatal(err)
	}
	return write(f, "seed.parquet", buf.String())
}
