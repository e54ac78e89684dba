package bars

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// ticksCSV writes a file of ticks: lines of "09:30:02 10.82 500".
func ticksCSV(t *testing.T, header string, lines ...string) string {
	t.Helper()
	text := header + "\n"
	for _, l := range lines {
		cells := strings.Fields(l)
		if !strings.Contains(cells[0], "T") {
			cells[0] = "2024-03-04T" + cells[0]
		}
		text += cells[0] + ",A," + strings.Join(cells[1:], ",") + "\n"
	}
	path := filepath.Join(t.TempDir(), "ticks.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// describe writes bars as "15:04:05 open high low close volume amount".
func describe(d *Data) (list []string) {
	for _, s := range d.Series {
		for _, r := range s.Records {
			list = append(list, fmt.Sprintf("%s %g %g %g %g %g %g", r.Time.Format("02 15:04:05"), r.Open, r.High, r.Low, r.Close, r.Volume, r.Quote[Amount]))
		}
	}
	return list
}

const tickHeader = "datetime,symbol,price,volume"

// TestTickBars compares bars with those that were made by hand.
func TestTickBars(t *testing.T) {
	// An auction before the opening, the break from 11:30 to 13:00, a report after it has begun,
	// and the next day.
	ticks := []string{
		"09:25:02 10 100", "09:30:00 11 200", "09:34:59 9 50", "09:35:00 12 300", "11:29:58 12 10", "11:30:02 13 20", "13:00:01 14 40", "15:00:00 15 1000",
		"2024-03-05T09:30:01 16 30", "2024-03-05T09:30:01 17 60",
	}
	ran := 0
	for name, c := range sorted.All(map[string]struct {
		bars string
		want []string
	}{
		"time": {"5m", []string{
			"04 09:35:00 10 11 9 9 350 3650", "04 09:40:00 12 12 12 12 300 3600", "04 11:30:00 12 13 12 13 30 380", "04 13:05:00 14 14 14 14 40 560", "04 15:00:00 15 15 15 15 1000 15000",
			"05 09:35:00 16 17 16 17 90 1500",
		}},
		"long":   {"90m", []string{"04 11:00:00 10 12 9 12 650 7250", "04 11:30:00 12 13 12 13 30 380", "04 14:30:00 14 14 14 14 40 560", "04 15:00:00 15 15 15 15 1000 15000", "05 11:00:00 16 17 16 17 90 1500"}},
		"day":    {"1d", []string{"04 00:00:00 10 15 9 15 1720 23190", "05 00:00:00 16 17 16 17 90 1500"}},
		"volume": {"volume=300", []string{"04 09:30:00 10 11 10 11 300 3200", "04 09:35:00 9 12 9 12 350 4050", "04 11:30:02 12 13 12 13 30 380", "04 15:00:00 14 15 14 15 1040 15560", "05 09:30:01 16 17 16 17 90 1500"}},
		"dollar": {"dollar=4000", []string{"04 09:35:00 10 12 9 12 650 7250", "04 11:30:02 12 13 12 13 30 380", "04 15:00:00 14 15 14 15 1040 15560", "05 09:30:01 16 17 16 17 90 1500"}},
		// Two ticks of one instant are in one bar, so that no two bars have one time.
		"ticks": {"ticks=1", []string{
			"04 09:25:02 10 10 10 10 100 1000", "04 09:30:00 11 11 11 11 200 2200", "04 09:34:59 9 9 9 9 50 450", "04 09:35:00 12 12 12 12 300 3600", "04 11:29:58 12 12 12 12 10 120", "04 11:30:02 13 13 13 13 20 260",
			"04 13:00:01 14 14 14 14 40 560", "04 15:00:00 15 15 15 15 1000 15000", "05 09:30:01 16 17 16 17 90 1500",
		}},
	}) {
		s := DefaultSource()
		s.Path, s.Bars, s.Exchange = ticksCSV(t, tickHeader, ticks...), c.bars, "xshg"
		d, err := Read(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := describe(d); strings.Join(got, "\n") != strings.Join(c.want, "\n") {
			t.Errorf("%s:\n%s", name, strings.Join(got, "\n"))
		}
		ran++
	}
	if ran != 6 {
		t.Errorf("%d cases", ran)
	}
}

// TestTickSessions reads a night session, which has one date more than it has days, and leaves out
// what belongs to none.
func TestTickSessions(t *testing.T) {
	s := DefaultSource()
	s.Path = ticksCSV(t, tickHeader, "20:59:00 1 1", "21:00:00 2 1", "23:59:59 3 1", "2024-03-05T00:00:00 4 1", "2024-03-05T02:30:10 5 1", "2024-03-05T09:00:00 6 1")
	s.Bars, s.Sessions = "ticks=100", []string{"21:00-02:30", "09:00-11:30"}
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "05 02:30:10 2 5 2 5 4 14\n05 09:00:00 6 6 6 6 1 6"
	if got := strings.Join(describe(d), "\n"); got != want {
		t.Errorf("%s", got)
	}
	notes, err := d.Examine(DefaultRules())
	if err != nil || len(notes) != 1 || !strings.Contains(notes[0], "left out: 1, the first in line 2, 2024-03-04 20:59:00") {
		t.Errorf("%v, %v", notes, err)
	}
}

// TestWindTicks reads the snapshots that Wind exports as they are: volume and amount are the day's so
// far, the symbol has Wind's name, and every level of the book counts.
func TestWindTicks(t *testing.T) {
	const want = "04 09:35:00 10 10.1 10 10.1 150 1505\n04 09:40:00 10.2 10.2 10.2 10.2 30 306\n05 09:35:00 10.3 10.3 10.3 10.3 40 412"
	ran := 0
	for name, text := range sorted.All(map[string]string{
		"WindPy": "windcode,time,last,volume,amt,bid1,ask1,bid2,ask2,bsize1,asize1,bsize2,asize2\n" +
			"000001.SZ,2024-03-04 09:30:00,10,100,1000,10,10.2,9,11,5,6,7,8\n000001.SZ,2024-03-04 09:31:00,10.1,150,1505,10,10.1,9,11,1,3,2,4\n000001.SZ,2024-03-04 09:36:00,10.2,180,1811,10,10.2,9,11,1,2,3,4\n000001.SZ,2024-03-05 09:31:00,10.3,40,412,10,10.3,9,11,4,3,2,1\n",
		"exported": gb18030(t, "万得代码,交易所代码,自然日,时间,成交价,成交量,成交额,当日累计成交量,当日成交额,申卖价1,申卖价2,申卖量1,申卖量2,申买价1,申买价2,申买量1,申买量2\n"+
			"000001.SZ,1,20240304,93000000,10,100,1000,100,1000,10.2,11,6,8,10,9,5,7\n000001.SZ,1,20240304,93100500,10.1,50,505,150,1505,10.1,11,3,4,10,9,1,2\n000001.SZ,1,20240304,93600000,10.2,30,306,180,1811,10.2,11,2,4,10,9,1,3\n000001.SZ,1,20240305,93100000,10.3,40,412,40,412,10.3,11,3,1,10,9,4,2\n"),
		"of the terminal": gb18030(t, "Wind代码,日期,时间,最新价,成交量(手),成交额(万元),买一价,卖一价,买一量(手),卖一量(手),买二量(手),卖二量(手)\n"+
			"000001.SZ,2024-03-04,09:30:00,10,1,0.1,10,10.2,0.05,0.06,0.07,0.08\n000001.SZ,2024-03-04,09:31:00,10.1,1.5,0.1505,10,10.1,0.01,0.03,0.02,0.04\n000001.SZ,2024-03-04,09:36:00,10.2,1.8,0.1811,10,10.2,0.01,0.02,0.03,0.04\n000001.SZ,2024-03-05,09:31:00,10.3,0.4,0.0412,10,10.3,0.04,0.03,0.02,0.01\n"),
	}) {
		path := write(t, "ticks.csv", text)
		s, err := Detect(Source{Path: path})
		if err != nil || s.Preset != "wind" || s.Bars != "5m" {
			t.Fatalf("%s: %+v, error %v", name, s, err)
		}
		for _, preset := range []string{"wind", "auto"} {
			s.Preset, s.Exchange = preset, "xshg"
			d, err := Read(s, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i := range d.Series[0].Records {
				r := &d.Series[0].Records[i]
				r.Volume, r.Quote[Amount] = math.Round(r.Volume*1e6)/1e6, math.Round(r.Quote[Amount]*1e6)/1e6
			}
			r := d.Series[0].Records[0]
			if got := strings.Join(describe(d), "\n"); got != want || d.Series[0].Symbol != "000001.SZ" || math.Abs(r.Quote[Depth]-10) > 1e-9 || math.Abs(r.Quote[Spread]-0.1) > 1e-9 {
				t.Errorf("%s by %s: %s, depth %v, spread %v\n%s", name, preset, d.Series[0].Symbol, r.Quote[Depth], r.Quote[Spread], got)
			}
		}
		// Whoever names the column says what it is.
		s.Columns.Volume = map[string]string{"WindPy": "volume", "exported": "成交量", "of the terminal": "成交量(手)"}[name]
		if d, err := Read(s, nil); err != nil || name == "exported" && d.Series[0].Records[0].Volume != 150 || name == "WindPy" && d.Series[0].Records[0].Volume != 250 {
			t.Errorf("%s with a column of its own: error %v", name, err)
		}
		ran++
	}
	if ran != 3 {
		t.Errorf("%d cases", ran)
	}
	for text, want := range sorted.All(map[string]string{"09:30:00.5": "09:30:00.5", "93000": "09:30:00", "145959999": "14:59:59.999", "0930": "00:09:30", "25:00:00": "", "noon": "", "-1": "", "246060": ""}) {
		at, err := onClock(time.Date(2024, 3, 4, 0, 0, 0, 0, time.UTC), text)
		if got := at.Format("15:04:05.999"); (err != nil) != (want == "") || err == nil && got != want {
			t.Errorf("%q is %s, error %v, expected %s", text, got, err, want)
		}
	}
}

// TestTicksThatLookLikeTotals: volumes that never fall within a day are reported.
func TestTicksThatLookLikeTotals(t *testing.T) {
	for last, want := range sorted.All(map[string]int{"900": 1, "5": 0}) {
		var lines []string
		for i := range 30 {
			lines = append(lines, fmt.Sprintf("09:30:%02d 10 %d", i, 10*i+10))
		}
		s := DefaultSource()
		s.Path, s.Bars = ticksCSV(t, tickHeader, append(lines, "09:31:00 10 "+last, "2024-03-05T09:30:00 10 1")...), "5m"
		d, err := Read(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		notes, err := d.Examine(DefaultRules())
		if err != nil || strings.Count(strings.Join(notes, "\n"), "set source.cumulative: true if it is") != want {
			t.Errorf("after %s: %q, error %v", last, notes, err)
		}
		s.Cumulative = true
		if d, err = Read(s, nil); (err == nil) != (want == 1) || err == nil && len(d.totals) > 0 {
			t.Errorf("as totals: error %v", err)
		}
	}
}

// TestBookBars makes bars of snapshots of a book whose volume is the day's total.
func TestBookBars(t *testing.T) {
	s := DefaultSource()
	s.Path = ticksCSV(t, "datetime,symbol,last,volume,amount,bid1,bid2,ask1,ask2,bid_size1,bid_size2,ask_size1,ask_size2",
		"09:25:00 0 0 0 0 0 10.2 0 0 0 7 0", "09:30:00 10 100 1000 10 9 10.2 11 5 6 7 8", "09:31:00 10.1 150 1505 10 9 10.1 11 1 2 3 4", "09:36:00 10.1 150 1505 0 0 10.1 11 0 0 3 4")
	s.Bars, s.Exchange, s.Cumulative = "5m", "xshg", true
	if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), "the price is 0") {
		t.Errorf("a price of 0: %v", err)
	}
	s.Path = ticksCSV(t, "datetime,symbol,last,volume,amount,bid1,bid2,ask1,ask2,bid_size1,bid_size2,ask_size1,ask_size2",
		"09:30:00 10 100 1000 10 9 10.2 11 5 6 7 8", "09:31:00 10.1 150 1505 10 9 10.1 11 1 2 3 4", "09:36:00 10.1 150 1505 0 0 10.1 11 0 0 3 4")
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := "04 09:35:00 10 10.1 10 10.1 150 1505\n04 09:40:00 10.1 10.1 10.1 10.1 0 0"
	if got := strings.Join(describe(d), "\n"); got != want {
		t.Errorf("%s", got)
	}
	for i, want := range [][]float64{{10.05, 0.1, 10}, {10.05, 0.1, 7}} {
		for k, v := range d.Series[0].Records[i].Extra {
			if math.Abs(v-want[k]) > 1e-12 {
				t.Errorf("bar %d: %s is %v", i, d.Extra[k], v)
			}
		}
		// Accounts find the same where they look for it.
		if q := d.Series[0].Records[i].Quote; math.Abs(q[Spread]-want[1]) > 1e-12 || q[Depth] != want[2] || !slices.Contains(d.Series[0].Quoted, Spread) || !slices.Contains(d.Series[0].Quoted, Depth) {
			t.Errorf("bar %d: %v", i, q)
		}
	}
}

func TestBadTicks(t *testing.T) {
	ran := 0
	for name, c := range sorted.All(map[string]struct {
		header string
		lines  []string
		want   string
	}{
		"order":    {tickHeader, []string{"09:30:05 10 1", "09:30:04 10 1"}, "ticks.csv: line 3: A at 2024-03-04 09:30:04: it is earlier than the row before, 2024-03-04 09:30:05"},
		"volume":   {tickHeader, []string{"09:30:05 10 -1"}, "ticks.csv: line 2: A at 2024-03-04 09:30:05: the volume, -1, is negative"},
		"price":    {tickHeader, []string{"09:30:05 -10 1"}, "line 2: A at 2024-03-04 09:30:05: "},
		"zero":     {tickHeader, []string{"09:30:05 0 1"}, "line 2: A at 2024-03-04 09:30:05: the price is 0"},
		"decimal":  {tickHeader, []string{"09:30:05 10 1", "09:30:06 1000 1"}, "line 3: A at 2024-03-04 09:30:06: the price is 1000, and that of the tick before 10"},
		"text":     {tickHeader, []string{"09:30:05 ten 1"}, `line 2: A at 2024-03-04 09:30:05: column "price": "ten" is not a number`},
		"crossed":  {"datetime,symbol,bid,ask", []string{"09:30:05 10 9"}, "line 2: A at 2024-03-04 09:30:05: the bid, 10, is above the ask, 9"},
		"no price": {"datetime,symbol,close", []string{"09:30:05 10"}, "no price (looked for price, last"},
		"no time":  {"when,symbol,price", []string{"09:30:05 10"}, "no time"},
	}) {
		s := DefaultSource()
		s.Path, s.Bars = ticksCSV(t, c.header, c.lines...), "5m"
		if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		ran++
	}
	s := DefaultSource()
	s.Path, s.Bars, s.Cumulative = ticksCSV(t, tickHeader, "09:30:05 10 5", "09:30:06 10 4"), "5m", true
	if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), "the day's total falls from 5 to 4") {
		t.Errorf("%v", err)
	}
	for _, size := range []string{"5", "0m", "volume=0", "lots=4", "ticks=x", "30h"} {
		s.Bars = size
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "is no size of bars") {
			t.Errorf("%s: %v", size, err)
		}
		ran++
	}
	if ran != 15 {
		t.Errorf("%d cases", ran)
	}
}

// TestExchange compares days and hours with New York's.
func TestExchange(t *testing.T) {
	var lines []string
	for _, day := range []string{"2013-12-20", "2013-12-23", "2013-12-24", "2013-12-25", "2013-12-27"} {
		for h := 10; h < 16; h++ {
			lines = append(lines, fmt.Sprintf("%sT%d:00:00 10 10 10 10 %d", day, h, h))
		}
	}
	s := DefaultSource()
	s.Path, s.Exchange = ticksCSV(t, "datetime,symbol,open,high,low,close,volume", lines...), "xnys"
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	notes, err := d.Examine(DefaultRules())
	want := []string{
		"the data lack 2013-12-26, a trading day of XNYS",
		"bars on days on which XNYS does not trade: A at 2013-12-25 10:00:00 (ticks.csv, line 20)",
		"bars outside the hours of XNYS: A at 2013-12-24 14:00:00 (ticks.csv, line 18)",
	}
	if err != nil || strings.Join(notes, "\n") != strings.Join(want, "\n") {
		t.Errorf("%q, %v", notes, err)
	}
	rules := DefaultRules()
	rules.Calendar = "error"
	if _, err := d.Examine(rules); err == nil || !strings.Contains(err.Error(), want[0]) {
		t.Errorf("%v", err)
	}
	if r := d.Exchange(); len(r.HalfDays) != 1 || r.HalfDays[0] != "2013-12-24" {
		t.Errorf("%+v", r)
	}
	s.Exchange = "xlon"
	if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), `source.exchange: there is no calendar "xlon"`) {
		t.Errorf("%v", err)
	}
}
