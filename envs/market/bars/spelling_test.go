package bars

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// TestNumbersAsPeopleWriteThem: thousands separators and the marks of millions are read, and what may
// mean two numbers is refused by its reason.
func TestNumbersAsPeopleWriteThem(t *testing.T) {
	for text, want := range sorted.All(map[string]float64{
		"1,234": 1234, "-1,234,567.89": -1234567.89, "12,34,567.5": 1234567.5, "1,00,000": 100000, "+12,345": 12345,
		"1.2M": 1.2e6, "873.5K": 873.5e3, "12k": 12e3, "1.07B": 1.07e9, "2T": 2e12, "3.4万": 3.4e4, "1.23亿": 1.23e8, "2 万亿": 2e12, "1,234.5万": 1234.5e4,
		"1e3": 1000, ".5": 0.5, "True": 1,
	}) {
		if v, err := parseNumber(text); err != nil || v != want {
			t.Errorf("%q: %v, error %v, expected %v", text, v, err, want)
		}
	}
	for _, text := range []string{"", "-", "--", "#N/A", "None"} {
		if v, err := parseNumber(text); err != nil || !math.IsNaN(v) {
			t.Errorf("%q: %v, error %v, expected NaN", text, v, err)
		}
	}
	for text, want := range sorted.All(map[string]string{
		"12,5": "expected a point before the decimals", "1.234,56": "expected a point before the decimals", "1,2345": "expected a point before the decimals", "1 234.5": "expected a point before the decimals", "1'234.5": "expected a point before the decimals", "1,23": "expected a point before the decimals",
		"1,234,56": "expected a point before the decimals", "3.1%": "a percentage", "$12.5": "the sign of a currency", "abc": `"abc" is not a number`, "M": "is not a number", "infM": "is not a number", "1e3e3": "is not a number",
	}) {
		if v, err := parseNumber(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, error %v, expected %q", text, v, err, want)
		}
	}

	d := mustRead(t, source(write(t, "a.csv", "Date,Open,High,Low,Close,Volume\n2020-01-02,\"1,001.5\",\"1,010\",998,\"1,005\",1.2M\n")))
	if r := d.Series[0].Records[0]; r.Open != 1001.5 || r.High != 1010 || r.Close != 1005 || r.Volume != 1.2e6 {
		t.Errorf("%+v", r)
	}
	d = mustRead(t, source(write(t, "a.csv", "日期,开盘,最高,最低,收盘,成交量,成交额\n2020-01-02,1,2,1,2,3.4万,1.23亿\n")))
	if r := d.Series[0].Records[0]; r.Volume != 3.4e4*d.scale() || r.Quote[Amount] != 1.23e8 {
		t.Errorf("%+v", r)
	}
	// Where semicolons separate the cells a comma may be the decimal point.
	_, err := Read(source(write(t, "a.csv", "date;open;high;low;close\n2020-01-02;1,234;2;1;2\n")), nil)
	if err == nil || !strings.Contains(err.Error(), `line 2, column "open": "1,234" may be 1234 or 1.234`) {
		t.Errorf("error %v", err)
	}
}

// scale is that of the volumes of a file with Chinese names, which are taken for AkShare's.
func (d *Data) scale() float64 { return 100 }

// TestEncodings: UTF-16 with and without a byte order mark and lines that end in \r alone are read as
// UTF-8 is.
func TestEncodings(t *testing.T) {
	want := mustRead(t, source(write(t, "a.csv", two))).Series
	coded := func(text string, high, low int) string {
		var b []byte
		for _, u := range utf16.Encode([]rune(text)) {
			pair := [2]byte{}
			pair[high], pair[low] = byte(u>>8), byte(u)
			b = append(b, pair[:]...)
		}
		return string(b)
	}
	long := two + strings.Repeat("\n", 0)
	for i := range 200 { // beyond what is looked at
		long += "2020-02-" + string([]byte{byte('0' + i/10%3), byte('1' + i%9)}) + ",A,21,23,20,22,22,1\n"
	}
	tabs := strings.ReplaceAll(two, ",", "\t")
	for name, text := range sorted.All(map[string]string{
		"little": coded("\ufeff"+two, 1, 0), "big": coded("\ufeff"+two, 0, 1), "no mark": coded(two, 1, 0), "no mark, big": coded(two, 0, 1),
		"as Excel writes it": coded("\ufeff"+strings.ReplaceAll(tabs, "\n", "\r\n"), 1, 0),
		"old Macintosh":      strings.ReplaceAll(two, "\n", "\r"), "both": coded("\ufeff"+strings.ReplaceAll(two, "\n", "\r"), 1, 0), "UTF-8 with a mark": "\ufeff" + strings.ReplaceAll(two, "\n", "\r"),
	}) {
		d, err := Read(source(write(t, "a.csv", text)), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, s := range d.Series {
			for k := range s.Records {
				got, wanted := &s.Records[k], &want[i].Records[k]
				if !SameRow(got, wanted) || !got.Time.Equal(wanted.Time) || got.Line != wanted.Line {
					t.Errorf("%s: %+v, expected %+v", name, got, wanted)
				}
			}
		}
	}
	if d := mustRead(t, source(write(t, "a.csv", strings.ReplaceAll(long, "\n", "\r"))), "A"); len(d.Series[0].Records) != 202 {
		t.Errorf("%d rows", len(d.Series[0].Records))
	}
}

// TestNumbersOfTime: days as Excel numbers them are read where that is said, and a column of two units
// or a time far beyond the calendar is refused.
func TestNumbersOfTime(t *testing.T) {
	const head = "date,open,high,low,close\n"
	excel := func(s *Source) { s.TimeFormat = "excel" }
	d := mustRead(t, source(write(t, "a.csv", head+"45293,1,1,1,1\n45294.395833333336,1,1,1,1\n"), excel))
	for i, want := range []string{"2024-01-02", "2024-01-03 09:30:00"} {
		if got := formatTime(d.Series[0].Records[i].Time); got != want {
			t.Errorf("%s, expected %s", got, want)
		}
	}
	for name, c := range sorted.All(map[string]struct {
		text, want string
		edit       func(*Source)
	}{
		"serials":             {"45293,1,1,1,1\n", `line 2, column "date": "45293" may be a day as Excel numbers them, 2024-01-02: set source.time_format: excel if it is`, func(*Source) {}},
		"no serial":           {"59,1,1,1,1\n", `"59" is not the serial number of a day, from 61, 1900-03-01`, excel},
		"seconds, then more":  {"1577923200,1,1,1,1\n1578009600000,1,1,1,1\n", `line 3, column "date": "1578009600000" looks like milliseconds since 1970, and the first time of the file like seconds`, func(*Source) {}},
		"milli, then seconds": {"1577923200000,1,1,1,1\n1578009600,1,1,1,1\n", `"1578009600" looks like seconds since 1970, and the first time of the file like milliseconds`, func(*Source) {}},
		"milli, then micro":   {"1735603200000,1,1,1,1\n1735689600000000,1,1,1,1\n", `looks like microseconds`, func(*Source) {}},
		"said to be seconds":  {"1577923200000,1,1,1,1\n", `"1577923200000" is in the year 51972`, func(s *Source) { s.TimeFormat = "unix" }},
	}) {
		if _, err := Read(source(write(t, "a.csv", head+c.text), c.edit), nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
		}
	}
}

// TestFarApart: times that are further apart than a time.Duration holds, or beyond the nanoseconds
// since 1970, are distinguished and their distance is right.
func TestFarApart(t *testing.T) {
	text := "date,open,high,low,close\n1300-01-01,1,1,1,1\n"
	for i := range 30 {
		text += time.Date(2024, 1, 1+i, 0, 0, 0, 0, time.UTC).Format(time.DateOnly) + ",1,1,1,1\n"
	}
	d := mustRead(t, source(write(t, "a.csv", text+"9999-12-31,1,1,1,1\n")))
	notes, err := d.Examine(DefaultRules())
	if want := "no symbol has a bar between 2024-01-30 and 9999-12-31, 2913144 days"; err != nil || !strings.Contains(strings.Join(notes, "\n"), want) {
		t.Errorf("%q, error %v, expected %q", notes, err, want)
	}
	a, b := time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC).Add(math.MaxInt64).Add(math.MaxInt64).Add(2) // 2⁶⁴ ns apart
	p, err := Align([]Series{{Symbol: "A", Records: []Record{{Bar: Bar{Time: a}}, {Bar: Bar{Time: b}}}}}, nil, DefaultCalendar(), nil)
	if err != nil || len(p.Times) != 2 {
		t.Errorf("%v, error %v", p, err)
	}
	for _, d := range []time.Duration{0, time.Hour, 25*time.Hour + 61*time.Second + 7, 100 * 365 * 24 * time.Hour} {
		if got := HoursBetween(a, a.Add(d)); got != d.Hours() {
			t.Errorf("%v: %v", d, got)
		}
	}
}

// TestBlankVolume: a blank volume is one of no trade once a row of the symbol had a volume, in files
// and row by row.
func TestBlankVolume(t *testing.T) {
	const text = "date,symbol,open,high,low,close,volume\n2020-01-02,A,1,1,1,1,\n2020-01-03,A,1,1,1,1,5\n2020-01-06,A,1,1,1,1,\n2020-01-07,A,1,1,1,1,7\n2020-01-02,B,1,1,1,1,\n2020-01-03,B,1,1,1,1,\n"
	d := mustRead(t, source(write(t, "a.csv", text)))
	for _, c := range []struct {
		rule string
		want []bool
	}{{"suspended", []bool{false, false, true, false, false, false}}, {"traded", make([]bool, 6)}} {
		rules := DefaultRules()
		rules.ZeroVolume = c.rule
		var whole, single []bool
		for _, s := range d.Series {
			clean, _, err := Clean(s, rules, "keep")
			if err != nil {
				t.Fatal(err)
			}
			x := NewIncremental(s.Symbol, DefaultSource(), rules, nil, func(string) {})
			for i := range s.Records {
				rec := s.Records[i]
				if _, err := x.Next(&rec, nil); err != nil {
					t.Fatal(err)
				}
				whole, single = append(whole, clean.Records[i].Suspended), append(single, rec.Suspended)
			}
		}
		for i, want := range c.want {
			if whole[i] != want || single[i] != want {
				t.Errorf("%s, row %d: suspended %v, row by row %v, expected %v", c.rule, i, whole[i], single[i], want)
			}
		}
	}
}

// TestInspectOfNothing: where the rules refuse every symbol, the reason is the error.
func TestInspectOfNothing(t *testing.T) {
	d := mustRead(t, source("testdata/dup_last.csv"))
	_, err := Inspect(d, DefaultRules(), DefaultCalendar(), "keep")
	if want := "check the data: symbol AAA: 2024-03-25 (dup_last.csv, line 62): differs from the row of the same time in line 61 (close 159.5 and 150); choose one with quality.duplicates"; err == nil || err.Error() != want {
		t.Errorf("error %v, expected %s", err, want)
	}
	_, _, clean := Clean(d.Series[0], DefaultRules(), "keep")
	if clean == nil || "check the data: "+clean.Error() != err.Error() {
		t.Errorf("who prepares the data is told %v", clean)
	}
	c := DefaultCalendar()
	c.From = NewDate(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	rules := DefaultRules()
	rules.Duplicates = "first"
	if _, err := Inspect(d, rules, c, "keep"); err == nil || err.Error() != "inspect: align: no rows from 2030-01-01 on" {
		t.Errorf("error %v", err)
	}
}
