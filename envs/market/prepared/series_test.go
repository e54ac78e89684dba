package prepared

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/split"
)

// revised writes a series whose values of a month are published on the fifth of the next and
// revised twenty days later.
func revised(t *testing.T) bars.PublishedSource {
	t.Helper()
	text := "month,released,growth\n"
	for m := range 24 {
		month := time.Date(2014, time.Month(10+m), 1, 0, 0, 0, 0, time.UTC)
		for revision, days := range []int{4, 24} {
			text += fmt.Sprintf("%s,%s,%d\n", month.Format("2006-01"), month.AddDate(0, 1, days).Format(time.DateOnly), 10*m+revision)
		}
	}
	path := filepath.Join(t.TempDir(), "growth.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return bars.PublishedSource{Path: path, Columns: []string{"growth"}, Published: "released", Period: "month"}
}

// TestSeriesLookNotAhead joins a series with revisions: nothing depends on later rows, and had the
// values been joined by their months the check would say so.
func TestSeriesLookNotAhead(t *testing.T) {
	c := config(t, csvText(13))
	c.Series = []bars.PublishedSource{revised(t)}
	c.Features.Extra = []string{"growth"}
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(data.Extra, " ") != "limit growth" || len(data.Files) != 2 {
		t.Errorf("%v, %v", data.Extra, data.Files)
	}
	set, err := Build(c, data)
	if err != nil {
		t.Fatal(err)
	}
	for i, when := range set.Times {
		// The value known on the 5th is of two months before, on the 6th of the month before,
		// and revised on the 26th.
		m := (when.Year()-2014)*12 + int(when.Month()) - 11
		want := float64(10 * m)
		switch {
		case when.Day() <= 5:
			want -= 9
		case when.Day() > 25:
			want++
		}
		if got := set.Extra[i*4*2+1]; got != want {
			t.Fatalf("%s: %v, expected %v", when.Format(time.DateOnly), got, want)
		}
	}
	r, err := Lookahead(context.Background(), c, data, 20)
	if err != nil || len(r.Leaks) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
	for _, s := range data.Series {
		for i := range s.Records {
			m := (s.Records[i].Time.Year()-2014)*12 + int(s.Records[i].Time.Month()) - 10
			s.Records[i].Extra[1] = float64(10*m + 1)
		}
	}
	r, err = Lookahead(context.Background(), c, data, 20)
	if err != nil || len(r.Leaks) != 1 || r.Leaks[0].Feature != "growth" {
		t.Errorf("%+v, %v", r, err)
	}
	c.Features.Extra = []string{"limit"}
	c.Series[0].Names = []string{"limit"}
	if _, err := Read(c); err == nil || !strings.Contains(err.Error(), `there are two columns called "limit"`) {
		t.Error(err)
	}
}

// TestSeriesKnowOffsets: a value that was published in another zone is known from its instant on, not
// from when the clocks show the same.
func TestSeriesKnowOffsets(t *testing.T) {
	write := func(name, text string) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var text strings.Builder
	text.WriteString("time,symbol,open,high,low,close,volume\n")
	for i := range 40 {
		fmt.Fprintf(&text, "%s,A,1,1,1,1,5\n", time.Date(2024, 1, 2, 10+i%6, 0, 0, 0, time.FixedZone("", -5*3600)).AddDate(0, 0, i/6).Format(time.RFC3339))
	}
	c := Default()
	c.Features.Indicators = nil
	day := func(d int) bars.Date { return bars.NewDate(time.Date(2024, 1, d, 0, 0, 0, 0, time.UTC)) }
	c.Split.Train, c.Split.Valid, c.Split.Test = split.Range{From: day(2), To: day(4)}, split.Range{From: day(5), To: day(6)}, split.Range{From: day(7), To: day(8)}
	c.Window, c.Source.Path = 2, write("bars.csv", text.String())
	// 11:30 in Los Angeles is 14:30 by the bars' clock, and 22:30 in Shanghai is 09:30.
	c.Series = []bars.PublishedSource{{Path: write("moods.csv", "at,mood\n2024-01-02T22:30:00+08:00,1\n2024-01-02T11:30:00-08:00,2\n"), Columns: []string{"mood"}, Published: "at"}}
	data, err := Read(c)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []float64{1, 1, 1, 1, 1, 2, 2} {
		if r := data.Series[0].Records[i]; r.Extra[0] != want {
			t.Errorf("%v: %v, expected %v", r.Time, r.Extra[0], want)
		}
	}
	set, err := Build(c, data)
	if err != nil {
		t.Fatal(err)
	}
	// Whoever goes on with bars that arrive has them in the same zone.
	if m := set.Manifest; m.Timezone != "Etc/GMT+5" || m.From != "2024-01-02 10:00:00" || !strings.Contains(m.Config, "timezone: Etc/GMT+5") {
		t.Errorf("zone %q, from %s, configuration\n%s", m.Timezone, m.From, m.Config)
	}
}
