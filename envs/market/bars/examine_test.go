package bars

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// bars of symbols on weekdays in the format of a source: the text of a time by symbol and bar, and
// a volume.
func examined(t *testing.T, s Source, rules Rules, header string, symbols []string, n int, row func(symbol string, day time.Time, i int) []string) ([]string, error) {
	t.Helper()
	var b strings.Builder
	b.WriteString(header + "\n")
	for _, sym := range symbols {
		at := time.Date(2020, 1, 6, 0, 0, 0, 0, time.UTC)
		for i := range n {
			for at.Weekday() == time.Saturday || at.Weekday() == time.Sunday {
				at = at.AddDate(0, 0, 1)
			}
			for _, r := range row(sym, at, i) {
				b.WriteString(r + "\n")
			}
			at = at.AddDate(0, 0, 1)
		}
	}
	s.Path = write(t, "bars.csv", b.String())
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d.Examine(rules)
}

func TestExamine(t *testing.T) {
	const header = "date,symbol,open,high,low,close,volume"
	line := func(time, symbol string, volume any) string {
		return fmt.Sprintf("%s,%s,10,11,9,10,%v", time, symbol, volume)
	}
	dated := func(layout string, shift func(symbol string, i int) time.Duration) func(string, time.Time, int) []string {
		return func(symbol string, day time.Time, i int) []string {
			return []string{line(day.Add(shift(symbol, i)).Format(layout), symbol, 100+i)}
		}
	}
	// sessions of an hour from 9:30 to 15:30, named by their beginnings or their ends.
	hourly := func(shift func(symbol string) time.Duration) func(string, time.Time, int) []string {
		return func(symbol string, day time.Time, i int) (rows []string) {
			for h := range 7 {
				rows = append(rows, line(day.Add(9*time.Hour+30*time.Minute+time.Duration(h)*time.Hour+shift(symbol)).Format("2006-01-02 15:04"), symbol, 100+i+h))
			}
			return rows
		}
	}
	volume := func(v any) func(string, time.Time, int) []string {
		return func(symbol string, day time.Time, i int) []string {
			if symbol == "B" {
				return []string{line(day.Format(time.DateOnly), symbol, v)}
			}
			return []string{line(day.Format(time.DateOnly), symbol, 100+i)}
		}
	}
	none := func(string, int) time.Duration { return 0 }
	traded := func(r *Rules) { r.ZeroVolume = "traded" }
	note := func(r *Rules) { r.Clock = "note" }
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		row    func(string, time.Time, int) []string
		source func(*Source)
		rules  func(*Rules)
		err    string
		note   string
	}{
		"nothing":        {row: dated(time.DateOnly, none)},
		"nothing, hours": {row: hourly(func(string) time.Duration { return 0 })},
		"a close by the clock": {row: dated("2006-01-02 15:04", func(s string, _ int) time.Duration {
			return map[string]time.Duration{"A": 0, "B": 16 * time.Hour}[s]
		}), err: "daily bars have different clock times on 60 days, and each symbol would be missing at the times of the others: on 2020-01-06 the bar of A is at 00:00:00 and that of B at 16:00:00; set quality.clock: note"},
		"a close by the clock, meant": {row: dated("2006-01-02 15:04", func(s string, _ int) time.Duration {
			return map[string]time.Duration{"A": 0, "B": 16 * time.Hour}[s]
		}), rules: note, note: "daily bars have different clock times on 60 days"},
		"changed on the way": {row: dated("2006-01-02 15:04", func(s string, i int) time.Duration {
			if s == "B" && i >= 50 {
				return 15 * time.Hour
			}
			return 0
		}), err: "different clock times on 10 days"},
		"summer time of all": {row: dated("2006-01-02 15:04", func(_ string, i int) time.Duration {
			return time.Duration(4+i/40) * time.Hour
		})},
		"beginnings and ends": {row: hourly(func(s string) time.Duration { return map[string]time.Duration{"A": 0, "B": time.Hour}[s] }),
			err: "the bars of A begin at 09:30:00 and those of B at 10:30:00, with a step of 1h0m: some are named by their beginning"},
		"half an hour": {row: hourly(func(s string) time.Duration { return map[string]time.Duration{"A": 0, "B": 30 * time.Minute}[s] }), err: "those of B at 10:00:00"},
		"days and hours": {row: func(s string, day time.Time, i int) []string {
			if s == "A" {
				return []string{line(day.Format("2006-01-02 15:04"), s, i)}
			}
			return hourly(func(string) time.Duration { return 0 })(s, day, i)
		}, err: "A has one bar a day and B has 7"},
		"midnights of UTC in New York": {row: dated("2006-01-02T15:04:05Z", none), source: func(s *Source) { s.TimeFormat, s.Timezone = time.RFC3339, "America/New_York" },
			err: "the times are midnights of UTC, which stand for dates; in the time zone of source.timezone 120 of them fall on another date"},
		"midnights of UTC": {row: dated("2006-01-02T15:04:05Z", none), source: func(s *Source) { s.TimeFormat = time.RFC3339 }},
		"midnights of Shanghai": {row: dated("2006-01-02T15:04:05Z", func(string, int) time.Duration { return -8 * time.Hour }), source: func(s *Source) { s.TimeFormat = time.RFC3339 },
			err: "24 of 120 daily bars are dated on Sundays and 0 on Fridays: set source.timezone to that of the exchange; set quality.clock: note"},
		"midnights of Shanghai, told": {row: dated("2006-01-02T15:04:05Z", func(string, int) time.Duration { return -8 * time.Hour }), source: func(s *Source) { s.TimeFormat, s.Timezone = time.RFC3339, "Asia/Shanghai" }},
		"Sundays by date":             {row: dated(time.DateOnly, func(string, int) time.Duration { return -24 * time.Hour }), note: "24 of 120 daily bars are dated on Sundays and 0 on Fridays: if the exchange trades from Monday to Friday"},
		"a hole": {row: func(s string, day time.Time, i int) []string {
			if i >= 40 {
				day = day.AddDate(0, 6, 0)
			}
			return []string{line(day.Format(time.DateOnly), s, 100+i)}
		}, note: "no symbol has a bar between 2020-02-28 and 2020-09-02, 187 days: a part of the data is missing, or a date is wrong"},
		"upper and lower case": {row: func(s string, day time.Time, i int) []string {
			return []string{line(day.Format(time.DateOnly), map[string]string{"A": "x", "B": "X"}[s], 100+i)}
		}, note: "the symbols X and x differ by upper and lower case only"},
		"no volume":         {row: volume(0), err: "every volume is 0 for B, which says that they were never traded (quality.zero_volume: suspended); set it to traded"},
		"no volume, traded": {row: volume(0), rules: traded, note: "every volume is 0 for B"},
		"blank volume":      {row: volume(""), note: "every volume is blank for B"},
		"constant volume":   {row: volume(100000), note: "every volume is the same number for B: it was not measured"},
	}) {
		cases++
		s, rules := DefaultSource(), DefaultRules()
		if c.source != nil {
			c.source(&s)
		}
		if c.rules != nil {
			c.rules(&rules)
		}
		notes, err := examined(t, s, rules, header, []string{"A", "B"}, 60, c.row)
		if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: error %v, expected %q", name, err, c.err)
		}
		if text := strings.Join(notes, "\n"); (text == "") != (c.note == "") || !strings.Contains(text, c.note) {
			t.Errorf("%s: notes %q, expected %q", name, text, c.note)
		}
	}
	if cases != 20 {
		t.Errorf("%d cases, expected 20", cases)
	}
}

// A stock that the file itself calls suspended all the time may have no volume.
func TestSuspendedIsNotZeroVolume(t *testing.T) {
	notes, err := examined(t, DefaultSource(), DefaultRules(), "date,symbol,open,high,low,close,volume,suspended", []string{"A"}, 60, func(s string, day time.Time, _ int) []string {
		return []string{day.Format(time.DateOnly) + "," + s + ",10,11,9,10,0,1"}
	})
	if err != nil || len(notes) > 0 {
		t.Errorf("%v, %v", notes, err)
	}
}

func TestSuspendedIsAFlag(t *testing.T) {
	_, err := Read(source(write(t, "a.csv", "date,open,high,low,close,suspended\n2020-01-02,1,1,1,1,2\n")), nil)
	if err == nil || !strings.Contains(err.Error(), `line 2, column "suspended": 2 is neither 0 nor 1`) {
		t.Errorf("error %v", err)
	}
}

func TestOpenOffRange(t *testing.T) {
	_, r, err := Clean(Series{Symbol: "A", Records: []Record{flat(0, 10), rec(1, 14, 11, 9, 10, 5), rec(2, 10, 11, 9, 12, 5), rec(3, 5, 11, 9, 10, 5)}}, DefaultRules(), "keep")
	if err != nil || r.OpenOffRange != 2 || r.Inconsistent != 3 || !strings.Contains(r.FirstOpenOff, "2020-01-02 (a.csv, line 3): open 14, high 11, low 9, close 10: the open is off the day's range") {
		t.Errorf("%+v, %v", r, err)
	}
}
