package universe_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/universe"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestForms(t *testing.T) {
	table := "index,symbol,start_date,end_date,start_kind\nX,BB,2020-02-01,2020-03-01,rule\nX,BB,2020-01-01,2020-02-01,rule\nX,AA,2020-01-05,,rule\nY,AA,2020-01-01,,rule\n"
	instruments := "AA\t2020-01-05\t2099-12-31\nBB\t2020-01-01\t2020-01-31\nBB\t2020-02-01\t2020-02-29 15:00:00\n"
	for _, c := range []universe.Config{{Path: write(t, "c.csv", table), Index: "X"}, {Path: write(t, "x.txt", instruments)}} {
		u, err := universe.Read(c)
		if err != nil {
			t.Fatal(err)
		}
		spans := u.Spans("BB")
		if !slices.Equal(u.Symbols(), []string{"AA", "BB"}) || len(spans) != 2 || spans[0].To != spans[1].From || spans[1].To.String() != "2020-03-01" || len(u.Spans("AA")) != 1 {
			t.Errorf("%s: %v, %v", u.Name, u.Symbols(), spans)
		}
	}
}

func TestBadFiles(t *testing.T) {
	const header = "symbol,start_date,end_date\n"
	cases := []struct{ name, text, index, want string }{
		{"c.csv", header + "A,2020-01-01,\nA,2021-01-01,2022-01-01\n", "", "c.csv:3: A from 2021-01-01 until before 2022-01-01: this overlaps from 2020-01-01 on"},
		{"c.csv", header + "A,2020-01-02,2020-01-02\n", "", "c.csv:2: A from 2020-01-02 until before 2020-01-02: it ends before it has begun"},
		{"c.csv", header + "A,2020-13-02,\n", "", `c.csv:2: A: the column start_date: "2020-13-02"`},
		{"c.csv", header + "A,2020-01-02,soon\n", "", `the column end_date: "soon"`},
		{"c.csv", header + ",2020-01-02,\n", "", "c.csv:2: the column symbol is blank"},
		{"c.csv", header + "A,2020-01-02\n", "", "wrong number of fields"},
		{"c.csv", header, "", "nobody belongs"},
		{"c.csv", "ticker,from,to\n", "", "expected symbol, start_date and end_date"},
		{"c.csv", header + "A,2020-01-02,\n", "X", "there is no column index"},
		{"c.csv", "index," + header + "X,A,2020-01-02,\nY,A,2020-01-02,\n", "", "c.csv:3: there are several universes, such as X and Y: universe.index must name one"},
		{"c.csv", "index," + header + "X,A,2020-01-02,\n", "Z", `no row has the index "Z"; there are X`},
		{"x.txt", "A\t2020-01-01\n", "", "x.txt:1: "},
		{"x.txt", "A\t2020-01-01\t2020-02-01\n\nA\t2020-02-01\t2020-03-01\n", "", "x.txt:3: A from 2020-02-01 until before 2020-03-02: this overlaps"},
		{"x.txt", "A\t2020-02-01\t2020-01-01\n", "", "x.txt:1: A from 2020-02-01"},
		{"x.txt", "A\t2020\t2020-01-01\n", "", `the first day "2020"`},
	}
	for _, c := range cases {
		if _, err := universe.Read(universe.Config{Path: write(t, c.name, c.text), Index: c.index}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; expected %q", c.text, err, c.want)
		}
	}
}

// TestMembers has a symbol that is a member on days 3 to 5 of ten, and has no features on day 0.
func TestMembers(t *testing.T) {
	u, err := universe.Read(universe.Config{Path: write(t, "c.csv", "symbol,start_date,end_date\nA,2020-01-04,2020-01-07\n")})
	if err != nil {
		t.Fatal(err)
	}
	var days []time.Time
	for d := range 10 {
		days = append(days, time.Date(2020, 1, 1+d, 0, 0, 0, 0, time.UTC))
	}
	// Two bars on each day.
	var halves []time.Time
	for _, d := range days {
		halves = append(halves, d.Add(10*time.Hour), d.Add(14*time.Hour))
	}
	cases := []struct {
		c      universe.Config
		warmup int
		times  []time.Time
		want   string // . outside, M member, L leaving
	}{
		{universe.Config{}, 2, days, "...MMMLLLL"},
		{universe.Config{}, 5, days, ".....MLLLL"},
		{universe.Config{}, 7, days, ".........."},
		{universe.Config{Exit: universe.Hold}, 1, days, "...MMM...."},
		{universe.Config{Exit: universe.Sell, ExitDays: 2}, 1, days, "...MMM..LL"},
		{universe.Config{Exit: universe.Sell, ExitDays: 1}, 2, halves, "......MMMMMM..LLLLLL"},
	}
	for _, c := range cases {
		defined, out := make([]bool, len(c.times)), make([]universe.Membership, len(c.times))
		for i := range defined {
			defined[i] = i > 0
		}
		u.Members(c.c, "A", c.times, defined, c.warmup, out)
		got := ""
		for _, m := range out {
			got += string(".ML"[m])
		}
		if got != c.want {
			t.Errorf("%s: %s, expected %s", fmt.Sprint(c.c, c.warmup), got, c.want)
		}
	}
}

// TestEncodings: tables that Excel writes as Unicode text, and old ones of the Macintosh, are read.
func TestEncodings(t *testing.T) {
	const text = "symbol,start_date,end_date\nA,2020-01-01,\nB,2020-01-01,2021-01-01\n"
	utf16 := "\xff\xfe"
	for _, b := range []byte(text) {
		utf16 += string([]byte{b, 0})
	}
	for _, file := range []string{text, "\ufeff" + text, utf16, strings.ReplaceAll(text, "\n", "\r")} {
		u, err := universe.Read(universe.Config{Path: write(t, "u.csv", file)})
		if err != nil || strings.Join(u.Symbols(), " ") != "A B" {
			t.Errorf("%q: %v, error %v", file, u, err)
		}
	}
}
