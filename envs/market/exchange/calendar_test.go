package exchange

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	d, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDays compares single days with what is known of them.
func TestDays(t *testing.T) {
	for _, c := range []struct {
		exchange, closed, open string
		days                   [2]string // and how many trading days there are between
		count                  int
	}{
		{
			"xnys",
			`1994-04-27 1998-01-19 1999-12-24 2000-04-21 2001-09-11 2001-09-14 2004-06-11 2005-03-25 2006-01-02 2007-01-02 2010-12-24 2011-12-26 2012-10-30 2018-12-05 2020-07-03
			 2021-12-24 2022-06-20 2023-01-02 2024-03-29 2025-01-09 2026-07-03 2024-06-15`,
			"1997-01-20 2000-01-03 2001-09-17 2010-12-31 2021-06-18 2021-12-31 2022-01-03 2024-07-05 2027-12-31",
			[2]string{"2000-01-03", "2021-12-31"}, 5536,
		},
		{"xshg", "2005-02-07 2008-01-01 2019-02-04 2019-02-08 2020-01-31 2024-02-09 2025-01-28 2023-05-03 2019-02-03", "2005-01-04 2019-02-01 2019-02-11 2020-02-03", [2]string{"2010-01-04", "2025-04-07"}, 3704},
	} {
		cal, err := Open(c.exchange)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range strings.Fields(c.closed) {
			if cal.Trades(at(t, d)) || !cal.Knows(at(t, d)) {
				t.Errorf("%s trades on %s", cal.Name, d)
			}
		}
		for _, d := range strings.Fields(c.open) {
			if !cal.Trades(at(t, d)) {
				t.Errorf("%s does not trade on %s", cal.Name, d)
			}
		}
		none := func(time.Time) bool { return false }
		if n := len(cal.Lacking(at(t, c.days[0]), at(t, c.days[1]), none)); n != c.count {
			t.Errorf("%s has %d days, expected %d", cal.Name, n, c.count)
		}
	}
}

// TestHalfDays are all of New York's from 2000 to 2015, after its own announcements.
func TestHalfDays(t *testing.T) {
	cal, err := Open("XNYS")
	if err != nil {
		t.Fatal(err)
	}
	want := `2000-07-03 2000-11-24 2001-07-03 2001-11-23 2001-12-24 2002-07-05 2002-11-29 2002-12-24 2003-07-03 2003-11-28 2003-12-24 2003-12-26 2004-11-26 2005-11-25 2006-07-03
	 2006-11-24 2007-07-03 2007-11-23 2007-12-24 2008-07-03 2008-11-28 2008-12-24 2009-11-27 2009-12-24 2010-11-26 2011-11-25 2012-07-03 2012-11-23 2012-12-24 2013-07-03 2013-11-29
	 2013-12-24 2014-07-03 2014-11-28 2014-12-24 2015-11-27 2015-12-24`
	var got []string
	for d := at(t, "2000-01-01"); d.Year() < 2016; d = d.AddDate(0, 0, 1) {
		if cal.Trades(d) && cal.Sessions(d)[0].Close == 13*time.Hour {
			got = append(got, d.Format(time.DateOnly))
		}
	}
	if strings.Join(got, " ") != strings.Join(strings.Fields(want), " ") {
		t.Errorf("%v", got)
	}
}

func TestFile(t *testing.T) {
	write := func(text string) string {
		path := filepath.Join(t.TempDir(), "days.csv")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	cal, err := Open(write("date,open,close,break_start,break_end\n2024-01-02,09:30,15:00,11:30,13:00\n2024-01-04,09:30,11:30,,\n"))
	if err != nil {
		t.Fatal(err)
	}
	if cal.Trades(at(t, "2024-01-03")) || !cal.Trades(at(t, "2024-01-04")) || cal.Knows(at(t, "2024-01-05")) || len(cal.Sessions(at(t, "2024-01-02"))) != 2 ||
		cal.Sessions(at(t, "2024-01-04"))[0].Close != 11*time.Hour+30*time.Minute {
		t.Errorf("%+v", cal)
	}
	night, err := ParseSession("21:00-02:30")
	if err != nil || night.Close != 26*time.Hour+30*time.Minute {
		t.Errorf("%v, %v", night, err)
	}
	for text, want := range sorted.All(map[string]string{
		"day\n2024-01-02\n":                              "the columns are day",
		"date\n":                                         "there are no days",
		"date\n2024-01-02\n2024-01-02\n":                 "line 3: 2024-01-02 is there twice",
		"date\n2 January\n":                              `line 2: "2 January" is not a date`,
		"date,open,close\n2024-01-02,9 h,15:00\n":        `line 2: "9 h" is not a time of day`,
		"date,open,close\n2024-01-02,16:00,15:00\n":      "line 2: expected open before close",
		"date,open\n2024-01-02,16:00\n":                  "the columns are date, open",
		"date,open,close\n2024-01-02,09:30,15:00,3:00\n": "line 2",
	}) {
		if _, err := Open(write(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Open("xlon"); err == nil || !strings.Contains(err.Error(), "there are xnys, xshe, xshg") {
		t.Error(err)
	}
}
