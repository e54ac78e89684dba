package progress

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// manual is a clock that stands still until it is moved.
type manual struct{ t time.Time }

func (m *manual) now() time.Time          { return m.t }
func (m *manual) advance(d time.Duration) { m.t = m.t.Add(d) }

// screen interprets what a terminal would show: carriage return, erase to the end of the line and
// line feeds.
type screen struct {
	lines  []string
	line   []rune
	column int
	writes int
	widest int
}

func (s *screen) Write(b []byte) (int, error) {
	s.writes++
	text := string(b)
	for text != "" {
		if rest, ok := strings.CutPrefix(text, "\x1b[K"); ok {
			s.line = s.line[:s.column]
			text = rest
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.column = 0
		case '\n':
			s.lines = append(s.lines, string(s.line))
			s.line, s.column = nil, 0
		default:
			if s.column < len(s.line) {
				s.line[s.column] = r
			} else {
				s.line = append(s.line, r)
			}
			s.column++
			s.widest = max(s.widest, s.column)
		}
	}
	return len(b), nil
}

func TestBar(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var s screen
	width := 80
	p := Start(&s, Options{Label: "fit", Unit: "steps", Total: 1000, Now: clock.now, Width: func() int { return width }})
	check := func(want string) {
		t.Helper()
		if got := string(s.line); got != want {
			t.Errorf("shows\n%q\nwant\n%q", got, want)
		}
	}
	check("fit   0% [" + strings.Repeat(" ", 40) + "] 0/1000 steps")
	p.Add(100) // too early to be drawn
	check("fit   0% [" + strings.Repeat(" ", 40) + "] 0/1000 steps")
	clock.advance(time.Second)
	p.Field("loss", 0.123456)
	p.Add(100)
	check("fit  20% [=====                       ] 200/1000 steps 200/s ETA 4s loss=0.1235")
	if len(s.line) != 79 {
		t.Errorf("%d columns used", len(s.line))
	}
	p.Field("loss", 2)
	p.FieldText("phase", "eval\nx")
	width = 40
	clock.advance(time.Second)
	p.Set(999)
	check("fit  99% [===== ] 999/1000 514/s ETA 0s")
	width = 200
	clock.advance(2 * time.Second)
	p.Add(1)
	p.Finish()
	p.Finish()
	p.Add(5)
	want := "fit 100% [" + strings.Repeat("=", 40) + "] 1000/1000 steps 250/s in 4s loss=2 phase=eval x"
	if len(s.lines) != 1 || s.lines[0] != want || len(s.line) != 0 {
		t.Errorf("final %q, %q\nwant %q", s.lines, string(s.line), want)
	}
}

// TestRate shows the given speed, to the end, and measures the time that is left itself.
func TestRate(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var s screen
	p := Start(&s, Options{Total: 1000, Now: clock.now, Width: func() int { return 40 }})
	p.Rate(1234.4)
	clock.advance(time.Second)
	p.Add(200)
	if got, want := string(s.line), " 20% [=        ] 200/1000 1234/s ETA 4s"; got != want {
		t.Errorf("shows\n%q\nwant\n%q", got, want)
	}
	p.Add(800)
	clock.advance(time.Second)
	p.Finish()
	if got, want := s.lines[0], "100% [=========] 1000/1000 1234/s in 2s"; got != want {
		t.Errorf("shows\n%q\nwant\n%q", got, want)
	}
}

// TestNarrow shows a training run on 80 columns and on 60: the bar and the last of its values have
// room, the first values have none.
func TestNarrow(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var s screen
	width := 80
	p := Start(&s, Options{Label: "train", Unit: "env steps", Total: 1_300_000, Now: clock.now, Width: func() int { return width }})
	p.Field("loss", 0.24541)
	p.Field("entropy", 3.84512)
	p.Field("val sharpe", 0.028521)
	clock.advance(100 * time.Second)
	p.Add(651_234)
	if got, want := string(s.line), "train  50% [====    ] 651k/1.3M 6512/s ETA 1m40s entropy=3.85 val sharpe=0.0285"; got != want {
		t.Errorf("shows\n%q\nwant\n%q", got, want)
	}
	width = 60
	clock.advance(time.Second)
	p.Add(0)
	if got, want := string(s.line), "train  50% [=========          ] 651k/1.3M 5893/s ETA 1m50s"; got != want {
		t.Errorf("shows\n%q\nwant\n%q", got, want)
	}
}

func TestRedrawsAreLimitedAndSingleWrites(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var s screen
	p := Start(&s, Options{Total: 100_000, Now: clock.now, Width: func() int { return 60 }})
	for range 10_000 {
		clock.advance(time.Millisecond)
		p.Add(1)
	}
	// Ten seconds, ten redraws a second, and the first.
	if s.writes != 101 {
		t.Errorf("%d writes, want 101", s.writes)
	}
	if s.widest > 59 {
		t.Errorf("%d columns used of 60", s.widest)
	}
}

func TestLogLinesStandAboveTheBar(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var s screen
	p := Start(&s, Options{Label: "fit", Total: 10, Now: clock.now, Width: func() int { return 50 }})
	logger := slog.New(slog.NewTextHandler(p.Lines(&s), &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	logger.Info("first line that is longer than the bar", "key", "value")
	clock.advance(time.Second)
	p.Add(5)
	logger.Warn("second")
	bar := "fit  50% [========        ] 5/10 items 5/s ETA 1s"
	if string(s.line) != bar {
		t.Errorf("bar %q, want %q", string(s.line), bar)
	}
	fmt.Fprint(p.Lines(&s), "unfinished")
	if string(s.line) != "unfinished" {
		t.Errorf("after an unfinished line: %q", string(s.line))
	}
	fmt.Fprintln(p.Lines(&s), " now done")
	clock.advance(time.Second)
	p.Add(5)
	p.Finish()
	logger.Info("after")
	want := []string{
		`level=INFO msg="first line that is longer than the bar" key=value`,
		"level=WARN msg=second",
		"unfinished now done",
		"fit 100% [================] 10/10 items 5/s in 2s",
		"level=INFO msg=after",
	}
	if strings.Join(s.lines, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(s.lines, "\n"), strings.Join(want, "\n"))
	}
}

func TestPlainLines(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var b bytes.Buffer
	p := Start(&b, Options{Label: "get", Unit: Bytes, Total: 10 << 20, Initial: 1 << 20, Now: clock.now, Every: 10 * time.Second})
	for range 9 * 1024 / 64 {
		clock.advance(250 * time.Millisecond)
		chunk := make([]byte, 64<<10)
		if n, err := p.Reader(bytes.NewReader(chunk)).Read(chunk); n != 64<<10 || err != nil {
			t.Fatal(n, err)
		}
	}
	logged := p.Lines(&b)
	fmt.Fprintln(logged, "a log line")
	p.Finish()
	want := `get  35% 3.5 MiB/10.0 MiB 256.0 KiB/s ETA 26s
get  60% 6.0 MiB/10.0 MiB 256.0 KiB/s ETA 16s
get  85% 8.5 MiB/10.0 MiB 256.0 KiB/s ETA 6s
a log line
get 100% 10.0 MiB/10.0 MiB 256.0 KiB/s in 36s
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestUnknownTotalAndQuiet(t *testing.T) {
	clock := &manual{time.Unix(1000, 0)}
	var b bytes.Buffer
	p := Start(&b, Options{Now: clock.now})
	clock.advance(40 * time.Second)
	p.Add(2)
	p.SetTotal(4)
	clock.advance(40 * time.Second)
	p.Add(2)
	p.Finish()
	want := "2 items 0.05/s\n100% 4/4 items 0.05/s\n100% 4/4 items 0.05/s in 1m20s\n"
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	q := Start(&b, Options{Quiet: true, Total: 3, Now: clock.now, Width: func() int { return 80 }})
	clock.advance(time.Hour)
	q.Add(3)
	q.Field("x", 1)
	q.Finish()
	if b.Len() != 0 {
		t.Errorf("quiet wrote %q", b.String())
	}
	var none *Progress
	none.Add(1)
	none.Set(1)
	none.SetTotal(1)
	none.Field("x", 1)
	none.Finish()
	if none.Lines(&b) != io.Writer(&b) {
		t.Error("lines of no display")
	}
	if n, err := io.Copy(io.Discard, none.Reader(strings.NewReader("abc"))); n != 3 || err != nil {
		t.Errorf("reader of no display: %d %v", n, err)
	}
}

func TestFormats(t *testing.T) {
	cases := map[string]string{
		duration(0): "0s", duration(59600 * time.Millisecond): "1m00s", duration(61 * time.Second): "1m01s",
		duration(3661 * time.Second): "1h01m", duration(49 * time.Hour): "2d01h",
		byteCount(0): "0 B", byteCount(1023): "1023 B", byteCount(1536): "1.5 KiB", byteCount(5 << 40): "5.0 TiB", byteCount(5 << 50): "5120.0 TiB",
	}
	for got, want := range sorted.All(cases) {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if len(cases) != 10 {
		t.Errorf("%d cases", len(cases))
	}
}

func TestConcurrentUse(t *testing.T) {
	var s screen
	p := Start(&s, Options{Total: 8000, Width: func() int { return 80 }})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			for range 1000 {
				p.Add(1)
				p.Field("x", float64(i))
			}
			fmt.Fprintln(p.Lines(&s), "done")
		})
	}
	group.Wait()
	p.Finish()
	if len(s.lines) != 9 || !strings.Contains(s.lines[8], "8000/8000") {
		t.Errorf("lines %q", s.lines)
	}
}

func BenchmarkAdd(b *testing.B) {
	p := Start(io.Discard, Options{Total: 1 << 40, Width: func() int { return 80 }})
	b.ReportAllocs()
	for b.Loop() {
		p.Add(1)
	}
}
