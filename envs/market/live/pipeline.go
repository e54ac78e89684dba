package live

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// Version is that of the pipeline's JSON and of what its features mean. A feed refuses others.
const Version = 1

// Pipeline is how bars become the rows of an agent's window. The JSON keys are stable; keys that
// are not known are ignored.
type Pipeline struct {
	Version int `json:"version"`
	// Window is the number of rows of a window, W.
	Window int `json:"window"`
	// Assets are the symbols in the order of bars and rows.
	Assets []string `json:"assets"`
	// Features are the columns of a row in order.
	Features []Feature `json:"features"`
	// Extra are the further columns that a bar must have, in order.
	Extra []string `json:"extra,omitempty"`
	// Quotes are the columns of quotes that a bar must have for the account to trade by, in order:
	// see bars.QuoteColumn.
	Quotes []string `json:"quotes,omitempty"`
	// Warmup is the number of bars of an asset before its first defined row.
	Warmup int `json:"warmup"`
	// Adjusted says what the prices of the agent's data were multiplied by: none, adj_close,
	// factor or actions; empty where it is not known.
	Adjusted string `json:"adjusted,omitempty"`
	// Anchors are where the prices of the assets are as they were quoted, in their order; absent
	// where factors are as their source has them.
	Anchors []bars.Anchor `json:"anchors,omitempty"`
	// Config is the effective configuration as YAML: that of the data (prepared.Config), or one
	// that has it under the key data.
	Config string `json:"config"`
}

// Feature is a column and what it is scaled by: z = (x − Mean)/Std, limited to ±Clip where Clip is
// not 0, if it is Scaled.
type Feature struct {
	Name   string  `json:"name"`
	Unit   string  `json:"unit,omitempty"`
	Warmup int     `json:"warmup"`
	Mean   float64 `json:"mean"`
	Std    float64 `json:"std"`
	Clip   float64 `json:"clip,omitempty"`
	Scaled bool    `json:"scaled"`
}

// NewPipeline returns the pipeline of a prepared set.
func NewPipeline(m *prepared.Manifest) Pipeline {
	p := Pipeline{Version: Version, Window: m.W, Assets: m.Symbols, Extra: m.Extra, Adjusted: m.Adjusted, Quotes: m.Quotes, Anchors: m.Anchors, Config: m.Config}
	for _, f := range m.Features {
		p.Features = append(p.Features, Feature{Name: f.Name, Unit: string(f.Unit), Warmup: f.Warmup, Mean: f.Mean, Std: f.Std, Clip: f.Clip, Scaled: f.Scaled})
		p.Warmup = max(p.Warmup, f.Warmup)
	}
	return p
}

// QuotesFor are the columns, of those that data have, that accounts of a configuration trade by:
// limits with the prices that they limit, raw prices with their factors, and what costs depend on; and
// those that features depend on, where prices were adjusted by dividends and bonus shares.
func QuotesFor(c trading.Config, have []bars.QuoteColumn, adjusted string) (names []string) {
	limits := slices.Contains(have, bars.LimitUp) || slices.Contains(have, bars.LimitDown)
	raw := (c.Account.Prices == trading.Raw || c.Costs.UsesBars()) && slices.Contains(have, bars.Factor)
	for _, q := range have {
		switch q {
		case bars.RawOpen, bars.RawClose:
			if !limits && !raw {
				continue
			}
		case bars.Factor:
			if !raw {
				continue
			}
		case bars.RawVolume:
			if !c.Costs.UsesVolume() {
				continue
			}
		case bars.PrevClose, bars.ST:
			// Limits are computed from these.
			if !c.Ruled() {
				continue
			}
		case bars.Spread, bars.Depth:
			if !c.Costs.UsesBook() {
				continue
			}
		case bars.Dividend, bars.Bonus:
			if c.Account.Prices != trading.Raw && adjusted != bars.ByActions {
				continue
			}
		case bars.LimitUp, bars.LimitDown:
		default:
			continue
		}
		names = append(names, q.String())
	}
	return names
}

// Needs are the columns of Quotes.
func (p *Pipeline) Needs() []bars.QuoteColumn {
	var list []bars.QuoteColumn
	for _, name := range p.Quotes {
		if q, ok := bars.QuoteNamed(name); ok {
			list = append(list, q)
		}
	}
	return list
}

// ParsePipeline reads a pipeline, such as the features of an agent's manifest, and checks it.
func ParsePipeline(text []byte) (Pipeline, error) {
	var p Pipeline
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("pipeline: %w", err)
	}
	_, err := p.layout()
	return p, err
}

// Edit returns the pipeline with edits such as data.quality.unsorted=error made to its
// configuration, in the form of --set; the paths may begin with env, as those of an experiment do.
// Edits that change features or the window are errors.
func (p Pipeline) Edit(edits ...string) (Pipeline, error) {
	if len(edits) == 0 {
		return p, nil
	}
	doc, err := configs.Parse("config", []byte(p.Config))
	if err != nil {
		return p, fmt.Errorf("pipeline: %w", err)
	}
	for _, e := range edits {
		if err := doc.Set(strings.TrimPrefix(e, "env.")); err != nil {
			return p, err
		}
	}
	p.Config = string(doc.Bytes())
	_, err = p.layout()
	return p, err
}

// layout is a pipeline that was checked.
type layout struct {
	features  *feature.Features
	stats     []feature.Statistic
	zone      *time.Location // nil takes times as they are written
	goneAfter int
	drop      bool
	quotes    []bars.QuoteColumn
	adjusts   bool // quotes have prices before adjustment
	factors   bool // quotes have factors
	acts      bool // quotes have dividends or bonus shares
	book      rules.Book
	digest    [sha256.Size]byte
}

// layout checks the pipeline and lays its features out.
func (p *Pipeline) layout() (*layout, error) {
	l, err := p.check()
	if err != nil {
		return nil, fmt.Errorf("pipeline: %w", err)
	}
	return l, nil
}

func (p *Pipeline) check() (*layout, error) {
	if p.Version != Version {
		return nil, fmt.Errorf("version %d, this program knows version %d", p.Version, Version)
	}
	var errs []error
	if p.Window < 1 {
		errs = append(errs, fmt.Errorf("window: %d, expected at least 1", p.Window))
	}
	if len(p.Assets) == 0 {
		errs = append(errs, errors.New("assets: there are none"))
	}
	for i, a := range p.Assets {
		if a == "" || slices.Contains(p.Assets[:i], a) {
			errs = append(errs, fmt.Errorf("assets[%d]: %q is empty or there twice", i, a))
		}
	}
	for i, f := range p.Features {
		if f.Scaled && (!(f.Std > 0) || math.IsInf(f.Std, 0) || f.Mean-f.Mean != 0 || !(f.Clip >= 0)) {
			errs = append(errs, fmt.Errorf("features[%d]: %s has the mean %g, the deviation %g and the limit %g", i, f.Name, f.Mean, f.Std, f.Clip))
		}
	}
	l := &layout{}
	for i, name := range p.Quotes {
		q, ok := bars.QuoteNamed(name)
		if !ok || slices.Contains(l.quotes, q) {
			errs = append(errs, fmt.Errorf("quotes[%d]: %q is no column of quotes, or there twice", i, name))
			continue
		}
		l.quotes, l.adjusts = append(l.quotes, q), l.adjusts || q == bars.RawClose
		l.factors, l.acts = l.factors || q == bars.Factor, l.acts || q == bars.Dividend || q == bars.Bonus
	}
	c, err := p.Data()
	if err == nil {
		errs = append(errs, p.checkAnchors(c.Source))
	}
	if err = errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	if l.book, err = prepared.Book(c.Rules); err != nil {
		return nil, err
	}
	l.goneAfter, l.drop = c.Calendar.GoneAfter, c.DropUndefined
	// Where prices are features, a column tells whether the data had volumes; elsewhere only
	// indicators ask.
	volume := !c.Features.OHLCV || slices.ContainsFunc(p.Features, func(f Feature) bool { return f.Name == "volume" })
	if l.features, err = feature.New(c.Features, p.Extra, volume); err != nil {
		return nil, err
	}
	columns := l.features.Columns()
	for i := range max(len(columns), len(p.Features)) {
		var want, have string
		if i < len(columns) {
			want = fmt.Sprintf("%s in %s after %d bars", columns[i].Name, columns[i].Unit, columns[i].Warmup)
		}
		if i < len(p.Features) {
			f := p.Features[i]
			have = fmt.Sprintf("%s in %s after %d bars", f.Name, f.Unit, f.Warmup)
		}
		if want != have {
			return nil, fmt.Errorf("features[%d]: %q, and the configuration gives %q", i, have, want)
		}
		f := p.Features[i]
		l.stats = append(l.stats, feature.Statistic{Mean: f.Mean, Std: f.Std, Clip: f.Clip, Scaled: f.Scaled})
	}
	if zone := c.Source.Timezone; zone != "" {
		if l.zone, err = time.LoadLocation(zone); err != nil {
			return nil, fmt.Errorf("timezone: %w", err)
		}
	}
	l.digest, err = p.sum(c)
	return l, err
}

// checkAnchors says which anchors are missing.
func (p *Pipeline) checkAnchors(s bars.Source) error {
	if s.Anchor == "" && len(p.Anchors) == 0 || s.Anchor != "" && p.Adjusted == "none" {
		return nil
	}
	if s.Anchor == "" || len(p.Anchors) != len(p.Assets) {
		return fmt.Errorf("anchors: %d for %d assets, and data.source.anchor is %q; publish the agent again from its run", len(p.Anchors), len(p.Assets), s.Anchor)
	}
	for i, a := range p.Anchors {
		if a.Symbol != p.Assets[i] || a.Factor != 0 && !(a.Factor > 0 && a.UntilFactor > 0) {
			return fmt.Errorf("anchors[%d]: of %q, from the factor %g to %g; expected positive ones of %q", i, a.Symbol, a.Factor, a.UntilFactor, p.Assets[i])
		}
	}
	return nil
}

// Data is the configuration of the data.
func (p *Pipeline) Data() (prepared.Config, error) {
	c := prepared.Default()
	doc, err := configs.Parse("config", []byte(p.Config))
	if err != nil {
		return c, err
	}
	if section, ok := doc.Lookup("data"); ok {
		err = section.Decode(&c)
	} else {
		err = doc.Decode(&c)
	}
	return c, err
}

// sum is the digest of all that a state depends on.
func (p *Pipeline) sum(c prepared.Config) (digest [sha256.Size]byte, err error) {
	same := *p
	if same.Config, err = configs.Digest(c.Features); err != nil {
		return digest, err
	}
	text, err := json.Marshal(struct {
		Pipeline
		Timezone      string
		GoneAfter     int
		DropUndefined bool
	}{same, c.Source.Timezone, c.Calendar.GoneAfter, c.DropUndefined})
	return sha256.Sum256(text), err
}
