package prepared

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/market/split"
	"github.com/onnxrl/onnxrl/envs/market/synthetic"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Format and Version identify manifests. Version is raised when the manifest or what its digest
// covers changes.
const (
	Format = "onnxrl market data"
	// Version 2 has quotes, and version 3 members. Sets of version 1 have no quotes and are read as
	// such, and those without a universe are written as version 2.
	Version       = 3
	quotesVersion = 2
)

// Read reads the rows of the configured source, or makes them, and examines them: data that are
// useless as they are, such as daily bars with different clock times, are an error (see
// [bars.Data.Examine]).
func Read(c Config) (*bars.Data, error) { return ReadAnchored(c, nil) }

// ReadAnchored is Read of bars for somebody who learnt from data with these anchors; see
// [bars.Data.Anchor].
func ReadAnchored(c Config, anchors []bars.Anchor) (*bars.Data, error) {
	return examined(c, bars.Read, anchors)
}

// examined is ReadAnchored, with what reads the rows of the source.
func examined(c Config, read func(bars.Source, []string) (*bars.Data, error), anchors []bars.Anchor) (*bars.Data, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	data, err := rows(c, read, anchors)
	if err != nil || c.Synthetic.Kind != "" {
		return data, err
	}
	found, err := data.Examine(c.Quality)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("check the data: %w", err), data.Close())
	}
	data.Notes = append(data.Notes, found...)
	return data, nil
}

// Rows reads the rows of the configured source, or makes them, as they are. Only Source, Synthetic,
// Series and Assets are used.
func Rows(c Config) (*bars.Data, error) { return rows(c, bars.Read, nil) }

// rows is Rows, with what reads the rows of the source and the anchors that somebody learnt from.
func rows(c Config, read func(bars.Source, []string) (*bars.Data, error), anchors []bars.Anchor) (_ *bars.Data, err error) {
	if c.Stored != "" {
		return nil, fmt.Errorf("stored: %s holds a market that has been prepared, and no bars to prepare", c.Stored)
	}
	var all *bars.Data
	if c.Synthetic.Kind == "" {
		all, err = read(c.Source, c.Assets)
	} else {
		var m synthetic.Market
		if m, err = synthetic.New(c.Synthetic); err == nil {
			all, err = m.Generate().Pick(c.Assets)
		}
	}
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, all.Close())
		}
	}()
	data, err := pickMembers(c, all)
	if err == nil && c.Source.Anchor == bars.First {
		if err = data.Anchor(c.Calendar.From, anchors); err != nil {
			return nil, fmt.Errorf("source.anchor: %w", err)
		}
	}
	if err != nil || len(c.Series) == 0 {
		return data, err
	}
	p, err := bars.ReadPublished(c.Series, cmp.Or(c.Source.Timezone, data.Zone))
	if err != nil {
		return nil, err
	}
	if err := p.Check(data); err != nil {
		return nil, err
	}
	p.Join(data, len(data.Extra))
	data.Files = append(data.Files, p.Files...)
	return data, nil
}

// aligned is the panel of cleaned rows with its features laid out.
type aligned struct {
	// panel has no bars where asset makes the columns.
	panel *bars.Panel
	// asset gives a symbol in a panel with all times, and where it is in it.
	asset    func(n int) (*bars.Panel, int)
	features *feature.Features
	reports  []bars.SymbolReport
	limits   []rules.Found // nil without a rule book
}

// align cleans and aligns the rows and lays out the features. A symbol without rows has an empty
// column.
func align(c Config, data *bars.Data) (*aligned, error) {
	f, err := feature.New(c.Features, data.Extra, data.HasVolume)
	if err != nil {
		return nil, err
	}
	a := &aligned{features: f, reports: make([]bars.SymbolReport, len(data.Series))}
	clean := make([]bars.Series, len(data.Series))
	for i, s := range data.Series {
		if len(s.Records) == 0 {
			clean[i], a.reports[i].Symbol = s, s.Symbol
			continue
		}
		if clean[i], a.reports[i], err = bars.Clean(s, c.Quality, c.Source.AdjustVolume); err != nil {
			return nil, fmt.Errorf("check the data: %w", err)
		}
	}
	if a.limits, err = limit(c, clean); err != nil {
		return nil, err
	}
	if a.panel, err = bars.Align(clean, data.Extra, c.Calendar, a.reports); err != nil {
		return nil, err
	}
	a.asset = func(n int) (*bars.Panel, int) { return a.panel, n }
	return a, nil
}

// alignApart is align for more rows than fit into memory: cleaned rows are with kept, and the panel
// has times and no bars, which asset makes of the rows of one symbol at a time.
func alignApart(c Config, data *bars.Data, kept *bars.Kept) (*aligned, error) {
	f, err := feature.New(c.Features, data.Extra, data.HasVolume)
	if err != nil {
		return nil, err
	}
	book, err := Book(c.Rules)
	if err != nil {
		return nil, err
	}
	a := &aligned{features: f, reports: make([]bars.SymbolReport, len(data.Series))}
	x, l := limits{book: book}, bars.NewTimeline(data.Extra, c.Calendar)
	for i, s := range data.Each() {
		clean := s
		if a.reports[i].Symbol = s.Symbol; len(s.Records) > 0 {
			if clean, a.reports[i], err = bars.Clean(s, c.Quality, c.Source.AdjustVolume); err != nil {
				return nil, fmt.Errorf("check the data: %w", cmp.Or(data.Err(), err))
			}
		}
		if book != nil {
			x.see(clean)
		}
		kept.Keep(clean)
	}
	if err := cmp.Or(data.Err(), kept.Err()); err != nil {
		return nil, err
	}
	limited := kept
	if book != nil {
		limited = bars.NewKept(heldRows)
		defer func() { kept.Replace(limited) }()
	}
	for i := range data.Series {
		s := kept.Series(i)
		if book != nil {
			if err := x.apply(i, &s); err != nil {
				return nil, err
			}
			limited.Keep(s)
		}
		l.Add(s)
	}
	if book != nil {
		if a.limits = x.found; x.check(c.Rules) != nil {
			return nil, x.check(c.Rules)
		}
	}
	if a.panel, err = l.Panel(); err != nil {
		return nil, cmp.Or(kept.Err(), err)
	}
	var column *bars.Panel
	whole := make([]bool, len(data.Series)) // whose report has its gaps
	last := -1
	a.asset = func(n int) (*bars.Panel, int) {
		var r *bars.SymbolReport
		if !whole[n] {
			r, whole[n] = &a.reports[n], true
		}
		if n != last || r != nil {
			column, last = l.Column(kept.Series(n), column, r), n
		}
		return column, 0
	}
	return a, nil
}

// firstDefined is the first time at which some stock has all its features, or the number of times
// where there is none.
func (a *aligned) firstDefined() int {
	first := len(a.panel.Times)
	for n := range a.panel.Symbols {
		panel, at := a.asset(n)
		a.features.Rows(panel, at, func(t int, _ []float64, defined bool) {
			if defined {
				first = min(first, t)
			}
		})
	}
	return first
}

// placed is an aligned panel with its split, in positions of the panel.
type placed struct {
	*aligned
	first int // positions before are dropped
	split split.Splits
	gaps  []split.Span // of the training range
}

// place drops undefined times and finds the ranges.
func place(c Config, a *aligned) (*placed, error) {
	p := &placed{aligned: a}
	times := a.panel.Times
	if first := a.firstDefined(); first == len(times) {
		if _, err := feature.FitAssets(a.features, len(a.panel.Symbols), a.asset, c.Normalization, 0, len(times)); err != nil {
			return nil, err
		}
	} else if c.DropUndefined {
		p.first = first
	}
	left := times[p.first:]
	if len(left) < c.Window {
		return nil, fmt.Errorf("the window of %d bars is longer than the data: %d of %d bars are left after dropping the first %d, at which no stock has all its features",
			c.Window, len(left), len(times), p.first)
	}
	var err error
	if p.split, err = c.Split.Resolve(left); err != nil {
		if p.first > 0 {
			err = fmt.Errorf("%w (the first %d of %d bars are dropped, at which no stock has all its features: %s)", err, p.first, len(times), slowest(a.features))
		}
		return nil, err
	}
	p.gaps = c.Split.Gaps(left)
	for _, r := range p.split.Named() {
		if r.Hi < c.Window {
			return nil, fmt.Errorf("the window of %d bars is longer than the data up to the end of %s: %d bars after dropping the first %d", c.Window, r.Name, r.Hi, p.first)
		}
		if r.Name == "train" && r.Len() < c.Window {
			return nil, fmt.Errorf("the window of %d bars is longer than train, which has %d bars", c.Window, r.Len())
		}
	}
	return p, nil
}

// slowest names the feature that is defined last.
func slowest(f *feature.Features) string {
	last := slices.MaxFunc(f.Columns(), func(x, y feature.Column) int { return x.Warmup - y.Warmup })
	return fmt.Sprintf("%s needs %d", last.Name, last.Warmup+1)
}

// fit computes the statistics on the range that the configuration names.
func (p *placed) fit(c feature.Normalization) ([]feature.Statistic, error) {
	lo, hi := p.first+p.split.Train.Lo, p.first+p.split.Train.Hi
	if c.FitOn == "all" {
		lo, hi = p.first, len(p.panel.Times)
	}
	var without [][2]int
	if c.FitOn != "all" {
		for _, g := range p.gaps {
			without = append(without, [2]int{p.first + g.Lo, p.first + g.Hi})
		}
	}
	return feature.FitAssets(p.features, len(p.panel.Symbols), p.asset, c, lo, hi, without...)
}

// Build prepares a set from rows that Read has returned.
func Build(c Config, data *bars.Data) (*Set, error) {
	s, _, err := build(c, data, false)
	return s, err
}

// build is Build; away leaves the values of the set in a file. held is the most rows that were in memory
// at once.
func build(c Config, data *bars.Data, away bool) (s *Set, held int, err error) {
	kept := bars.NewKept(heldRows)
	defer func() { err = errors.Join(err, kept.Close()) }()
	s, err = buildKept(c, data, kept, away)
	if err != nil && s != nil {
		err = errors.Join(err, s.away.close())
	}
	if err != nil {
		s = nil
	}
	return s, kept.Held(), err
}

func buildKept(c Config, data *bars.Data, kept *bars.Kept, away bool) (*Set, error) {
	if c.Window < 1 {
		return nil, fmt.Errorf("window: must be at least 1, is %d", c.Window)
	}
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	// Whoever goes on with bars that arrive is to have times in the same zone.
	c.Source.Timezone = cmp.Or(c.Source.Timezone, data.Zone)
	a, err := alignApart(c, data, kept)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	p, err := place(c, a)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	stats, err := p.fit(c.Normalization)
	if err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	s, err := p.fill(stats, away)
	if err := cmp.Or(kept.Err(), err); err != nil {
		return s, fmt.Errorf("prepare: %w", err)
	}
	if err := s.enrol(c, p); err != nil {
		return s, fmt.Errorf("prepare: %w", err)
	}
	if err := errors.Join(s.describe(c, data, p, stats), data.Err()); err != nil {
		return s, fmt.Errorf("prepare: %w", err)
	}
	return s, nil
}

// fill computes the tensor and copies prices and flags, symbol after symbol.
func (p *placed) fill(stats []feature.Statistic, away bool) (_ *Set, err error) {
	panel := p.panel
	t, n, f, e := len(panel.Times)-p.first, len(panel.Symbols), len(stats), len(panel.Extra)
	s := &Set{Times: panel.Times[p.first:]}
	for _, c := range panel.Quoted {
		s.Manifest.Quotes = append(s.Manifest.Quotes, c.String())
	}
	m := &s.Manifest
	if m.T, m.N, m.F = t, n, f; away {
		s.Status, s.Defined = make([]bars.Status, t*n), make([]bool, t*n)
		if s.away, err = newValueFile(s, e); err != nil {
			return s, err
		}
	} else {
		s.alloc(t, n, f, e)
	}
	col := &Set{}
	col.Manifest.Quotes = m.Quotes
	for sym := range n {
		col.alloc(t, 1, f, e)
		one, column := p.asset(sym)
		p.features.Rows(one, column, func(at int, row []float64, defined bool) {
			if at < p.first {
				return
			}
			s.Defined[(at-p.first)*n+sym] = defined
			out := col.x[(at-p.first)*f : (at-p.first+1)*f]
			for i, v := range row {
				if defined {
					out[i] = stats[i].Apply(v)
				} else {
					out[i] = float32(v)
				}
			}
		})
		for at := p.first; at < len(panel.Times); at++ {
			from, to := one.Index(at, column), at-p.first
			b := &one.Bars[from]
			s.Status[to*n+sym] = one.Status[from]
			col.Open[to], col.High[to], col.Low[to], col.Close[to], col.Volume[to] = b.Open, b.High, b.Low, b.Close, b.Volume
			copy(col.Extra[to*e:(to+1)*e], one.ExtraAt(at, column))
			for _, c := range panel.Quoted {
				col.Quotes[c][to] = one.Quotes[from][c]
			}
		}
		if !away {
			s.put(sym, col)
		} else if err := s.away.put(sym, col); err != nil {
			return s, err
		}
	}
	return s, nil
}

// put copies the values of a set of one symbol.
func (s *Set) put(sym int, one *Set) {
	n, f, e := s.Manifest.N, s.Manifest.F, len(one.Extra)/max(s.Manifest.T, 1)
	for t := range s.Manifest.T {
		to := t*n + sym
		copy(s.x[to*f:(to+1)*f], one.x[t*f:(t+1)*f])
		copy(s.Extra[to*e:(to+1)*e], one.Extra[t*e:(t+1)*e])
		s.Open[to], s.High[to], s.Low[to], s.Close[to], s.Volume[to] = one.Open[t], one.High[t], one.Low[t], one.Close[t], one.Volume[t]
		for c, column := range one.Quotes {
			if column != nil {
				s.Quotes[c][to] = column[t]
			}
		}
	}
}

// alloc makes the arrays; those of quotes are named in the manifest.
func (s *Set) alloc(t, n, f, e int) {
	s.Manifest.T, s.Manifest.N, s.Manifest.F = t, n, f
	s.X = tensor.New(tensor.Float32, t, n, f)
	s.x = s.X.Float32s()
	for _, column := range []*[]float64{&s.Open, &s.High, &s.Low, &s.Close, &s.Volume} {
		*column = make([]float64, t*n)
	}
	for _, name := range s.Manifest.Quotes {
		if c, ok := bars.QuoteNamed(name); ok {
			s.Quotes[c] = make([]float64, t*n)
		}
	}
	if s.Manifest.Universe != nil {
		s.Members = make([]universe.Membership, t*n)
	}
	s.Status, s.Defined, s.Extra = make([]bars.Status, t*n), make([]bool, t*n), make([]float64, t*n*e)
}

// describe fills in the manifest, except for what is known only once the files are written.
func (s *Set) describe(c Config, data *bars.Data, p *placed, stats []feature.Statistic) error {
	m := &s.Manifest
	m.Format, m.Version, m.W = Format, quotesVersion, c.Window
	if s.Members != nil {
		m.Version = Version
	}
	m.From, m.To, m.Timezone = label(s.Times[0]), label(s.Times[len(s.Times)-1]), c.Source.Timezone
	m.Symbols, m.Extra, m.DroppedRows = p.panel.Symbols, p.panel.Extra, p.first
	for i, col := range p.features.Columns() {
		m.Features = append(m.Features, Feature{Column: col, Statistic: stats[i]})
	}
	m.Rules = c.Rules
	m.Normalization, m.Split, m.TrainWithout = c.Normalization, p.split, p.gaps
	m.Anchors = data.Anchors
	m.Adjusted, m.Adjustment, m.Inputs, m.Quality = data.Adjustment.By, data.Adjustment, data.Files, p.reports
	for _, r := range p.split.Named() {
		m.Ranges = append(m.Ranges, RangeInfo{Name: r.Name, From: label(s.Times[r.Lo]), To: label(s.Times[r.Hi-1]), Bars: r.Len(), Tradable: s.tradable(r.Span), Members: s.crowd(r.Span)})
	}
	m.LookAhead = lookAhead(c, data, p.features.Columns(), stats)
	m.Notes = s.notes(c, data, p)
	return m.configured(c)
}

// configured notes the effective configuration. Where a set is cached is no part of it.
func (m *Manifest) configured(c Config) error {
	c.Cache = ""
	text, err := configs.Marshal(c)
	if err != nil {
		return err
	}
	m.Config = string(text)
	m.ConfigSHA256, err = configs.Digest(c)
	return err
}

func (s *Set) tradable(r split.Span) int {
	count := 0
	for n := range s.Manifest.N {
		for t := r.Lo; t < r.Hi; t++ {
			if s.Tradable(t, n) {
				count++
				break
			}
		}
	}
	return count
}

// label writes a date, or date and time where it is not midnight.
func label(t time.Time) string {
	if h, m, sec := t.Clock(); h == 0 && m == 0 && sec == 0 {
		return t.Format(time.DateOnly)
	}
	return t.Format(time.DateTime)
}
