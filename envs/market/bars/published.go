package bars

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/objects"
)

// PublishedSource says where values are that were published at a time of their own: of the market
// (rates, indices, moods) or of single symbols (earnings, ratings).
type PublishedSource struct {
	// Path is a file: CSV (also gzipped), Parquet or Arrow.
	Path string `yaml:"path"`
	// Columns are the numeric columns to join. Names, unless empty, are what they are called beside
	// source.extra: one for each.
	Columns []string `yaml:"columns"`
	Names   []string `yaml:"names,omitzero"`
	// Published is the column with the time at which a row became known.
	Published string `yaml:"published"`
	// Period is the column that says what time a value is about. A later row of the same period is
	// a revision, and one of an earlier period replaces no later one. Empty: each row replaces the
	// one published before.
	Period string `yaml:"period,omitzero"`
	// Symbol is the column with the symbol; empty: the values are those of the market.
	Symbol string `yaml:"symbol,omitzero"`
	// TimeFormat and Timezone are as those of a source; an empty zone is the source's.
	TimeFormat string `yaml:"time_format,omitzero"`
	Timezone   string `yaml:"timezone,omitzero"`
	// SameDay counts what was published on the day of a bar as known at the bar. Otherwise a row is
	// known at bars whose time is later than its publication, from the next day on for daily bars:
	// whether it came before the close is not known.
	SameDay bool `yaml:"same_day,omitzero"`
}

// Validate reports what is wrong with the fields.
func (s PublishedSource) Validate() error {
	var p configs.Problems
	p.Check(s.Path != "", "path", "required: a file")
	p.Check(len(s.Columns) > 0, "columns", "required: the columns to join")
	p.Check(s.Published != "", "published", "required: the column with the time at which a row became known")
	p.Check(len(s.Names) == 0 || len(s.Names) == len(s.Columns), "names", "there are %d names for %d columns", len(s.Names), len(s.Columns))
	for i, name := range s.names() {
		p.Check(name != "" && !slices.Contains(s.names()[:i], name), fmt.Sprintf("columns[%d]", i), "the name %q is empty or there twice", name)
	}
	if _, err := newClock(cmp.Or(s.TimeFormat, "auto"), nil); err != nil {
		p.Addf("time_format", "%v", err)
	}
	if _, err := (Source{Timezone: s.Timezone}).location(); err != nil {
		p.Addf("timezone", "%v", err)
	}
	return p.Err()
}

func (s PublishedSource) names() []string {
	if len(s.Names) > 0 {
		return s.Names
	}
	return s.Columns
}

// Published are the values of several sources, by the time from which on they are known. They do
// not change.
type Published struct {
	sources []PublishedSource
	zone    string
	tables  []*publishedTable
	Names   []string // in the order of At
	Files   []File
}

// publishedTable holds the values of a source: by symbol, or of "", and by column.
type publishedTable struct {
	source PublishedSource
	steps  map[string][][]knownFrom
	mtime  time.Time
}

// knownFrom is a value from the time on at which it was published.
type knownFrom struct {
	at    time.Time
	value float64
}

// ReadPublished reads the sources; zone is that of times which carry none, for sources that name no
// other. Errors name file, line and column.
func ReadPublished(sources []PublishedSource, zone string) (*Published, error) {
	p := &Published{sources: sources, zone: zone}
	for i, s := range sources {
		if err := configs.Validate(s); err != nil {
			return nil, fmt.Errorf("series[%d]: %w", i, err)
		}
		for _, name := range s.names() {
			if slices.Contains(p.Names, name) {
				return nil, fmt.Errorf("series[%d]: there are two columns called %q: set names", i, name)
			}
			p.Names = append(p.Names, name)
		}
		t, f, err := readPublished(s, zone)
		if err != nil {
			return nil, fmt.Errorf("series[%d]: read %s: %w", i, s.Path, err)
		}
		p.tables, p.Files = append(p.tables, t), append(p.Files, f)
	}
	return p, nil
}

// publishedRow is a row before revisions are sorted out.
type publishedRow struct {
	at     time.Time
	period string
	values []float64
	line   int
}

func readPublished(s PublishedSource, zone string) (_ *publishedTable, f File, err error) {
	if s.Path, err = objects.Local(s.Path); err != nil {
		return nil, f, err
	}
	f.Name = filepath.Base(s.Path)
	info, err := os.Stat(s.Path)
	if err != nil {
		return nil, f, err
	}
	if f.SHA256, err = digest(s.Path); err != nil {
		return nil, f, err
	}
	t, err := (&reader{}).open(s.Path, preset{})
	if err != nil {
		return nil, f, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	header := t.Header()
	var used []int
	find := func(name string) int {
		i := slices.Index(header, name)
		if i >= 0 && !slices.Contains(used, i) {
			used = append(used, i)
		}
		if i < 0 && name != "" && err == nil {
			err = fmt.Errorf("no column %q; the file has the columns %s", name, strings.Join(header, ", "))
		}
		return i
	}
	published, period, symbol := find(s.Published), find(s.Period), find(s.Symbol)
	columns := make([]int, len(s.Columns))
	for i, name := range s.Columns {
		columns[i] = find(name)
	}
	if err != nil {
		return nil, f, err
	}
	t.Select(used)
	loc, err := (Source{Timezone: cmp.Or(s.Timezone, zone)}).location()
	if err != nil {
		return nil, f, err
	}
	clock, err := newClock(cmp.Or(s.TimeFormat, "auto"), loc)
	if err != nil {
		return nil, f, err
	}
	rows := map[string][]publishedRow{}
	for {
		if err := t.Next(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, f, err
		}
		f.Rows++
		row, of := publishedRow{line: t.Line()}, ""
		fail := func(column int, err error) error {
			return fmt.Errorf("line %d, column %q: %w", t.Line(), header[column], err)
		}
		if row.at, err = t.Time(published, clock); err != nil {
			return nil, f, fail(published, err)
		}
		if period >= 0 {
			if row.period, err = periodOf(t, period, loc); err != nil {
				return nil, f, fail(period, err)
			}
		}
		if symbol >= 0 {
			if of, err = t.Text(symbol); err != nil || of == "" {
				return nil, f, fail(symbol, orBlank(err))
			}
			of = strings.Clone(of)
		}
		for _, c := range columns {
			v, err := t.Number(c)
			if err == nil && math.IsInf(v, 0) {
				err = fmt.Errorf("%v is not a number", v)
			}
			if err != nil {
				return nil, f, fail(c, err)
			}
			row.values = append(row.values, v)
		}
		rows[of] = append(rows[of], row)
	}
	if f.Rows == 0 {
		return nil, f, errors.New("there are no rows")
	}
	table := &publishedTable{source: s, steps: map[string][][]knownFrom{}, mtime: info.ModTime()}
	for of, list := range rows {
		if table.steps[of], err = known(list, len(columns)); err != nil {
			if of != "" {
				err = fmt.Errorf("%s: %w", of, err)
			}
			return nil, f, err
		}
	}
	return table, f, nil
}

// periodOf reads a period as a text that sorts by time: a date, or what sorts by itself, such as
// 2020Q1.
func periodOf(t table, column int, loc *time.Location) (string, error) {
	clock, err := newClock("auto", loc)
	if err != nil {
		return "", err
	}
	if at, err := t.Time(column, clock); err == nil {
		return at.UTC().Format(time.RFC3339Nano), nil
	}
	text, err := t.Text(column)
	if err != nil || text == "" {
		return "", orBlank(err)
	}
	return strings.Clone(text), nil
}

// known puts rows into the order in which they were published, and keeps of each column what was
// then the value of the latest period.
func known(rows []publishedRow, columns int) ([][]knownFrom, error) {
	slices.SortStableFunc(rows, func(a, b publishedRow) int { return cmp.Or(a.at.Compare(b.at), strings.Compare(a.period, b.period)) })
	out := make([][]knownFrom, columns)
	latest := make([]string, columns)
	for i, row := range rows {
		if i > 0 && row.at.Equal(rows[i-1].at) && row.period == rows[i-1].period && !sameValues(row.values, rows[i-1].values) {
			return nil, fmt.Errorf("the rows of lines %d and %d were published at the same time, %s, and differ", rows[i-1].line, row.line, formatTime(row.at))
		}
		for c, v := range row.values {
			if math.IsNaN(v) || row.period < latest[c] {
				continue
			}
			latest[c] = row.period
			if n := len(out[c]); n > 0 && out[c][n-1].at.Equal(row.at) {
				out[c][n-1].value = v
				continue
			}
			out[c] = append(out[c], knownFrom{row.at, v})
		}
	}
	return out, nil
}

func sameValues(a, b []float64) bool {
	return slices.EqualFunc(a, b, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) })
}

// Until returns what of the values is known at a bar of time t, without later publications.
func (p *Published) Until(t time.Time) *Published {
	out := *p
	out.tables = make([]*publishedTable, len(p.tables))
	for i, table := range p.tables {
		cut := &publishedTable{source: table.source, steps: map[string][][]knownFrom{}}
		for of, columns := range table.steps {
			list := make([][]knownFrom, len(columns))
			for c, steps := range columns {
				list[c] = steps[:table.count(steps, t)]
			}
			cut.steps[of] = list
		}
		out.tables[i] = cut
	}
	return &out
}

// count is how many of the steps are known at a bar of time t.
func (t *publishedTable) count(steps []knownFrom, at time.Time) int {
	n, _ := slices.BinarySearchFunc(steps, at, func(k knownFrom, at time.Time) int {
		if t.source.SameDay {
			if NewDate(k.at.In(at.Location())).After(at) {
				return 1
			}
			return -1
		}
		if k.at.Before(at) {
			return -1
		}
		return 1
	})
	return n
}

// At appends what is known of a symbol at a bar of time t, in the order of Names; NaN where nothing
// is.
func (p *Published) At(symbol string, t time.Time, out []float64) []float64 {
	for _, table := range p.tables {
		of := ""
		if table.source.Symbol != "" {
			of = symbol
		}
		columns := table.steps[of]
		for c := range table.source.Columns {
			v := math.NaN()
			if columns != nil {
				if n := table.count(columns[c], t); n > 0 {
					v = columns[c][n-1].value
				}
			}
			out = append(out, v)
		}
	}
	return out
}

// Join appends the values that are known at each row to its extra columns, of which there are own
// before; what was joined before is replaced. Series share no memory with those of the data before.
func (p *Published) Join(d *Data, own int) {
	d.Extra = append(d.Extra[:own:own], p.Names...)
	if d.rows != nil {
		d.change(func(s *Series) {
			for k := range s.Records {
				r := &s.Records[k]
				r.Extra = p.At(s.Symbol, r.Time, r.Extra[:own:own])
			}
		})
		return
	}
	joined := make([]Series, len(d.Series))
	for i, s := range d.Series {
		joined[i] = s
		joined[i].Records = slices.Clone(s.Records)
		for k := range joined[i].Records {
			r := &joined[i].Records[k]
			r.Extra = p.At(s.Symbol, r.Time, r.Extra[:own:own])
		}
	}
	d.Series = joined
}

// Check says which names are those of other columns, and notes for which symbols there is nothing.
func (p *Published) Check(d *Data) error {
	for _, name := range p.Names {
		if slices.Contains(d.Extra, name) {
			return fmt.Errorf("series: there are two columns called %q: set names", name)
		}
	}
	for i, table := range p.tables {
		var none []string
		for _, s := range d.Series {
			if _, ok := table.steps[s.Symbol]; table.source.Symbol != "" && !ok {
				none = append(none, s.Symbol)
			}
		}
		if len(none) > 0 {
			d.without = append(d.without, fmt.Sprintf("series[%d] (%s) has nothing for %s", i, p.Files[i].Name, some(none)))
		}
	}
	return nil
}

// Refresh returns the values as they are in the files now; p itself where no file has changed.
func (p *Published) Refresh() (*Published, error) {
	for _, table := range p.tables {
		if info, err := os.Stat(table.source.Path); err != nil || !info.ModTime().Equal(table.mtime) {
			return ReadPublished(p.sources, p.zone)
		}
	}
	return p, nil
}
