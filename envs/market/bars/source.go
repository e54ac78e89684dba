package bars

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // time zones must be there on machines without a zone database

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/exchange"
	"github.com/onnxrl/onnxrl/runtime/atomicfile"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// Source says where bars are and how to read them.
type Source struct {
	// Path is a file, a folder (every readable file directly in it, a folder in Qlib's format, or a
	// data set of Hugging Face: the files that its README.md names, or those in data) or a glob.
	// CSV files may end in .gz. What begins with shipped: is a file that comes with the program,
	// such as shipped:market/us5_daily.parquet. URL#sha256:… is a tree in a storage, with /PATH
	// what is below it; see onnxrl models push. hf://datasets/OWNER/NAME, with @REVISION and
	// /PATH behind it, is a data set of the Hub of Hugging Face.
	Path string `yaml:"path"`
	// Join is a file, a folder or a glob with older bars of the same symbols, which are put before
	// those of Path; on days that both have, closes must be equal. Factors of the older ones are
	// scaled to fit.
	Join string `yaml:"join,omitzero"`
	// Preset names a vendor's columns and units; auto recognises the vendor by the header, and the
	// usual names.
	Preset string `yaml:"preset"`
	// Columns overrides single columns of the preset.
	Columns Columns `yaml:"columns"`
	// PerShares is the number of shares that the columns of dividends and bonus shares are for; 0
	// is the preset's, 10 for akshare and else 1.
	PerShares float64 `yaml:"per_shares,omitzero"`
	// Symbol says where symbols come from: column, file (the name without extensions) or auto, the
	// column if there is one.
	Symbol string `yaml:"symbol"`
	// TimeFormat is auto, a Go layout (2006-01-02), a strftime format (%Y-%m-%d), unix, unix_ms,
	// unix_us, unix_ns, or excel, the serial numbers of its days.
	TimeFormat string `yaml:"time_format"`
	// Timezone is the zone of times that carry none, such as America/New_York, and the one all
	// times are brought into. Empty takes dates, and times without an offset from UTC, as they are
	// written; other times are of the zone that their offsets are those of, or of UTC.
	Timezone string `yaml:"timezone"`
	// Adjust is auto (adj_close if there is such a column, else adj_factor, else the columns of
	// dividends and bonus shares), none, adj_close (prices times adj_close/close), factor (prices
	// times the factor column) or actions (prices times a factor that begins with 1 and on an
	// ex-date is multiplied by (close before)·(1 + bonus)/(close before − dividend), by which the
	// exchanges of China compute the price to compare that day with).
	Adjust string `yaml:"adjust"`
	// Anchor says on which day adjusted prices are as they were quoted. Empty: where the source's
	// factors are 1, which is the last day for adjusted closes. first: on the first day of each
	// symbol, from calendar.from on, so that no price depends on later splits and dividends.
	Anchor string `yaml:"anchor,omitzero"`
	// AdjustVolume is keep, inverse (volume divided by the factor) or splits (divided only by the
	// steps of the factor that look like splits, for volumes that are not adjusted for them; the
	// result is in shares of the first row).
	AdjustVolume string `yaml:"adjust_volume"`
	// Extra are further numeric columns to carry along, such as limit_up.
	// Where there is no column vwap, it is amount/volume, adjusted as prices are.
	Extra []string `yaml:"extra"`
	// Instruments names the file of a Qlib folder that lists its symbols, such as csi300; empty:
	// all.
	Instruments string `yaml:"instruments,omitzero"`
	// Frequency names the calendar of a Qlib folder, such as day or 1min; empty: the only one.
	Frequency string `yaml:"frequency,omitzero"`
	// Subset names one of the subsets of a data set of Hugging Face; empty: default, or the only
	// one.
	Subset string `yaml:"subset,omitzero"`
	// Bars makes bars of ticks, or of snapshots of a book: 5m, 1d, volume=100000, dollar=1e6 (in
	// the asset's currency) or ticks=500. Bars of time are named by their end; others end with the
	// first instant at which they have as much, or with the session. Empty: the rows are bars.
	Bars string `yaml:"bars,omitzero"`
	// Cumulative says that volume and amount of ticks are the day's totals so far, as those of
	// Wind are unless columns.volume names another column.
	Cumulative bool `yaml:"cumulative,omitzero"`
	// Exchange is the calendar that the dates and hours of the rows are compared with, and whose
	// sessions bars of ticks do not leave: xnys, xshg, xshe, or a CSV file.
	Exchange string `yaml:"exchange,omitzero"`
	// Sessions are the hours of trading, such as [09:30-11:30, 13:00-15:00], in place of the
	// exchange's.
	Sessions []string `yaml:"sessions,omitzero"`
}

// DefaultSource returns the defaults; Path must be set.
func DefaultSource() Source {
	return Source{Preset: "auto", Symbol: "auto", TimeFormat: "auto", Adjust: "auto", AdjustVolume: "keep"}
}

// Validate reports what is wrong with the fields. That there is a path is for the reader to check:
// the data may come from elsewhere.
func (s Source) Validate() error {
	var p configs.Problems
	p.OneOf("preset", s.Preset, presetNames()...)
	p.OneOf("symbol", s.Symbol, "auto", "column", "file")
	p.OneOf("adjust", s.Adjust, "auto", "none", "adj_close", "factor", ByActions)
	p.OneOf("anchor", s.Anchor, "", First)
	p.Check(s.Anchor == "" || s.Adjust != "none", "anchor", "%s is for prices that are adjusted, and adjust is none", s.Anchor)
	p.OneOf("adjust_volume", s.AdjustVolume, "keep", "inverse", "splits")
	if _, err := s.location(); err != nil {
		p.Addf("timezone", "%v", err)
	}
	p.NonNegative("per_shares", s.PerShares)
	if _, err := newClock(s.TimeFormat, nil); err != nil {
		p.Addf("time_format", "%v", err)
	}
	if s.Bars != "" {
		_, err := parseBarSize(s.Bars)
		p.Check(err == nil, "bars", "%v", err)
	}
	p.Check(s.Bars != "" || !s.Cumulative, "cumulative", "only ticks have totals so far: set bars, too")
	for i, text := range s.Sessions {
		_, err := exchange.ParseSession(text)
		p.Check(err == nil, fmt.Sprintf("sessions[%d]", i), "%v", err)
	}
	for i, name := range s.Extra {
		p.Check(name != "" && !slices.Contains(s.Extra[:i], name), fmt.Sprintf("extra[%d]", i), "the name %q is empty or there twice", name)
	}
	return p.Err()
}

func (s Source) location() (*time.Location, error) {
	if s.Timezone == "" {
		return nil, nil
	}
	loc, err := time.LoadLocation(s.Timezone)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone such as America/New_York or UTC", s.Timezone)
	}
	return loc, nil
}

// File is a file that was read.
type File struct {
	Name   string `json:"name"` // without folders
	SHA256 string `json:"sha256"`
	Rows   int    `json:"rows"`
}

// Data is what a source holds.
type Data struct {
	Series []Series // sorted by symbol, or in the order of the symbols asked for
	Files  []File
	// Adjustment says what prices are multiplied by.
	Adjustment Adjustment
	// Anchors are those of the series, in their order; nil unless [Data.Anchor] was called.
	Anchors []Anchor
	// Zone is the time zone that the offsets of the times tell, where the source names none; empty
	// where they are as written.
	Zone string
	// HasVolume says whether there is a volume column.
	HasVolume bool
	Extra     []string
	// Notes are what [Data.Examine] has found, for whoever prepares the data.
	Notes []string

	// rows has the rows of the series, whose Records are then nil; nil: they are in memory. stages are
	// what was done to them since, in order.
	rows     *rowStore
	stages   []func(*Series)
	clock    clockCounts
	exchange *exchange.Calendar // nil: none
	sessions func(time.Time) []exchange.Session
	outside  string   // what was left out of ticks
	totals   string   // what volumes of ticks look like
	factors  []string // jumps of factors without one of the price
	without  []string // published values that symbols lack
}

// Read reads every row of the source. With symbols given only theirs are kept, in that order, and
// one that has no rows is an error. Errors name file, line and column.
func Read(s Source, symbols []string) (*Data, error) { return read(s, symbols, nil, 0) }

// ReadAway is Read for more rows than fit into memory: all but at most so many are in a temporary file
// that [Data.Close] removes, and Series have none. [Data.Each] gives them. Those of a source with Join
// are in memory.
func ReadAway(s Source, symbols []string, most int) (*Data, error) {
	if s.Join != "" {
		most = 0
	}
	return read(s, symbols, nil, most)
}

// Held is the most rows that were in memory at once, those of a series that [Data.Each] gives included;
// 0 after Read.
func (d *Data) Held() int {
	if d.rows == nil {
		return 0
	}
	return d.rows.peak
}

// Close removes what Data keeps outside of memory. There is nothing to close after Read.
func (d *Data) Close() error { return d.rows.close() }

// Err says what rows outside of memory could not be kept or read for; [Data.Each] has then left rows
// out.
func (d *Data) Err() error {
	if d.rows == nil {
		return nil
	}
	return d.rows.err
}

// Each gives the series one after another, with their rows, which stay in memory only where they are
// there already. See [Data.Err].
func (d *Data) Each() iter.Seq2[int, Series] {
	return func(yield func(int, Series) bool) {
		for i := range d.Series {
			if !yield(i, d.at(i)) {
				return
			}
		}
	}
}

// at is a series with its rows.
func (d *Data) at(i int) Series {
	s := d.Series[i]
	if d.rows == nil {
		return s
	}
	s.Records = d.rows.load(s.Symbol)
	for _, stage := range d.stages {
		stage(&s)
	}
	return s
}

// change does something to the rows of every series, by itself.
func (d *Data) change(stage func(*Series)) {
	if d.rows != nil {
		d.stages = append(d.stages, stage)
		return
	}
	for i := range d.Series {
		stage(&d.Series[i])
	}
}

// read reads a source. each, unless nil, takes ticks, and then there are no rows. most is how many rows
// are in memory; 0: all.
func read(s Source, symbols []string, each eachTick, most int) (_ *Data, err error) {
	if err := configs.Validate(s); err != nil {
		return nil, fmt.Errorf("read bars: %w", err)
	}
	if s.Path == "" {
		return nil, errors.New("read bars: source.path is missing: a file, a folder or a glob")
	}
	if s, err = s.local(); err != nil {
		return nil, fmt.Errorf("read bars: %w", err)
	}
	paths, err := s.files()
	if err != nil {
		return nil, fmt.Errorf("read bars: %w", err)
	}
	r := &reader{source: s, wanted: map[string]bool{}, rows: newRowStore(most)}
	for _, sym := range symbols {
		r.wanted[sym] = true
	}
	d := &Data{Extra: s.Extra}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.rows.close())
		}
	}()
	if err := d.hours(s); err != nil {
		return nil, fmt.Errorf("read bars: source.exchange: %w", err)
	}
	if s.Bars != "" {
		size, err := parseBarSize(s.Bars)
		if err != nil {
			return nil, fmt.Errorf("read bars: source.bars: %w", err)
		}
		r.ticks = &tickReader{size: size, sessions: d.sessions, symbols: map[string]*ticker{}, each: each}
	}
	var quoted []QuoteColumn
	for i, path := range paths {
		f, err := r.file(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if i > 0 && r.adjustment.By != d.Adjustment.By {
			return nil, fmt.Errorf("read %s: its prices would be adjusted by %s and those of %s by %s: set source.adjust", path, r.adjustment.By, paths[i-1], d.Adjustment.By)
		}
		d.Adjustment = r.adjustment
		d.HasVolume = d.HasVolume || r.volume
		quoted = append(quoted, r.quoted...)
		d.clock.add(r.clock)
		d.Files = append(d.Files, f)
	}
	slices.Sort(quoted)
	quoted = slices.Compact(quoted)
	if k := r.ticks; k != nil {
		k.finish(d.Files[len(d.Files)-1].Name, r.rows.add)
		if k.columns.book() {
			d.Extra = slices.Concat(BookColumns, s.Extra)
		}
		d.totals = k.totals()
		if k.outside > 0 {
			d.outside = fmt.Sprintf("ticks outside the hours of trading, which are left out: %d, the first in %s", k.outside, k.first)
		}
	}
	if each != nil {
		return d, nil
	}
	if len(symbols) == 0 {
		for sym := range r.rows.of {
			symbols = append(symbols, sym)
		}
		slices.Sort(symbols)
	}
	if len(symbols) == 0 {
		return nil, fmt.Errorf("read %s: there are no rows", s.Path)
	}
	for _, sym := range symbols {
		if r.rows.count(sym) == 0 {
			return nil, fmt.Errorf("read %s: symbol %q has no rows; there are %s", s.Path, sym, some(r.seen))
		}
		series := Series{Symbol: sym, Quoted: quoted}
		if most == 0 {
			series.Records = r.rows.load(sym)
		}
		d.Series = append(d.Series, series)
	}
	if most > 0 {
		d.rows = r.rows
	}
	if s.Timezone == "" {
		if err := d.useOffsets(r.ticks != nil); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Path, err)
		}
	}
	if d.Adjustment.By == ByActions {
		d.change(func(s *Series) { makeFactors(s.Records) })
	}
	if err := d.adjustment(s.Adjust == "auto"); err != nil {
		return nil, fmt.Errorf("read %s: %w", s.Path, err)
	}
	if s.Join != "" {
		if err := d.join(s); err != nil {
			return nil, fmt.Errorf("read %s: %w", s.Path, err)
		}
	}
	return d, d.Err()
}

// Pick keeps the series of the given symbols, in that order; none given keeps all. A symbol without
// a series is an error.
func (d *Data) Pick(symbols []string) (*Data, error) {
	if len(symbols) == 0 {
		return d, nil
	}
	picked := *d
	picked.Series = nil
	for _, symbol := range symbols {
		i := slices.IndexFunc(d.Series, func(s Series) bool { return s.Symbol == symbol })
		if i < 0 {
			var seen []string
			for _, s := range d.Series {
				seen = append(seen, s.Symbol)
			}
			return nil, fmt.Errorf("symbol %q has no rows; there are %s", symbol, some(seen))
		}
		picked.Series = append(picked.Series, d.Series[i])
	}
	return &picked, nil
}

// some lists a few symbols.
func some(seen []string) string {
	slices.Sort(seen)
	if len(seen) > 12 {
		return strings.Join(seen[:12], ", ") + fmt.Sprintf(" and %d more", len(seen)-12)
	}
	if len(seen) == 0 {
		return "none"
	}
	return strings.Join(seen, ", ")
}

// Contents are the files of a source with their checksums, in the order of reading; the rows are
// not read. Those of a folder in Qlib's format are all its files.
func Contents(s Source) (list []File, err error) {
	if s, err = s.local(); err != nil {
		return nil, err
	}
	paths, err := s.files()
	if err != nil {
		return nil, err
	}
	if isQlib(s.Path) {
		paths = nil
		err := filepath.WalkDir(s.Path, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type().IsRegular() {
				paths = append(paths, path)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	for _, path := range paths {
		f := File{Name: filepath.Base(path)}
		if name, err := filepath.Rel(s.Path, path); err == nil && filepath.IsLocal(name) && name != "." {
			f.Name = filepath.ToSlash(name)
		}
		if f.SHA256, err = digest(path); err != nil {
			return nil, err
		}
		list = append(list, f)
	}
	return list, nil
}

// extensions that a folder is searched for.
var extensions = []string{".csv", ".csv.gz", ".txt", ".tsv", ".parquet", ".pq", ".arrow", ".feather", ".ipc"}

func extensionOf(path string) string {
	lower := strings.ToLower(path)
	for _, e := range extensions {
		if strings.HasSuffix(lower, e) {
			return e
		}
	}
	return ""
}

// local is the source with the paths of this machine in place of references.
func (s Source) local() (Source, error) {
	var err error
	if s.Path, err = objects.Local(s.Path); err == nil {
		s.Join, err = objects.Local(s.Join)
	}
	return s, err
}

// files lists what Path names, in the order of names.
func (s Source) files() ([]string, error) {
	if strings.HasPrefix(s.Path, shippedPrefix) {
		return []string{s.Path}, nil
	}
	info, err := os.Stat(s.Path)
	switch {
	case err == nil && !info.IsDir():
		return []string{s.Path}, nil
	case isQlib(s.Path):
		return []string{s.Path}, nil
	case err == nil:
		if paths, ok, err := s.shards(); ok {
			return paths, err
		}
		entries, err := os.ReadDir(s.Path)
		if err != nil {
			return nil, err
		}
		var paths []string
		for _, e := range entries {
			if name := e.Name(); !e.IsDir() && extensionOf(name) != "" && !strings.HasPrefix(name, ".") && !atomicfile.IsTemp(name) {
				paths = append(paths, filepath.Join(s.Path, name))
			}
		}
		if len(paths) == 0 {
			return nil, fmt.Errorf("the folder %s holds no file that ends in %s", s.Path, strings.Join(extensions, ", "))
		}
		return paths, nil
	case !strings.ContainsAny(s.Path, "*?["):
		return nil, err
	}
	paths, err := filepath.Glob(s.Path)
	if err != nil {
		return nil, fmt.Errorf("pattern %q: %w", s.Path, err)
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no file matches %q", s.Path)
	}
	slices.Sort(paths)
	return paths, nil
}

// reader collects the rows of several files.
type reader struct {
	source     Source
	wanted     map[string]bool
	rows       *rowStore
	seen       []string
	adjustment Adjustment
	volume     bool
	quoted     []QuoteColumn
	clock      clockCounts
	ticks      *tickReader // nil: rows are bars
}

// table is an opened file. Cells belong to the current row; columns are positions in Header.
type table interface {
	Header() []string
	// Select says which columns will be read; it is called once, before Next.
	Select(columns []int)
	Next() error // io.EOF after the last row
	Line() int
	Text(column int) (string, error)
	Number(column int) (float64, error) // NaN where blank
	Time(column int, c *clock) (time.Time, error)
	Close() error
}

func (r *reader) open(path string, p preset) (table, error) {
	if isQlib(path) {
		return openQlib(r.source)
	}
	switch extensionOf(path) {
	case ".parquet", ".pq":
		return openParquet(path)
	case ".arrow", ".feather", ".ipc":
		return openArrow(path)
	}
	return openCSV(path, p.header)
}

// file reads one file into r.rows.
func (r *reader) file(path string) (f File, err error) {
	f.Name = filepath.Base(path)
	p := presets[r.source.Preset]
	t, err := r.open(path, p)
	if err != nil {
		return f, err
	}
	folder, _ := t.(*qlibTable)
	if folder != nil {
		defer func() { f.SHA256 = folder.digest() }()
	} else if f.SHA256, err = digest(path); err != nil {
		return f, errors.Join(err, t.Close())
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if folder != nil && r.ticks != nil {
		return f, errors.New("source.bars: a Qlib folder holds bars, and no ticks")
	}
	loc, err := r.source.location()
	if err != nil {
		return f, err
	}
	p = r.source.vendor(t.Header())
	clock, err := newClock(r.source.TimeFormat, loc)
	if err != nil {
		return f, err
	}
	stem := f.Name[:len(f.Name)-len(extensionOf(f.Name))]
	if r.ticks != nil {
		r.adjustment, r.quoted = Adjustment{By: "none"}, []QuoteColumn{Amount}
		return f, r.readTicks(t, clock, &f, path)
	}
	cols, err := r.source.resolve(t.Header())
	if err != nil {
		return f, err
	}
	if folder != nil {
		if cols.divided = slices.Index(t.Header(), "factor"); cols.adjustment.By == ByActions {
			cols.adjustment.By = "none" // The prices are adjusted already.
		}
	}
	t.Select(cols.used())
	r.adjustment, r.volume, r.quoted = cols.adjustment, cols.volume >= 0, cols.quoted()
	r.adjustment.Already = folder != nil
	known := ""
	for {
		err := t.Next()
		if errors.Is(err, io.EOF) {
			r.clock = clock.seen
			return f, nil
		}
		if err != nil {
			return f, err
		}
		f.Rows++
		symbol := stem
		if cols.symbol >= 0 {
			if symbol, err = t.Text(cols.symbol); err != nil || symbol == "" {
				return f, fmt.Errorf("line %d, column %q: expected a symbol: %w", t.Line(), t.Header()[cols.symbol], orBlank(err))
			}
		}
		if symbol != known {
			symbol = strings.Clone(symbol)
			if !r.rows.has(symbol) {
				r.seen = append(r.seen, symbol)
			}
			known = symbol
		}
		if len(r.wanted) > 0 && !r.wanted[symbol] {
			continue
		}
		if folder != nil {
			if absent, err := folder.absent(); err != nil {
				return f, err
			} else if absent {
				f.Rows--
				continue
			}
		}
		rec, err := cols.record(t, clock, p)
		if err != nil {
			if folder != nil { // whose rows are lines of no file
				err = fmt.Errorf("%s at %s: %w", symbol, formatTime(rec.Time), err)
			}
			return f, err
		}
		rec.File, rec.offset, rec.stamped = f.Name, clock.offset, clock.stamped
		r.rows.add(symbol, rec)
	}
}

func orBlank(err error) error {
	if err == nil {
		return errors.New("it is blank")
	}
	return err
}

func digest(path string) (string, error) {
	f, err := open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
