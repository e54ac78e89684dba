package bars

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// joinFile writes days from to to of the symbols A and B, whose closes are 10 and 20 plus a cent a
// day and whose factor changes on day 4; edit changes a line.
func joinFile(t *testing.T, from, to int, symbols string, factor float64, edit func(line string) string) string {
	t.Helper()
	text := new(strings.Builder)
	fmt.Fprintln(text, "date,symbol,open,high,low,close,volume,adj_factor")
	for day := from; day <= to; day++ {
		for _, s := range symbols {
			p, f := 10*float64(s-'A'+1)+float64(day)/100, factor
			if day >= 4 {
				f *= 1.01
			}
			line := fmt.Sprintf("%s,%c,%.2f,%.2f,%.2f,%.2f,%d,%g", time.Date(2020, 1, day, 0, 0, 0, 0, time.UTC).Format(time.DateOnly), s, p, p, p, p, 1000, f)
			if edit != nil {
				line = edit(line)
			}
			fmt.Fprintln(text, line)
		}
	}
	path := filepath.Join(t.TempDir(), "bars.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestJoin puts older rows before those of a source, with factors as the source has them.
func TestJoin(t *testing.T) {
	s := DefaultSource()
	s.Path, s.Join = joinFile(t, 6, 12, "AB", 3, nil), joinFile(t, 1, 8, "AC", 1.5, nil)
	d, err := Read(s, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Series) != 2 || len(d.Series[0].Records) != 12 || len(d.Series[1].Records) != 7 || len(d.Files) != 2 {
		t.Fatalf("%+v", d)
	}
	whole := DefaultSource()
	whole.Path = joinFile(t, 1, 12, "A", 3, nil)
	want, err := Read(whole, nil)
	if err != nil {
		t.Fatal(err)
	}
	compared := 0
	for i, r := range d.Series[0].Records {
		w := want.Series[0].Records[i]
		if !r.Time.Equal(w.Time) || r.Close != w.Close || r.Factor != w.Factor {
			t.Errorf("row %d: %v at %g times %g, expected %v at %g times %g", i, r.Time, r.Close, r.Factor, w.Time, w.Close, w.Factor)
		}
		compared++
	}
	if compared != 12 || len(d.Notes) != 1 || !strings.Contains(d.Notes[0], "joined: 5 rows of 1 of 2 symbols come from bars.csv") || !strings.Contains(d.Notes[0], "agree on 3 days") {
		t.Errorf("%d rows; %q", compared, d.Notes)
	}
}

// TestJoinWithoutFactor: a day on which neither source has a factor says nothing about their scale.
func TestJoinWithoutFactor(t *testing.T) {
	without := func(day, factor string) func(string) string {
		return func(line string) string {
			if strings.HasPrefix(line, day) {
				line = line[:strings.LastIndexByte(line, ',')+1] + factor
			}
			return line
		}
	}
	for _, factor := range []string{"-1", "0", "Inf"} {
		s := DefaultSource()
		s.Path, s.Join = joinFile(t, 6, 12, "A", 3, without("2020-01-06", factor)), joinFile(t, 1, 8, "A", 1.5, without("2020-01-06", factor))
		d, err := Read(s, nil)
		if err != nil {
			t.Fatal(err)
		}
		if f := d.Series[0].Records[4].Factor; math.Abs(f-3*1.01) > 1e-12 {
			t.Errorf("with %s on the first shared day the factor of the day before is %g, expected %g", factor, f, 3*1.01)
		}
	}
}

func TestJoinRefuses(t *testing.T) {
	refused := 0
	for name, c := range sorted.All(map[string]struct {
		older string
		want  string
	}{
		"another price": {joinFile(t, 1, 8, "A", 1.5, func(l string) string { return strings.ReplaceAll(l, "10.07", "10.17") }), "A: on 2020-01-07 it closes at 10.17"},
		"no day shared": {joinFile(t, 1, 5, "A", 1.5, nil), "share no day"},
		"other symbols": {joinFile(t, 1, 8, "C", 1.5, nil), "has no rows of the source's symbols that are older"},
		"not older":     {joinFile(t, 7, 8, "A", 1.5, nil), "has no rows of the source's symbols that are older"},
		"no file":       {"missing.csv", "missing.csv"},
	}) {
		s := DefaultSource()
		s.Path, s.Join = joinFile(t, 6, 12, "AB", 3, nil), c.older
		if _, err := Read(s, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, expected %q", name, err, c.want)
			continue
		}
		refused++
	}
	if refused != 5 {
		t.Errorf("%d of 5 sources are refused", refused)
	}
}
