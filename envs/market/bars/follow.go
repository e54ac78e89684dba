package bars

import (
	"bytes"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Follower reads rows in the order of time while they are written, and gives the rows of one time
// together once they are complete: when every symbol has its row, when a row of a later time is
// there, or at an empty line. Incomplete rows at the end of a stream are not given. What it gives
// depends on the rows alone and not on when, or in what pieces, they arrive. It is not safe for
// concurrent use.
type Follower struct {
	source  Source
	rules   Rules
	from    Date
	symbols map[string]int
	name    string
	// adjusted is what the reader's own data were adjusted by, empty where it is not known.
	adjusted string
	// quotes are the columns of quotes that rows must have.
	quotes []QuoteColumn
	// anchors are those of the symbols; nil where factors are as the rows have them.
	anchors []Anchor
	// limit, unless nil, writes the limits of rows.
	limit func(symbol int, rec *Record, quoted []QuoteColumn)
	say   func(string)
	lines *lines

	// The header and what follows from it; header is nil until it was read.
	header  []string
	comma   rune
	columns resolved
	clock   *clock
	preset  preset

	clean []*Incremental
	last  []Record // of each symbol, as it was read
	// The rows of the time that is being collected, and the one that came after them.
	at      time.Time
	records []Record
	arrived []bool // a row is there, whether or not it has prices
	valid   []bool
	left    int // symbols without a row
	open    bool
	next    *Record
	nextOf  int
	// present is true of symbols that were last reported to have a row.
	present []bool

	done    time.Time // of the rows that were given last
	ended   bool
	skipped int // rows of times that were given, after the file began again
	anew    bool
	unknown map[string]bool
}

// Follow returns a follower of the CSV file source.Path, which may grow; of in where that is not
// nil, up to its end. symbols are given in their order, others are left out, and so are rows before
// from. It calls say with the factor that prices are adjusted by, and a warning where nothing
// adjusts them (an Adjustment's By, or empty), and with what it skips or mends, with the number of
// the line. Close the follower after use.
func Follow(s Source, in io.Reader, rules Rules, from Date, symbols []string, adjusted string, say func(string)) (*Follower, error) {
	if err := errors.Join(configs.Validate(s), configs.Validate(rules)); err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	if s.Bars != "" {
		return nil, errors.New("follow: source.bars: bars are followed, and no ticks")
	}
	n := len(symbols)
	f := &Follower{
		source: s, rules: rules, from: from, symbols: map[string]int{}, name: "stdin", adjusted: adjusted, say: say, preset: presets[s.Preset], unknown: map[string]bool{},
		clean: make([]*Incremental, n), last: make([]Record, n), records: make([]Record, n), arrived: make([]bool, n), valid: make([]bool, n), present: make([]bool, n), left: n,
	}
	for i, symbol := range symbols {
		f.symbols[symbol] = i
		f.clean[i] = NewIncremental(symbol, s, rules, nil, say)
	}
	if in != nil {
		f.lines = readerLines(in)
		return f, nil
	}
	switch ext := extensionOf(s.Path); ext {
	case ".csv", ".txt", ".tsv", "":
	default:
		return nil, fmt.Errorf("follow %s: only text that is appended to can be followed, and this is %s", s.Path, ext)
	}
	f.name = filepath.Base(s.Path)
	var err error
	if f.lines, err = fileLines(s.Path); err != nil {
		return nil, fmt.Errorf("follow: %w", err)
	}
	return f, nil
}

// Require makes a header without a column of these an error. It is called before Next.
func (f *Follower) Require(quotes []QuoteColumn) { f.quotes = quotes }

// Anchor has the factors of the symbols' rows divided as those of the data that somebody learnt
// from. It is called before Next.
func (f *Follower) Anchor(anchors []Anchor) { f.anchors = anchors }

// Limit has the limits of each row written by limit, which receives the symbol's number and
// the columns of quotes that rows have. It is called before Next.
func (f *Follower) Limit(limit func(symbol int, rec *Record, quoted []QuoteColumn)) { f.limit = limit }

// Close closes the file.
func (f *Follower) Close() error { return f.lines.close() }

// Next waits for the rows of the next time, [N] with valid saying which symbols have one. They are
// checked and adjusted as [Clean] does it, and valid until the next call. It returns io.EOF after
// the end of a stream, and the error of the context.
func (f *Follower) Next(ctx context.Context) (at time.Time, records []Record, valid []bool, err error) {
	for {
		complete, err := f.collect(ctx)
		if err != nil {
			return at, nil, nil, err
		}
		if !complete {
			continue
		}
		some := false
		for _, ok := range f.valid {
			some = some || ok
		}
		f.done, f.open = f.at, false
		f.tellAbsent()
		if some {
			return f.at, f.records, f.valid, nil
		}
	}
}

// collect takes one line, and says whether the rows of a time are complete.
func (f *Follower) collect(ctx context.Context) (complete bool, err error) {
	if !f.open && f.next != nil {
		rec, i := f.next, f.nextOf
		f.next = nil
		return f.take(rec, i)
	}
	if f.ended {
		return false, io.EOF
	}
	line, n, err := f.lines.next(ctx)
	switch {
	case errors.Is(err, errRestarted):
		f.leave(f.lines.restart(), n)
		f.say(f.name + ": the file begins again; it is read from its beginning")
		f.header, f.anew = nil, true
		return false, nil
	case errors.Is(err, io.EOF):
		rest := f.lines.restart()
		f.leave(rest, n)
		if f.header == nil && bytes.ContainsRune(rest, '\r') {
			return false, fmt.Errorf("follow %s: its lines end in a carriage return alone, and rows that arrive are read line by line; expected lines that end in a line feed, as onnxrl data convert writes them", f.name)
		}
		if f.header == nil {
			return false, fmt.Errorf("follow %s: there is no header line", f.name)
		}
		if f.ended = true; f.open {
			f.say(fmt.Sprintf("%s: the rows of %s are not complete, %s is missing: they are left out (an empty line after them would say that they are complete)", f.name, formatTime(f.at), f.missing()))
		}
		return false, io.EOF
	case err != nil:
		return false, err
	case len(bytes.TrimSpace(line)) == 0:
		return f.open && f.header != nil, nil
	case f.header == nil:
		return false, f.begin(string(line))
	}
	rec, symbol, err := f.parse(string(line), n)
	if err != nil {
		f.say(fmt.Sprintf("%s, line %d: skipped: %v", f.name, n, err))
		return false, nil
	}
	i, ok := f.symbols[symbol]
	if !ok {
		if !f.unknown[symbol] {
			f.unknown[symbol] = true
			f.say(fmt.Sprintf("%s, line %d: %s is none of the agent's assets; its rows are left out", f.name, n, symbol))
		}
		return false, nil
	}
	return f.take(rec, i)
}

// leave says that an unfinished line is not used.
func (f *Follower) leave(rest []byte, n int) {
	if len(bytes.TrimSpace(rest)) > 0 {
		f.say(fmt.Sprintf("%s, line %d: skipped: it does not end, and may be a part of a row", f.name, n))
	}
}

// begin reads the header, or the first row of files that have none.
func (f *Follower) begin(line string) error {
	if _, _, ok := ofUTF16([]byte(line)); ok {
		return fmt.Errorf("follow %s: it is in UTF-16, and rows that arrive are read line by line; expected UTF-8, as onnxrl data convert writes it", f.name)
	}
	f.comma = delimiter(line)
	cells, err := f.cells(strings.TrimPrefix(line, "\ufeff"))
	names := f.preset.header
	if names == nil {
		names = headless(cells)
	}
	if err == nil && isWide(cells) {
		err = errors.New("a table with three lines of header, as yfinance writes it, cannot be followed; onnxrl data convert makes rows of it")
	}
	if f.header = names; err == nil && names == nil {
		f.header, err = columnNames(cells)
	}
	if err == nil {
		f.preset = f.source.vendor(f.header)
		f.columns, err = f.source.resolve(f.header)
	}
	var loc *time.Location
	if err == nil {
		loc, err = f.source.location()
	}
	if err == nil {
		f.clock, err = newClock(f.source.TimeFormat, loc)
	}
	if err == nil && f.columns.symbol < 0 && len(f.symbols) > 1 {
		err = fmt.Errorf("there is no column of symbols, and the agent has %d assets", len(f.symbols))
	}
	if err == nil {
		have := f.columns.quoted()
		if f.limit != nil {
			have = append(have, LimitUp, LimitDown)
		}
		err = Lacking(f.quotes, have)
	}
	if err != nil {
		return fmt.Errorf("follow %s: line 1: %w", f.name, err)
	}
	f.columns.adjustment.Anchored = f.anchors != nil && f.columns.adjustment.By != "none"
	if !f.anew {
		f.say(f.columns.adjustment.String())
		if f.adjusted != "" && f.adjusted != f.columns.adjustment.By {
			f.say(OtherAdjustment(f.adjusted, f.columns.adjustment.By))
		}
	}
	for i, c := range f.clean {
		if f.anchors != nil && f.columns.adjustment.By != "none" {
			c.Anchor(f.anchors[i])
		}
		c.clean.has = actionsOf(f.columns.quoted())
		c.derives = f.columns.adjustment.By == ByActions
	}
	if names == nil {
		return nil
	}
	f.lines.buf = append([]byte(line+"\n"), f.lines.buf...)
	f.lines.n--
	return nil
}

func (f *Follower) cells(line string) ([]string, error) {
	r := csv.NewReader(strings.NewReader(line))
	r.Comma, r.TrimLeadingSpace = f.comma, true
	return r.Read()
}

// parse reads a row as it is.
func (f *Follower) parse(line string, n int) (*Record, string, error) {
	cells, err := f.cells(line)
	if err != nil {
		return nil, "", err
	}
	if len(cells) != len(f.header) {
		return nil, "", fmt.Errorf("%d cells, and the header has %d", len(cells), len(f.header))
	}
	row := &lineTable{csvTable{header: f.header, row: cells, semicolons: f.comma == ';'}, n}
	symbol := ""
	if f.columns.symbol >= 0 {
		symbol = strings.TrimSpace(cells[f.columns.symbol])
	} else {
		for symbol = range f.symbols { // the only one
			break
		}
	}
	rec, err := f.columns.record(row, f.clock, f.preset)
	rec.File = f.name
	// The caller adds the place.
	if err != nil {
		err = errors.New(strings.TrimPrefix(err.Error(), fmt.Sprintf("line %d, ", n)))
	}
	return &rec, symbol, err
}

// lineTable is a row of a table that was read line by line.
type lineTable struct {
	csvTable
	line int
}

func (t *lineTable) Line() int { return t.line }

// take puts a row where it belongs, and says whether the rows of a time are complete.
func (f *Follower) take(rec *Record, i int) (complete bool, err error) {
	switch {
	case !f.from.IsZero() && f.from.After(rec.Time):
		return false, nil
	case !f.done.IsZero() && !rec.Time.After(f.done), f.open && rec.Time.Before(f.at):
		return false, f.late(rec, i)
	case f.open && rec.Time.After(f.at):
		f.next, f.nextOf = rec, i
		return true, nil
	}
	if f.open && f.arrived[i] {
		return false, f.twice(rec, i)
	}
	if f.anew = false; f.skipped > 0 {
		f.say(fmt.Sprintf("%s: %d rows that were there before were skipped", f.name, f.skipped))
		f.skipped = 0
	}
	if !f.open {
		f.at, f.open, f.left = rec.Time, true, len(f.arrived)
		clear(f.arrived)
		clear(f.valid)
	}
	f.arrived[i], f.last[i] = true, *rec
	f.left--
	return f.left == 0, f.accept(rec, i)
}

// accept checks and adjusts a row.
func (f *Follower) accept(rec *Record, i int) (err error) {
	clean := *rec
	var limit func(*Record)
	if f.limit != nil {
		limit = func(rec *Record) { f.limit(i, rec, f.columns.quoted()) }
	}
	if f.valid[i], err = f.clean[i].Next(&clean, limit); err != nil {
		return err
	}
	f.records[i] = clean
	return nil
}

func (f *Follower) symbol(i int) string {
	for s, k := range f.symbols {
		if k == i {
			return s
		}
	}
	return ""
}

// tellAbsent says which symbols have no row from the present time on. One that had none before may
// not be listed yet.
func (f *Follower) tellAbsent() {
	for i, there := range f.arrived {
		if !there && f.present[i] {
			f.say(fmt.Sprintf("%s: there is no row of %s; it keeps its price and cannot be traded until there is one", f.symbol(i), formatTime(f.at)))
		}
		f.present[i] = there
	}
}

// missing lists the symbols that the present time has no row of.
func (f *Follower) missing() string {
	var list []string
	for s, i := range f.symbols {
		if !f.arrived[i] {
			list = append(list, s)
		}
	}
	return some(list)
}

// late is a row of a time that is done: where the file began again, it is there again.
func (f *Follower) late(rec *Record, i int) error {
	if f.anew {
		f.skipped++
		return nil
	}
	if last := &f.last[i]; rec.Time.Equal(last.Time) && SameRow(last, rec) {
		f.say(fmt.Sprintf("%s: %s (%s, line %d): there twice; skipped", f.symbol(i), formatTime(rec.Time), rec.File, rec.Line))
		return nil
	}
	text := fmt.Sprintf("%s: %s (%s, line %d): earlier than rows that were decided on", f.symbol(i), formatTime(rec.Time), rec.File, rec.Line)
	if f.rules.Unsorted == "error" {
		return errors.New(text)
	}
	f.say(text + "; skipped")
	return nil
}

// twice is a second row of a time that is not complete.
func (f *Follower) twice(rec *Record, i int) error {
	last := &f.last[i]
	place := fmt.Sprintf("%s: %s (%s, line %d)", f.symbol(i), formatTime(rec.Time), rec.File, rec.Line)
	switch {
	case f.anew && SameRow(last, rec):
		f.skipped++
	case SameRow(last, rec):
		f.say(place + ": there twice; skipped")
	case f.rules.Duplicates == "error":
		return fmt.Errorf("%s: differs from the row of the same time in line %d (close %v and %v); choose one with quality.duplicates", place, last.Line, last.Close, rec.Close)
	default:
		f.say(fmt.Sprintf("%s: differs from the row of the same time in line %d; the first is kept", place, last.Line))
	}
	return nil
}
