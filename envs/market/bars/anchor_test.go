package bars

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// anchorFile has the bars of 30 days from one on, of a stock that pays a dividend on every tenth and
// of one that never does, with the adjusted closes that a vendor computes on the last of them.
func anchorFile(from, to int) string {
	var b strings.Builder
	b.WriteString("date,symbol,open,high,low,close,adj_close,volume\n")
	for d := from; d < to; d++ {
		p, factor := 50+float64(d%7), 1.0
		for k := d/10 + 1; k <= (to-1)/10; k++ {
			factor *= 0.9
		}
		fmt.Fprintf(&b, "%s,A,%g,%g,%g,%g,%.12g,100\n%[1]s,B,20,22,19,21,21,200\n", day(d).Format("2006-01-02"), p, p+1, p-1, p, p*factor)
	}
	return b.String()
}

// anchorSource names the columns that are found by no name of their own.
func anchorSource(text string) Source {
	s := DefaultSource()
	if s.Anchor = First; strings.Contains(text, "bonus") {
		s.Columns = Columns{Dividend: "dividend", Bonus: "bonus"}
	}
	return s
}

// anchored reads the rows of anchorFile from a day on, as somebody who learnt from others.
func anchored(t *testing.T, text, since string, stored []Anchor) ([]Series, *Data, error) {
	t.Helper()
	s := anchorSource(text)
	s.Path = write(t, "a.csv", text)
	d, err := Read(s, []string{"A", "B"})
	if err != nil {
		t.Fatal(err)
	}
	var from Date
	if since != "" {
		if err := from.UnmarshalText([]byte(since)); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Anchor(from, stored); err != nil {
		return nil, d, err
	}
	out := make([]Series, len(d.Series))
	for i, s := range d.Series {
		if out[i], _, err = Clean(s, DefaultRules(), "keep"); err != nil {
			t.Fatal(err)
		}
	}
	return out, d, nil
}

// TestAnchor: prices are as they were quoted on the first day, and those of a day do not depend on
// how much of the future the vendor knew.
func TestAnchor(t *testing.T) {
	short, d, err := anchored(t, anchorFile(0, 15), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	long, _, err := anchored(t, anchorFile(0, 30), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for i, s := range short {
		for k, r := range s.Records {
			if l := long[i].Records[k]; math.Abs(l.Close/r.Close-1) > 1e-9 || math.Abs(l.Open/r.Open-1) > 1e-9 || l.Volume != r.Volume {
				t.Errorf("%s, day %d: %v, with the future %v", s.Symbol, k, r.Bar, l.Bar)
			}
			n++
		}
	}
	if r := long[0].Records; n != 30 || r[0].Close != 50 || math.Abs(r[10].Close-53/0.9) > 1e-9 || math.Abs(r[29].Close-51/0.81) > 1e-9 {
		t.Errorf("%d rows, closes %g, %g and %g", n, r[0].Close, r[10].Close, r[29].Close)
	}
	if says := d.Adjustment.String(); !strings.HasPrefix(says, "prices: adjusted by adj_close (2 of 2 symbols), which never changes for 1 of them, anchored at the first row of each") {
		t.Error(says)
	}
	if a := d.Anchors; len(a) != 2 || a[0].Symbol != "A" || !a[0].From.Equal(day(0)) || a[0].Factor != 0.9 || !a[0].Until.Equal(day(14)) || a[0].UntilFactor != 1 {
		t.Errorf("anchors %+v", a)
	}
	// Rows before the calendar's first day are none.
	if late, d, err := anchored(t, anchorFile(0, 30), day(12).Format("2006-01-02"), nil); err != nil || late[0].Records[12].Close != 55 || !d.Anchors[0].From.Equal(day(12)) {
		t.Errorf("%v, anchors %+v", err, d.Anchors)
	}
	s := DefaultSource()
	s.Adjust, s.Anchor = "none", First
	if err := s.Validate(); err == nil || !strings.Contains(err.Error(), "anchor: first is for prices that are adjusted, and adjust is none") {
		t.Error(err)
	}
	if s.Adjust, s.Anchor = "auto", "last"; s.Validate() == nil {
		t.Error("an anchor that does not exist is taken")
	}
	// Where there is nothing to adjust by, prices are as given.
	s = DefaultSource()
	s.Path, s.Anchor = write(t, "b.csv", "date,symbol,open,high,low,close,volume\n2020-01-02,A,1,1,1,1,1\n"), First
	if d, err = Read(s, nil); err == nil {
		err = d.Anchor(Date{}, nil)
	}
	if err != nil || d.Anchors != nil || d.Adjustment.Anchored {
		t.Errorf("%v, %+v", err, d.Anchors)
	}
}

// TestAnchorOfOthers: later bars of a source are anchored where those were that somebody learnt
// from, read whole and one after another, and what cannot be known is an error.
func TestAnchorOfOthers(t *testing.T) {
	_, d, err := anchored(t, anchorFile(0, 15), "", nil)
	if err != nil {
		t.Fatal(err)
	}
	stored := d.Anchors
	// appended has rows behind those of the file that was learnt from, whose factors nobody has
	// changed: 1, until the dividend of day 20.
	appended := func(from int) string {
		lines := strings.SplitAfter(anchorFile(0, 15), "\n")
		return lines[0] + strings.Join(lines[1+2*from:], "")
	}
	after := strings.SplitAfter(anchorFile(15, 20), "\n")
	split := "date,symbol,open,high,low,close,volume,dividend,bonus\n2020-02-03,A,1,1,1,1,1,0,0\n2020-02-03,B,1,1,1,1,1,0,0\n"
	n := 0
	for name, x := range sorted.All(map[string]struct {
		text  string
		close float64 // of A in its last row
		err   string
		says  string
	}{
		"the whole file, of today": {anchorFile(0, 30), 51 / 0.81, "", ""},
		"its end":                  {appended(12), 50 / 0.9, "", ""},
		"what comes after it":      {strings.Join(after, ""), 55 / 0.9, "", "if the source has changed its factors of the past since"},
		"the end, of today":        {anchorFile(12, 30), 0, "the factor of adjustment is 0.9 and was 1 when the agent's data were prepared", ""},
		"made of dividends":        {split, 0, "factors that are made of dividends and bonus shares begin with the bars", ""},
	}) {
		n++
		whole, d, err := anchored(t, x.text, "", stored)
		said := strings.Join(d.Notes, "\n")
		var last *Record
		if err == nil {
			last = &whole[0].Records[len(whole[0].Records)-1]
		}
		var text []string
		f, errF := Follow(anchorSource(x.text), strings.NewReader(x.text), DefaultRules(), Date{}, []string{"A", "B"}, "", func(s string) { text = append(text, s) })
		if errF != nil {
			t.Fatal(errF)
		}
		f.Anchor(stored)
		var followed float64
		for errF == nil {
			var records []Record
			if _, records, _, errF = f.Next(t.Context()); errF == nil {
				followed = records[0].Close
			}
		}
		if errors.Is(errF, io.EOF) {
			errF = nil
		}
		for how, err := range sorted.All(map[string]error{"read": err, "followed": errF}) {
			if x.err == "" && err != nil || x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err) || !strings.Contains(err.Error(), "A")) {
				t.Errorf("%s, %s: %v, expected %q", name, how, err, x.err)
			}
		}
		if x.err == "" && (math.Abs(last.Close/x.close-1) > 1e-9 || followed != last.Close) {
			t.Errorf("%s: closes at %g, followed at %g, expected %g", name, last.Close, followed, x.close)
		}
		for how, said := range sorted.All(map[string]string{"read": said, "followed": strings.Join(text, "\n")}) {
			if strings.Contains(said, "if the source has changed") != (x.says != "") {
				t.Errorf("%s, %s: said %q", name, how, said)
			}
		}
	}
	// Rows before those that were learnt from, and rows without a factor.
	older := Anchor{"A", day(3), 0.9, day(14), 1}
	if _, _, err := anchored(t, anchorFile(0, 3), "", []Anchor{older}); err == nil || !strings.Contains(err.Error(), "a row before 2020-01-04") {
		t.Error(err)
	}
	x := NewIncremental("A", DefaultSource(), DefaultRules(), nil, func(string) {})
	x.Anchor(older)
	bar := Bar{Open: 1, High: 1, Low: 1, Close: 1, Volume: 1}
	for _, c := range []struct {
		day    int
		factor float64
		want   string
	}{{0, 0.9, "a row before 2020-01-04"}, {20, math.NaN(), "the row has no factor of adjustment"}} {
		bar.Time = day(c.day)
		if _, err := x.Next(&Record{Bar: bar, Factor: c.factor, File: "a.csv", Line: 2}, nil); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "symbol A") {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
	if n != 5 {
		t.Errorf("%d cases", n)
	}
}
