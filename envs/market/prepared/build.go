package prepared

import (
	"cmp"
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
func Read(c Config) (*bars.Data, error) {
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	data, err := Rows(c)
	if err != nil || c.Synthetic.Kind != "" {
		return data, err
	}
	found, err := data.Examine(c.Quality)
	if err != nil {
		return nil, fmt.Errorf("check the data: %w", err)
	}
	data.Notes = append(data.Notes, found...)
	return data, nil
}

// Rows reads the rows of the configured source, or makes them, as they are. Only Source, Synthetic,
// Series and Assets are used.
func Rows(c Config) (*bars.Data, error) {
	if c.Stored != "" {
		return nil, fmt.Errorf("stored: %s holds a market that has been prepared, and no bars to prepare", c.Stored)
	}
	var data *bars.Data
	var err error
	if c.Synthetic.Kind == "" {
		data, err = bars.Read(c.Source, c.Assets)
	} else {
		var m synthetic.Market
		if m, err = synthetic.New(c.Synthetic); err == nil {
			data, err = m.Generate().Pick(c.Assets)
		}
	}
	if err == nil {
		data, err = pickMembers(c, data)
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
	panel    *bars.Panel
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
	return a, nil
}

// firstDefined is the first time at which some stock has all its features, or the number of times
// where there is none.
func (a *aligned) firstDefined() int {
	first := len(a.panel.Times)
	for n := range a.panel.Symbols {
		a.features.Rows(a.panel, n, func(t int, _ []float64, defined bool) {
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
		if _, err := feature.Fit(a.features, a.panel, c.Normalization, 0, len(times)); err != nil {
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
	return feature.Fit(p.features, p.panel, c, lo, hi, without...)
}

// Build prepares a set from rows that Read has returned.
func Build(c Config, data *bars.Data) (*Set, error) {
	if c.Window < 1 {
		return nil, fmt.Errorf("window: must be at least 1, is %d", c.Window)
	}
	if err := configs.Validate(c); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	// Whoever goes on with bars that arrive is to have times in the same zone.
	c.Source.Timezone = cmp.Or(c.Source.Timezone, data.Zone)
	a, err := align(c, data)
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
	s := p.fill(stats)
	if err := s.enrol(c, p); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	if err := s.describe(c, data, p, stats); err != nil {
		return nil, fmt.Errorf("prepare: %w", err)
	}
	return s, nil
}

// fill computes the tensor and copies prices and flags.
func (p *placed) fill(stats []feature.Statistic) *Set {
	panel := p.panel
	t, n, f, e := len(panel.Times)-p.first, len(panel.Symbols), len(stats), len(panel.Extra)
	s := &Set{Times: panel.Times[p.first:]}
	for _, c := range panel.Quoted {
		s.Manifest.Quotes = append(s.Manifest.Quotes, c.String())
	}
	s.alloc(t, n, f, e)
	row32 := func(at, sym int) []float32 { i := (at-p.first)*n + sym; return s.x[i*f : (i+1)*f] }
	for sym := range n {
		p.features.Rows(panel, sym, func(at int, row []float64, defined bool) {
			if at < p.first {
				return
			}
			s.Defined[(at-p.first)*n+sym] = defined
			out := row32(at, sym)
			for i, v := range row {
				if defined {
					out[i] = stats[i].Apply(v)
				} else {
					out[i] = float32(v)
				}
			}
		})
	}
	from := panel.Index(p.first, 0)
	copy(s.Status, panel.Status[from:])
	copy(s.Extra, panel.ExtraValues[from*e:])
	for i, b := range panel.Bars[from:] {
		s.Open[i], s.High[i], s.Low[i], s.Close[i], s.Volume[i] = b.Open, b.High, b.Low, b.Close, b.Volume
	}
	for _, c := range panel.Quoted {
		for i := range s.Quotes[c] {
			s.Quotes[c][i] = panel.Quotes[from+i][c]
		}
	}
	return s
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
