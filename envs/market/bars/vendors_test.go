package bars

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/apache/arrow/go/v15/parquet/pqarrow"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestVendorBars: what vendors of China call their columns is read in shares and in yuan, whether or
// not a preset is named.
func TestVendorBars(t *testing.T) {
	cases := 0
	for name, c := range sorted.All(map[string]struct{ file, preset, text, want string }{
		"Wind's database": {"a.csv", "wind", "S_INFO_WINDCODE,TRADE_DT,S_DQ_PRECLOSE,S_DQ_OPEN,S_DQ_HIGH,S_DQ_LOW,S_DQ_CLOSE,S_DQ_VOLUME,S_DQ_AMOUNT,S_DQ_ADJCLOSE,S_DQ_ADJFACTOR,S_DQ_TRADESTATUS,S_DQ_LIMIT,S_DQ_STOPPING\n" +
			"000001.SZ,20240102,9.3,9,9.5,8.8,9.1,1158.5,1054.2,91,10,XD,10.2,8.4\n000001.SZ,20240103,9.1,9.1,9.1,9.1,9.1,0,0,91,10,停牌,10,8.2\n",
			"000001.SZ 2024-01-02 9.1 115850 1054200 ×10 9.3 10.2 8.4 false\n000001.SZ 2024-01-03 9.1 0 0 ×10 9.1 10 8.2 true"},
		"Wind's database in small letters": {"a.csv", "wind", "s_info_windcode,trade_dt,s_dq_open,s_dq_high,s_dq_low,s_dq_close,s_dq_volume,s_dq_amount\n000001.SZ,20240102,9,9.5,8.8,9.1,1158.5,1054.2\n",
			"000001.SZ 2024-01-02 9.1 115850 1054200 ×1 0 0 0 false"},
		"WindPy": {"600000.SH.csv", "wind", ",OPEN,HIGH,LOW,CLOSE,VOLUME,AMT,ADJFACTOR,TRADE_STATUS\n2024-01-02,9,9.5,8.8,9.1,115850,1054200,10,交易\n2024-01-03,9.1,9.1,9.1,9.1,0,0,10,停牌一天\n",
			"600000.SH 2024-01-02 9.1 115850 1054200 ×10 0 0 0 false\n600000.SH 2024-01-03 9.1 0 0 ×10 0 0 0 true"},
		"AkShare's minutes": {"a.csv", "akshare", "时间,开盘,收盘,最高,最低,涨跌幅,涨跌额,成交量,成交额,振幅,换手率\n2024-01-02 09:35:00,9,9.1,9.5,8.8,0,0,1158,1054200,0,0\n",
			"a 2024-01-02 09:35:00 9.1 115800 1054200 ×1 0 0 0 false"},
		"TuShare's minutes": {"a.csv", "auto", "ts_code,trade_time,open,close,high,low,vol,amount\n000001.SZ,2024-01-02 09:35:00,9,9.1,9.5,8.8,115850,1054200\n",
			"000001.SZ 2024-01-02 09:35:00 9.1 115850 1054200 ×1 0 0 0 false"},
	}) {
		cases++
		for _, preset := range []string{"auto", c.preset} {
			d, err := Read(source(write(t, c.file, c.text), func(s *Source) { s.Preset = preset }), nil)
			if err != nil {
				t.Errorf("%s by %s: %v", name, preset, err)
				continue
			}
			var got []string
			for _, r := range d.Series[0].Records {
				q := &r.Quote
				got = append(got, fmt.Sprintf("%s %s %g %g %.10g ×%g %g %g %g %v", d.Series[0].Symbol, formatTime(r.Time), r.Close, r.Volume, q[Amount], r.Factor, q[PrevClose], q[LimitUp], q[LimitDown], r.Suspended))
			}
			if text := strings.Join(got, "\n"); text != c.want {
				t.Errorf("%s by %s:\n%s\nexpected\n%s", name, preset, text, c.want)
			}
			if notes := d.UnitNotes(); len(notes) > 0 {
				t.Errorf("%s by %s: %q", name, preset, notes)
			}
		}
	}
	if cases != 5 {
		t.Errorf("%d cases", cases)
	}
}

// TestUnitNotes: volumes and amounts whose units cannot be those of the prices are reported,
// whatever their columns are called, and others are not.
func TestUnitNotes(t *testing.T) {
	cases := 0
	for name, c := range sorted.All(map[string]struct{ rows, want string }{
		"lots":                     {"A,10,1000,1000000", "amount/volume is about 100 times the price for A, as of volume in lots of 100 shares: "},
		"lots and thousands":       {"A,10,1000,1000", "amount/volume is about 0.1 times the price for A, as of volume in lots of 100 shares and amount in thousands: "},
		"shares times 100":         {"A,10,1000,100", "amount/volume is about 0.01 times the price for A, "},
		"two symbols":              {"A,10,1000,10500\nB,10,1000,1000000\nC,10,1000,1050000", "for B, C, "},
		"shares and yuan":          {"A,10,1000,10900", ""},
		"adjusted by some factor":  {"A,10,1000,37000", ""},
		"an amount now and then":   {"A,10,1000,10000\nA,10,1000,1000000\nA,10,0,0", ""},
		"mostly lots, one is zero": {"A,10,1000,1000000\nA,10,0,0", "100 times"},
	}) {
		cases++
		var b strings.Builder
		b.WriteString("date,symbol,open,high,low,close,volume,amount\n")
		for i, line := range strings.Split(c.rows, "\n") {
			f := strings.Split(line, ",")
			fmt.Fprintf(&b, "2024-01-%02d,%s,%s,%s,%s,%s,%s,%s\n", i+1, f[0], f[1], f[1], f[1], f[1], f[2], f[3])
		}
		d := mustRead(t, source(write(t, "a.csv", b.String())))
		got := strings.Join(d.UnitNotes(), "\n")
		if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, expected %q", name, got, c.want)
		}
		if notes, err := d.Examine(Rules{ZeroVolume: "traded"}); err != nil || c.want != "" && !strings.Contains(strings.Join(notes, "\n"), c.want) {
			t.Errorf("%s: %q, error %v", name, notes, err)
		}
	}
	if cases != 8 {
		t.Errorf("%d cases", cases)
	}
}

// TestNewestFirst: rows in the order of time backwards, as TuShare gives them, are no faults, file by
// file; rows in no order are.
func TestNewestFirst(t *testing.T) {
	const header = "date,symbol,open,high,low,close\n"
	row := func(day int) string { return fmt.Sprintf("2024-01-%02d,A,1,1,1,%d\n", day, 1) }
	dir := t.TempDir()
	for name, days := range sorted.All(map[string][]int{"1.csv": {3, 2, 1}, "2.csv": {6, 5, 4}}) {
		text := header
		for _, day := range days {
			text += row(day)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	rules := DefaultRules()
	rules.Unsorted = "error"
	clean, report, err := Clean(mustRead(t, source(dir)).Series[0], rules, "keep")
	if err != nil || report.Faults() != 0 || len(clean.Records) != 6 {
		t.Fatalf("%+v, error %v", report, err)
	}
	for i, r := range clean.Records {
		if r.Time.Day() != i+1 {
			t.Errorf("row %d is of %s", i, r.Time)
		}
	}
	mixed := mustRead(t, source(write(t, "a.csv", header+row(3)+row(1)+row(2))))
	if _, report, err := Clean(mixed.Series[0], DefaultRules(), "keep"); err != nil || report.Unsorted != 1 {
		t.Errorf("%+v, error %v", report, err)
	}
	if _, _, err := Clean(mixed.Series[0], rules, "keep"); err == nil || !strings.Contains(err.Error(), "earlier than the row before") {
		t.Errorf("error %v", err)
	}
}

// TestVendorTicks: AkShare's ticks have times of the day alone, and the date is that of the file's
// name or its folder's; those of WindPy have no name for their times, and the volume of the day so far.
func TestVendorTicks(t *testing.T) {
	const akshare = "成交时间,成交价格,价格变动,成交量,成交金额,性质\n09:30:00,10,0,3,3000,卖盘\n09:31:00,10.1,0.1,2,2020,买盘\n09:36:00,10.25,0.1,1,1025,买盘\n"
	const want = "02 09:35:00 10 10.1 10 10.1 500 5020\n02 09:40:00 10.25 10.25 10.25 10.25 100 1025"
	cases := 0
	for name, c := range sorted.All(map[string]struct{ file, text, symbol, preset, want string }{
		"AkShare":           {"sz000001_20240102.csv", akshare, "sz000001", "akshare", want},
		"dashes":            {"2024-01-02-sz000001.csv", akshare, "sz000001", "akshare", want},
		"the folder's date": {"20240102/sz000001.csv", akshare, "sz000001", "akshare", want},
		"Eastmoney's":       {"000001 20240102.csv", "时间,成交价,手数,买卖盘性质\n09:30:00,10,3,卖盘\n09:31:00,10.1,2,买盘\n09:36:00,10.25,1,买盘\n", "000001", "akshare", want},
		"Sina's":            {"20240102.csv", "symbol,name,ticktime,price,volume,prev_price,kind\nsz000001,平安银行,09:30:00,10,300,0,D\nsz000001,平安银行,09:31:00,10.1,200,10,U\nsz000001,平安银行,09:36:00,10.25,100,10.1,U\n", "sz000001", "auto", want},
		"WindPy":            {"000001.SZ.csv", ",last,volume,amt,asize1,bsize1,ask1,bid1\n2024-01-02 09:30:00,10,300,3000,1,2,10.1,10\n2024-01-02 09:31:00,10.1,500,5020,3,4,10.2,10.1\n2024-01-02 09:36:00,10.25,600,6045,5,6,10.3,10.2\n", "000001.SZ", "wind", want},
		// A date in a name is part of it where the rows have dates.
		"a contract": {"IF20240315.csv", "time,price,volume\n2024-01-02 09:30:00,10,300\n2024-01-02 09:31:00,10.1,200\n2024-01-02 09:36:00,10.25,100\n", "IF20240315", "auto", want},
	}) {
		cases++
		path := filepath.Join(t.TempDir(), filepath.FromSlash(c.file))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		s, err := Detect(Source{Path: path})
		if err != nil || s.Preset != c.preset || s.Bars != "5m" {
			t.Errorf("%s: %+v, error %v", name, s, err)
			continue
		}
		for _, preset := range []string{"auto", c.preset} {
			s.Preset, s.Exchange = preset, "xshg"
			d, err := Read(s, nil)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			if got := strings.Join(describe(d), "\n"); got != c.want || d.Series[0].Symbol != c.symbol {
				t.Errorf("%s by %s: %s\n%s", name, preset, d.Series[0].Symbol, got)
			}
		}
	}
	if cases != 7 {
		t.Errorf("%d cases", cases)
	}
	s := source(write(t, "sz000001.csv", akshare), func(s *Source) { s.Bars = "5m" })
	if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), `column "成交时间": "09:30:00" is a time of the day without a date: name the date in the file's name, such as sz000001_20240102.csv`) {
		t.Errorf("error %v", err)
	}
}

// TestParquetClock: pandas writes times of the day as such, and an index without a name as a column
// that is called __index_level_0__.
func TestParquetClock(t *testing.T) {
	clock, index := filepath.Join(t.TempDir(), "sz000001_20240102.parquet"), filepath.Join(t.TempDir(), "000001.SZ.parquet")
	schema := arrow.NewSchema([]arrow.Field{{Name: "成交时间", Type: arrow.FixedWidthTypes.Time64us}, {Name: "成交价格", Type: arrow.PrimitiveTypes.Float64}, {Name: "成交量", Type: arrow.PrimitiveTypes.Int64}}, nil)
	writeRecord(t, clock, schema, func(b *array.RecordBuilder) {
		b.Field(0).(*array.Time64Builder).AppendValues([]arrow.Time64{34_200_000_000, 34_203_500_000}, nil)
		b.Field(1).(*array.Float64Builder).AppendValues([]float64{10, 10.1}, nil)
		b.Field(2).(*array.Int64Builder).AppendValues([]int64{3, 2}, nil)
	})
	d := mustRead(t, source(clock, func(s *Source) { s.Bars = "ticks=1" }))
	if got := strings.Join(describe(d), "\n"); got != "02 09:30:00 10 10 10 10 300 3000\n02 09:30:03 10.1 10.1 10.1 10.1 200 2020" {
		t.Errorf("%s", got)
	}
	fields := []arrow.Field{}
	for _, name := range []string{"OPEN", "HIGH", "LOW", "CLOSE", "AMT"} {
		fields = append(fields, arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64})
	}
	schema = arrow.NewSchema(append(fields, arrow.Field{Name: "__index_level_0__", Type: arrow.FixedWidthTypes.Date32}), nil)
	writeRecord(t, index, schema, func(b *array.RecordBuilder) {
		for i := range fields {
			b.Field(i).(*array.Float64Builder).Append(5)
		}
		b.Field(len(fields)).(*array.Date32Builder).Append(19724)
	})
	d = mustRead(t, source(index))
	if r := d.Series[0].Records[0]; d.Series[0].Symbol != "000001.SZ" || formatTime(r.Time) != "2024-01-02" || r.Close != 5 || r.Quote[Amount] != 5 {
		t.Errorf("%s %+v", d.Series[0].Symbol, r)
	}
}

func writeRecord(t *testing.T, path string, schema *arrow.Schema, fill func(*array.RecordBuilder)) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w, err := pqarrow.NewFileWriter(schema, f, nil, pqarrow.DefaultWriterProps())
	if err != nil {
		t.Fatal(err)
	}
	b := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	fill(b)
	rec := b.NewRecord()
	if err := w.Write(rec); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
