package bars

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/onnxrl/onnxrl/runtime/longtest"
	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// followText has a time without B, an empty line after one, a duplicate, a row too late, a bad
// price, a bad number and an asset that nobody asked for.
const followText = `date,symbol,open,high,low,close,volume,adj_factor
2020-01-02,B,10,11,9,10.5,100,1
2020-01-02,A,20,22,19,21,200,1
2020-01-03,A,21,23,20,22,,1
2020-01-06,B,10.5,12,10,11,0,1
2020-01-06,B,10.5,12,10,11,0,1
2020-01-06,C,1,1,1,1,1,1
2020-01-06,A,10.5,11.5,10,11,7,2
2020-01-03,B,1,1,1,1,1,1
2020-01-07,A,-1,11.5,10,11,7,2
2020-01-07,B,30,12,10,11,5,1
2020-01-08,A,x,11.5,10,11,7,2
2020-01-08,B,10,12,10,11,5,1

2020-01-09,A,10.5,11.5,10,11,7,2
2020-01-09,B,10,12,10,11,5,1
`

// given is what a follower gives, as text.
func given(t *testing.T, f *Follower) (times []string, err error) {
	t.Helper()
	for {
		at, records, valid, err := f.Next(t.Context())
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return times, err
		}
		times = append(times, row(at, records, valid))
	}
}

func row(at time.Time, records []Record, valid []bool) string {
	text := formatTime(at)
	for i, r := range records {
		if valid[i] {
			text += fmt.Sprintf(" %d:%v", i, r.Bar)
			if r.Suspended {
				text += "s"
			}
		}
	}
	return text
}

func followed(t *testing.T, in io.Reader) (times, said []string, err error) {
	t.Helper()
	f, err := Follow(DefaultSource(), in, DefaultRules(), Date{}, []string{"A", "B"}, "none", func(s string) { said = append(said, s) })
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	times, err = given(t, f)
	return times, said, err
}

// Rows that are followed are those of the file read whole, and every repair is reported with its line.
func TestFollowIsRead(t *testing.T) {
	times, said, err := followed(t, strings.NewReader(followText))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"prices: adjusted by adj_factor",
		"WARNING: the agent's data had prices as given, and these are adjusted by a factor: what it sees here is not what it learnt from",
		"A: 2020-01-03 (stdin, line 4): no volume; it cannot be traded until there is one",
		"B: there is no row of 2020-01-03; it keeps its price and cannot be traded until there is one",
		"B: 2020-01-06 (stdin, line 6): there twice; skipped",
		"stdin, line 7: C is none of the agent's assets; its rows are left out",
		"B: 2020-01-03 (stdin, line 9): earlier than rows that were decided on; skipped",
		"A: 2020-01-07 (stdin, line 10): prices -2, 23, 20, 22",
		"B: 2020-01-07 (stdin, line 11): open 30, high 12, low 10, close 11: the open is off the day's range",
		`stdin, line 12: skipped: column "open": "x" is not a number`,
		"A: there is no row of 2020-01-08; it keeps its price and cannot be traded until there is one",
	}
	if strings.Join(said, "\n") != strings.Join(want, "\n") {
		t.Errorf("said\n%s\nexpected\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	if len(times) != 6 {
		t.Fatalf("%d times: %q", len(times), times)
	}
	// Skipped rows are taken out of the file that is read whole.
	lines := strings.Split(followText, "\n")
	lines = append(lines[:8:8], lines[9:]...)    // the late row
	lines = append(lines[:10:10], lines[11:]...) // the bad number
	s := DefaultSource()
	s.Path = write(t, "a.csv", strings.Join(lines, "\n"))
	d, err := Read(s, []string{"A", "B"})
	if err != nil {
		t.Fatal(err)
	}
	clean := make([]Series, 2)
	for i := range d.Series {
		if clean[i], _, err = Clean(d.Series[i], DefaultRules(), "keep"); err != nil {
			t.Fatal(err)
		}
	}
	p, err := Align(clean, nil, DefaultCalendar(), nil)
	if err != nil || len(p.Times) != len(times) {
		t.Fatalf("%d times, %v", len(p.Times), err)
	}
	for k, at := range p.Times {
		records, valid := make([]Record, 2), make([]bool, 2)
		for n := range 2 {
			i := p.Index(k, n)
			valid[n] = p.Status[i] == Traded || p.Status[i] == Suspended
			records[n] = Record{Bar: p.Bars[i], Suspended: p.Status[i] == Suspended}
		}
		if got := row(at, records, valid); got != times[k] {
			t.Errorf("%s followed, %s read", times[k], got)
		}
	}
}

// In whatever pieces the bytes come, the rows are the same; and after every byte, what was given is
// the beginning of what the whole text gives.
func TestFollowEveryByte(t *testing.T) {
	whole, _, err := followed(t, strings.NewReader(followText))
	if err != nil {
		t.Fatal(err)
	}
	pieces, said, err := followed(t, iotest.OneByteReader(strings.NewReader(followText)))
	if err != nil || strings.Join(pieces, "\n") != strings.Join(whole, "\n") || len(said) != 11 {
		t.Errorf("byte by byte: %q, %q, %v", pieces, said, err)
	}
	header := strings.Index(followText, "\n") + 1
	given := map[int]bool{}
	every := longtest.Every(t, 7)
	for n := 0; n < len(followText); n += every {
		part, _, err := followed(t, strings.NewReader(followText[:n]))
		if (err != nil) != (n < header) {
			t.Fatalf("cut after %d bytes: %v", n, err)
		}
		if len(part) > len(whole) || strings.Join(part, "\n") != strings.Join(whole[:len(part)], "\n") {
			t.Fatalf("cut after %d bytes: %q, and the whole gives %q", n, part, whole)
		}
		given[len(part)] = true
	}
	if len(given) != len(whole) && every == 1 { // all but the last, which needs the last byte
		t.Errorf("the cuts gave %d different beginnings of %d times", len(given), len(whole))
	}
}

// grower is a file that a test writes to while it is followed.
type grower struct {
	t    *testing.T
	path string
	next chan string
	mu   sync.Mutex
	said []string
}

func (g *grower) write(flag int, text string) {
	g.t.Helper()
	f, err := os.OpenFile(g.path, os.O_WRONLY|os.O_CREATE|flag, 0o644)
	if err == nil {
		_, err = f.WriteString(text)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		g.t.Fatal(err)
	}
}

// expect waits for the next time.
func (g *grower) expect(want string) {
	g.t.Helper()
	select {
	case got := <-g.next:
		if !strings.HasPrefix(got, want) {
			g.t.Errorf("got %s, expected %s", got, want)
		}
	case <-time.After(time.Minute):
		g.mu.Lock()
		defer g.mu.Unlock()
		g.t.Fatalf("%s did not come; said %q", want, g.said)
	}
}

// spoken waits until something was said.
func (g *grower) spoken(want string) {
	g.t.Helper()
	for range 600 {
		g.mu.Lock()
		found := strings.Contains(strings.Join(g.said, "\n"), want)
		g.mu.Unlock()
		if found {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	g.t.Fatalf("%q was not said", want)
}

func TestFollowGrowingFile(t *testing.T) {
	g := &grower{t: t, path: filepath.Join(t.TempDir(), "bars.csv"), next: make(chan string, 100)}
	const header = "date,open,high,low,close\n"
	g.write(os.O_TRUNC, header+"2020-01-02,1,2,1,2\n2020-01-03,1,2,1,")
	s := DefaultSource()
	s.Path = g.path
	f, err := Follow(s, nil, DefaultRules(), Date{}, []string{"A"}, "none", func(text string) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.said = append(g.said, text)
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		for {
			at, records, valid, err := f.Next(ctx)
			if err != nil {
				ended <- err
				return
			}
			g.next <- row(at, records, valid)
		}
	}()
	g.expect("2020-01-02")
	if len(g.next) > 0 {
		t.Fatal("an unfinished line was given")
	}
	g.write(os.O_APPEND, "2\n")
	g.expect("2020-01-03 0:{2020-01-03 00:00:00 +0000 UTC 1 2 1 2 0}")
	g.write(os.O_APPEND, "2020-01-06,3,3,3,3\n2020-01-07,4,")
	g.expect("2020-01-06")
	// It is cut off and written again, with a row more.
	g.write(os.O_TRUNC, header)
	g.spoken("line 5: skipped: it does not end")
	g.spoken("bars.csv: the file begins again")
	g.write(os.O_APPEND, "2020-01-02,1,2,1,2\n2020-01-03,1,2,1,2\n2020-01-06,3,3,3,3\n2020-01-07,5,5,5,5\n")
	g.expect("2020-01-07 0:{2020-01-07 00:00:00 +0000 UTC 5 5")
	g.spoken("bars.csv: 3 rows that were there before were skipped")
	// Another file takes its name.
	if err := os.Rename(g.path, g.path+".1"); err != nil {
		t.Fatal(err)
	}
	g.write(os.O_TRUNC, header+"2020-01-08,6,6,6,6\n")
	g.expect("2020-01-08")
	stop()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestFollowRefuses(t *testing.T) {
	rules := DefaultRules()
	rules.Unsorted = "error"
	late := "date,symbol,open,high,low,close\n2020-01-02,A,1,1,1,1\n2020-01-02,B,1,1,1,1\n2020-01-01,A,1,1,1,1\n"
	differs := "date,symbol,open,high,low,close\n2020-01-02,A,1,1,1,1\n2020-01-02,A,2,2,2,2\n"
	blank := "date,symbol,open,high,low,close,adj_close\n2020-01-02,A,1,1,1,1,\n"
	cases := 0
	for name, c := range sorted.All(map[string]struct {
		text string
		edit func(*Source)
		want string
	}{
		"late":         {late, nil, "A: 2020-01-01 (stdin, line 4): earlier than rows that were decided on"},
		"differs":      {differs, nil, "A: 2020-01-02 (stdin, line 3): differs from the row of the same time in line 2 (close 1 and 2); choose one with quality.duplicates"},
		"no close":     {"date,symbol,open\n", nil, "follow stdin: line 1: no high"},
		"no symbols":   {"date,open,high,low,close\n", nil, "there is no column of symbols, and the agent has 2 assets"},
		"nothing":      {"", nil, "there is no header line"},
		"first factor": {blank, func(s *Source) { s.Adjust = "adj_close" }, "the first row has no adjustment"},
	}) {
		s := DefaultSource()
		if c.edit != nil {
			c.edit(&s)
		}
		f, err := Follow(s, strings.NewReader(c.text), rules, Date{}, []string{"A", "B"}, "", func(string) {})
		if err == nil {
			_, err = given(t, f)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", name, err, c.want)
		}
		cases++
	}
	if cases != 6 {
		t.Errorf("%d cases", cases)
	}
	s := DefaultSource()
	for path, want := range sorted.All(map[string]string{parquetTwo(t, false): "only text that is appended to", filepath.Join(t.TempDir(), "none.csv"): "none.csv"}) {
		s.Path = path
		if _, err := Follow(s, nil, rules, Date{}, []string{"A"}, "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", path, err, want)
		}
	}
	// Binance's files have no header, and prices that are blank at first may be taken as they are.
	s = DefaultSource()
	s.Preset, s.Symbol = "binance", "file"
	f, err := Follow(s, strings.NewReader("1577923200000,1,2,1,2,5,0,0,0,0,0,0\n1578009600000,1,2,1,2,5,0,0,0,0,0,0\n"), rules, Date{}, []string{"BTC"}, "", func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	if times, err := given(t, f); err != nil || len(times) != 2 || math.Abs(float64(len(times[0])-len(times[1]))) > 0 {
		t.Errorf("%q, %v", times, err)
	}
}

// A jump like that of a split is reported when its row comes, and neither one that is adjusted for
// nor a crash.
func TestFollowTellsJumps(t *testing.T) {
	const head = "date,symbol,open,high,low,close,volume,adj_factor\n2020-01-02,A,20,20.2,19.8,20,7,1\n2020-01-02,B,20,20.2,19.8,20,7,1\n2020-01-03,B,20,20.2,19.8,20,7,1\n"
	for name, c := range sorted.All(map[string]struct{ row, says string }{
		"a split":      {"2020-01-03,A,10,10.1,9.9,10,7,1", "A: 2020-01-03 (stdin, line 5): open 0.500 of the close before, like that of a split or bonus shares (2:1) that is NOT adjusted for"},
		"bonus shares": {"2020-01-03,A,15.385,15.5,15.2,15.4,7,1", "(13:10) that is NOT adjusted for"},
		"adjusted for": {"2020-01-03,A,10,10.1,9.9,10,7,2", ""},
		"a crash":      {"2020-01-03,A,10,14,8,9,7,1", ""},
	}) {
		_, said, err := followed(t, strings.NewReader(head+c.row+"\n"))
		if text := strings.Join(said, "\n"); err != nil || strings.Contains(text, "like that of a split") != (c.says != "") || !strings.Contains(text, c.says) {
			t.Errorf("%s: said\n%s (%v)", name, text, err)
		}
	}
}

// TestFollowEncodings: what is read from a file as a whole, and cannot be followed, is refused by its
// reason.
func TestFollowEncodings(t *testing.T) {
	const text = "date,symbol,open,high,low,close\n2020-01-02,A,1,1,1,1\n"
	utf16 := "\xff\xfe"
	for _, b := range []byte(text) {
		utf16 += string([]byte{b, 0})
	}
	for in, want := range sorted.All(map[string]string{utf16: "follow stdin: it is in UTF-16", strings.ReplaceAll(text, "\n", "\r"): "follow stdin: its lines end in a carriage return alone"}) {
		if _, _, err := followed(t, strings.NewReader(in)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}
