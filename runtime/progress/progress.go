package progress

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"sync"
	"time"

	"golang.org/x/term"

	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Bytes is the unit of sizes; counts and rates are then written with binary prefixes.
const Bytes = "B"

// Options of a progress display. The zero value counts an unknown total of items.
type Options struct {
	Label string
	Unit  string // "items" if empty
	Total int64  // 0 is unknown: no bar and no time left
	// Initial is what an earlier process had done.
	Initial int64
	// Quiet shows nothing.
	Quiet bool
	// Now is the clock; nil is time.Now.
	Now func() time.Time
	// Width returns the columns of the terminal, 0 for an output that is none; nil asks the writer,
	// if that is an *os.File.
	Width func() int
	// Every is the time between plain lines; 0 is 30 s.
	Every time.Duration
}

const (
	redrawEvery = 100 * time.Millisecond
	rateWindow  = 10 * time.Second
)

// Progress is a running display.
type Progress struct {
	mu       sync.Mutex
	out      io.Writer
	o        Options
	now      func() time.Time
	terminal bool

	done     int64
	fields   []field
	started  time.Time
	drawn    time.Time // the last output
	visible  bool      // the cursor stands behind a bar
	finished bool
	rate     rate
	told     float64 // what Rate was given
}

// field is a live value; short is what a narrow terminal shows of it.
type field struct{ key, value, short string }

// Start begins a display on out. A terminal shows it at once; other outputs show the first line
// after Options.Every.
func Start(out io.Writer, o Options) *Progress {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Unit == "" {
		o.Unit = "items"
	}
	if o.Every <= 0 {
		o.Every = 30 * time.Second
	}
	if o.Width == nil {
		o.Width = func() int { return terminalWidth(out) }
	}
	now := o.Now()
	p := &Progress{out: out, o: o, now: o.Now, done: o.Initial, started: now, drawn: now}
	p.rate = rate{at: now, done: o.Initial}
	p.terminal = !o.Quiet && o.Width() > 0
	if p.terminal {
		p.out = printable.Raw(out) // The bar moves the cursor.
		p.drawBar(now)
	}
	return p
}

// terminalWidth returns 0 where out is not a terminal, and also where the terminal cannot move its
// cursor.
func terminalWidth(out io.Writer) int {
	f, ok := printable.Raw(out).(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return 0
	}
	return cmp.Or(printable.Columns(f), 80)
}

// Add counts n more.
func (p *Progress) Add(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	p.update()
}

// Set says how much is done in all, Options.Initial included.
func (p *Progress) Set(done int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done = done
	p.update()
}

// SetTotal changes the total, when it becomes known.
func (p *Progress) SetTotal(total int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.o.Total = total
}

// Rate has the display show this many items per second, instead of what it measures itself by the
// clock; the time left stays its own measure. 0 is as if it was never called.
func (p *Progress) Rate(perSecond float64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = perSecond
}

// Field sets a live value behind the bar, with four significant digits, and three on a terminal
// that is too narrow for all. Fields stay in the order of their first use.
func (p *Progress) Field(key string, value float64) {
	p.set(field{key, fmt.Sprintf("%.4g", value), fmt.Sprintf("%.3g", value)})
}

// FieldText is Field for text.
func (p *Progress) FieldText(key, value string) { p.set(field{key, value, value}) }

func (p *Progress) set(f field) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.fields {
		if p.fields[i].key == f.key {
			p.fields[i] = f
			return
		}
	}
	p.fields = append(p.fields, f)
}

// Finish shows the final state and ends the display; later calls do nothing. Call it also when the
// operation failed, so that the error begins on a line of its own.
func (p *Progress) Finish() {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.finished {
		return
	}
	p.finished = true
	switch {
	case p.o.Quiet:
	case p.terminal:
		p.drawBar(p.now())
		io.WriteString(p.out, "\n")
		p.visible = false
	default:
		p.drawLine(p.now())
	}
}

// update draws if it is time. The caller holds the lock.
func (p *Progress) update() {
	if p.o.Quiet || p.finished {
		return
	}
	now := p.now()
	switch since := now.Sub(p.drawn); {
	case p.terminal && since >= redrawEvery:
		p.drawBar(now)
	case !p.terminal && since >= p.o.Every:
		p.drawLine(now)
	}
}

// Lines returns a writer for log lines to the same place as the display: each write is shown above
// the bar, which is drawn again below it. Writes are whole lines, as slog's handlers make them. It
// may be used after Finish.
func (p *Progress) Lines(to io.Writer) io.Writer {
	if p == nil {
		return to
	}
	return &lines{p, to}
}

type lines struct {
	p  *Progress
	to io.Writer
}

func (l *lines) Write(text []byte) (int, error) {
	p := l.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.visible {
		return l.to.Write(text)
	}
	io.WriteString(p.out, "\r\x1b[K")
	n, err := l.to.Write(text)
	p.visible = false
	// A bar behind an unfinished line would tear it apart; the next update draws it.
	if n > 0 && text[n-1] == '\n' {
		p.drawBar(p.drawn)
	}
	return n, err
}

// Reader returns a reader that counts what is read from r.
func (p *Progress) Reader(r io.Reader) io.Reader { return &reader{p, r} }

type reader struct {
	p *Progress
	r io.Reader
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 {
		r.p.Add(int64(n))
	}
	return n, err
}

// rate is an exponential average of items per second whose memory is rateWindow.
type rate struct {
	at     time.Time
	done   int64
	value  float64
	weight float64 // of value; the rest belongs to the time before the start
}

func (r *rate) observe(now time.Time, done int64) {
	seconds := now.Sub(r.at).Seconds()
	if seconds <= 0 {
		return
	}
	keep := math.Exp(-seconds / rateWindow.Seconds())
	r.value = keep*r.value + (1-keep)*float64(done-r.done)/seconds
	r.weight = keep*r.weight + 1 - keep
	r.at, r.done = now, done
}

// perSecond is 0 before anything was observed.
func (r *rate) perSecond() float64 {
	if r.weight == 0 {
		return 0
	}
	return max(0, r.value/r.weight)
}
