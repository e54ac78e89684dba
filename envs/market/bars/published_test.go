package bars

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

func publishedCSV(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "series.csv")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// The growth of two quarters: the first is revised after the second came out, and then the second.
const growth = `period,published,gdp,cpi
2020Q1,2020-04-29 00:00,-4.8,1.5
2020Q2,2020-07-30 00:00,-32.9,
2020Q1,2020-08-27 00:02,-5.0,1.6
2020Q2,2020-08-27 00:01,-31.7,
2020Q2,2020-09-30 08:30,-31.4,1.2
`

// TestPublished looks at what is known at bars, before and after each publication and revision.
func TestPublished(t *testing.T) {
	at := func(text string) time.Time {
		when, err := time.Parse("2006-01-02 15:04", text)
		if err != nil {
			t.Fatal(err)
		}
		return when
	}
	path := publishedCSV(t, growth)
	ran := 0
	for _, c := range []struct {
		edit     func(*PublishedSource)
		at       string
		gdp, cpi float64
	}{
		{nil, "2020-04-29 00:00", math.NaN(), math.NaN()}, // the day of the publication, which may be after the close
		{nil, "2020-04-30 00:00", -4.8, 1.5},
		{nil, "2020-07-30 15:00", -32.9, 1.5}, // a bar within the day; a blank value is no news
		{nil, "2020-08-28 00:00", -31.7, 1.6}, // the revision of an earlier quarter replaces no later one
		{nil, "2020-09-30 00:00", -31.7, 1.6},
		{nil, "2020-09-30 08:30", -31.7, 1.6},
		{nil, "2020-09-30 08:31", -31.4, 1.2},
		{func(s *PublishedSource) { s.SameDay = true }, "2020-04-29 00:00", -4.8, 1.5},
		{func(s *PublishedSource) { s.SameDay = true }, "2020-09-30 00:00", -31.4, 1.2},
		{func(s *PublishedSource) { s.SameDay = true }, "2020-04-28 23:59", math.NaN(), math.NaN()},
		{func(s *PublishedSource) { s.Columns = []string{"gdp"}; s.Names = []string{"a"}; s.Period = "" }, "2020-08-28 00:00", -5.0, 0},
		{func(s *PublishedSource) { s.Timezone = "America/New_York" }, "2020-09-30 08:31", -31.7, 1.6}, // 12:30 in UTC
		{func(s *PublishedSource) { s.Timezone = "America/New_York" }, "2020-09-30 12:31", -31.4, 1.2},
	} {
		s := PublishedSource{Path: path, Columns: []string{"gdp", "cpi"}, Published: "published", Period: "period"}
		if c.edit != nil {
			c.edit(&s)
		}
		p, err := ReadPublished([]PublishedSource{s}, "")
		if err != nil {
			t.Fatal(err)
		}
		want := []float64{c.gdp, c.cpi}[:len(s.Columns)]
		when := at(c.at)
		if got := p.At("A", when, nil); !sameValues(got, want) {
			t.Errorf("%s: %v, expected %v", c.at, got, want)
		}
		// Known values depend on no later publication.
		if got := p.Until(when).At("A", when, nil); !sameValues(got, want) {
			t.Errorf("%s: without what came later %v", c.at, got)
		}
		ran++
	}
	if ran != 13 {
		t.Errorf("%d cases", ran)
	}
}

// TestPublishedOfSymbols joins values of single symbols to rows.
func TestPublishedOfSymbols(t *testing.T) {
	path := publishedCSV(t, "code,known,eps\nA,2024-03-04,1\nB,2024-03-05,2\nA,2024-03-06,3\n")
	s := DefaultSource()
	s.Path = publishedCSV(t, "date,symbol,open,high,low,close,more\n2024-03-04,A,1,1,1,1,7\n2024-03-05,A,1,1,1,1,7\n2024-03-07,A,1,1,1,1,7\n2024-03-07,C,1,1,1,1,7\n")
	s.Extra = []string{"more"}
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	p, err := ReadPublished([]PublishedSource{{Path: path, Columns: []string{"eps"}, Published: "known", Symbol: "code"}}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Check(d); err != nil {
		t.Fatal(err)
	}
	before := d.Series[0].Records[1].Extra
	p.Join(d, 1)
	p.Join(d, 1) // again, which changes nothing
	var got []float64
	for _, series := range d.Series {
		for _, r := range series.Records {
			got = append(got, r.Extra...)
		}
	}
	if want := []float64{7, math.NaN(), 7, 1, 7, 3, 7, math.NaN()}; !sameValues(got, want) || len(before) != 1 || strings.Join(d.Extra, " ") != "more eps" {
		t.Errorf("%v of %v", got, d.Extra)
	}
	if notes, err := d.Examine(DefaultRules()); err != nil || len(notes) != 1 || notes[0] != "series[0] (series.csv) has nothing for C" {
		t.Errorf("%q, %v", notes, err)
	}
}

func TestBadPublished(t *testing.T) {
	ran := 0
	for name, c := range sorted.All(map[string]struct {
		text string
		edit func(*PublishedSource)
		want string
	}{
		"no column":     {growth, func(s *PublishedSource) { s.Columns = []string{"gnp"} }, `series[0]: read`},
		"not published": {growth, func(s *PublishedSource) { s.Published = "" }, "published: required"},
		"no columns":    {growth, func(s *PublishedSource) { s.Columns = nil }, "columns: required"},
		"names":         {growth, func(s *PublishedSource) { s.Names = []string{"a", "b"} }, "2 names for 1 columns"},
		"blank":         {"period,published,gdp\n2020Q1,,1\n", nil, `line 2, column "published"`},
		"text":          {"period,published,gdp\n2020Q1,2020-04-29,low\n", nil, `line 2, column "gdp": "low" is not a number`},
		"contradiction": {"period,published,gdp\n2020Q1,2020-04-29,1\n2020Q1,2020-04-29,2\n", nil, "the rows of lines 2 and 3 were published at the same time, 2020-04-29, and differ"},
		"no rows":       {"period,published,gdp\n", nil, "there are no rows"},
		"symbol":        {"period,published,gdp\n2020Q1,2020-04-29,1\n", func(s *PublishedSource) { s.Symbol = "code" }, `no column "code"; the file has the columns period, published, gdp`},
	}) {
		s := PublishedSource{Path: publishedCSV(t, c.text), Columns: []string{"gdp"}, Published: "published", Period: "period"}
		if c.edit != nil {
			c.edit(&s)
		}
		if _, err := ReadPublished([]PublishedSource{s}, ""); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		ran++
	}
	s := PublishedSource{Path: publishedCSV(t, growth), Columns: []string{"gdp"}, Published: "published"}
	if _, err := ReadPublished([]PublishedSource{s, s}, ""); err == nil || !strings.Contains(err.Error(), `series[1]: there are two columns called "gdp"`) {
		t.Error(err)
	}
	if ran != 9 {
		t.Errorf("%d cases", ran)
	}
}
