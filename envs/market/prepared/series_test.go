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
		// What is known on the 5th is of two months before, on the 6th of the month before, and
		// revised on the 26th.
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
