package live

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/feature"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Row is what arrived for one asset at one time.
type Row struct {
	// Bar is read where Status says that there is one. Its time may be left zero; another time than
	// the row's is an error. A volume that is not known is NaN and counts as 0.
	bars.Bar
	// Status is bars.Traded or bars.Suspended for a bar; everything else says that there is none,
	// and the feed finds out what that means.
	Status bars.Status
	// Extra are the further columns of the pipeline, NaN where unknown.
	Extra []float64
	// Quote has the columns that the pipeline names.
	Quote bars.Quote
}

// Feed turns bars into windows of features. It is not safe for concurrent use.
type Feed struct {
	p Pipeline
	*layout

	rows    int       // since the first row of a set
	held    int       // of them in the window, at most W
	begun   bool      // a bar was appended
	started bool      // rows are counted
	time    time.Time // of the last bar
	assets  []asset
	scratch []float64 // [F]

	raw, scaled ring
	// The sides that can be traded at the close and at the open, and the prices: as features see
	// them, and before adjustment with the factors between the two.
	tradable, atOpen          []trading.Sides
	open, close               []float64
	rawOpen, rawClose, factor []float64
	dividend, bonus           []float64
}

// asset is what the feed knows of one asset.
type asset struct {
	stream *feature.Stream
	bar    bars.Bar // the last one, carried forward where there was none
	status bars.Status
	gap    int // times since the last bar
	extra  []float64
	quote  bars.Quote // the pipeline's columns; others are 0
	traded bool       // with all features defined
}

// New returns a feed before its first bar.
func New(p Pipeline) (*Feed, error) {
	l, err := p.layout()
	if err != nil {
		return nil, fmt.Errorf("feed: %w", err)
	}
	return newFeed(p, l), nil
}

func newFeed(p Pipeline, l *layout) *Feed {
	n, width := len(p.Assets), len(p.Features)
	f := &Feed{
		p: p, layout: l, assets: make([]asset, n), scratch: make([]float64, width), tradable: make([]trading.Sides, n), atOpen: make([]trading.Sides, n),
		open: make([]float64, n), close: make([]float64, n), rawOpen: make([]float64, n), rawClose: make([]float64, n), factor: make([]float64, n), dividend: make([]float64, n), bonus: make([]float64, n),
		raw: newRing(p.Window, n, width), scaled: newRing(p.Window, n, width),
	}
	for i := range f.assets {
		f.assets[i] = asset{stream: l.features.Stream(), extra: make([]float64, len(p.Extra))}
	}
	return f
}

// Pipeline returns the pipeline. The caller must not change it.
func (f *Feed) Pipeline() Pipeline { return f.p }

// Append takes the bars of all assets, in the order of the pipeline, at the time that follows those
// before. It allocates nothing; after an error the feed is as it was.
func (f *Feed) Append(at time.Time, rows []Row) error {
	of := at
	at = f.wall(at)
	if err := f.checkRows(of, at, rows); err != nil {
		return fmt.Errorf("append %s: %w", at.Format(time.DateTime), err)
	}
	f.time, f.begun = at, true
	raw, scaled := f.raw.advance(), f.scaled.advance()
	width := len(f.scratch)
	for i := range f.assets {
		a := &f.assets[i]
		defined := a.next(at, &rows[i], f)
		a.traded = defined && a.status == bars.Traded
		f.started = f.started || defined || !f.drop
		f.price(i)
		f.features.Unscaled(f.scratch, defined, raw[i*width:])
		for k, v := range f.scratch {
			if defined {
				scaled[i*width+k] = f.stats[k].Apply(v)
			} else {
				scaled[i*width+k] = float32(v)
			}
		}
	}
	f.raw.mirror()
	f.scaled.mirror()
	if f.started {
		f.rows++
		f.held = min(f.held+1, f.p.Window)
	}
	return nil
}

// price sets prices and sides of an asset.
func (f *Feed) price(i int) {
	a := &f.assets[i]
	f.open[i], f.close[i] = a.bar.Open, a.bar.Close
	open, close, q := a.bar.Open, a.bar.Close, &a.quote
	if f.adjusts {
		open, close = q[bars.RawOpen], q[bars.RawClose]
	}
	f.rawOpen[i], f.rawClose[i], f.factor[i] = open, close, q[bars.Factor]
	f.dividend[i], f.bonus[i] = q[bars.Dividend], q[bars.Bonus]
	if !f.factors {
		f.factor[i] = 1
	}
	f.tradable[i] = trading.SidesAt(a.traded, close, q[bars.LimitDown], q[bars.LimitUp])
	f.atOpen[i] = trading.SidesAt(a.traded, open, q[bars.LimitDown], q[bars.LimitUp])
}

// next takes the asset's row and computes its features into the feed's scratch.
func (a *asset) next(at time.Time, r *Row, f *Feed) (defined bool) {
	switch {
	case hasBar(r):
		a.bar, a.status, a.gap = r.Bar, r.Status, 0
		a.bar.Time = at
		if math.IsNaN(a.bar.Volume) {
			a.bar.Volume = 0
		}
		copy(a.extra, r.Extra)
		for _, c := range f.quotes {
			a.quote[c] = r.Quote[c]
		}
	case a.status == bars.Unlisted:
		f.features.Blank(f.scratch, false)
		return false
	default:
		a.gap = min(a.gap+1, f.goneAfter+1)
		a.quote = a.quote.Carried()
		c := a.bar.Close
		a.bar, a.status = bars.Bar{Time: at, Open: c, High: c, Low: c, Close: c}, bars.Missing
		if a.gap > f.goneAfter {
			a.status = bars.Gone
		}
	}
	return a.stream.Next(&a.bar, a.extra, a.status, f.scratch)
}

func hasBar(r *Row) bool { return r.Status == bars.Traded || r.Status == bars.Suspended }

// wall brings a time into the pipeline's zone, or takes calendar and clock as they are written
// where there is none.
func (f *Feed) wall(t time.Time) time.Time {
	if f.zone != nil {
		return t.In(f.zone)
	}
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), t.Nanosecond(), time.UTC)
}

// checkRows says why rows of a time cannot follow, which is at by the wall.
func (f *Feed) checkRows(of, at time.Time, rows []Row) error {
	switch {
	case len(rows) != len(f.assets):
		return fmt.Errorf("%d rows for %d assets", len(rows), len(f.assets))
	case at.Year() < 1 || at.Year() > 9999:
		return errors.New("the year is not one of 1 to 9999")
	case f.begun && at.Equal(f.time):
		return errors.New("the bars of this time are there already")
	case f.begun && at.Before(f.time):
		return fmt.Errorf("the last bars are of %s, which is later", f.time.Format(time.DateTime))
	}
	if f.book != nil {
		if _, err := f.book.Terms(0, bars.NewDate(at)); err != nil {
			return err
		}
	}
	some := false
	for i := range rows {
		r := &rows[i]
		if !hasBar(r) {
			continue
		}
		some = true
		if err := f.checkBar(of, at, r); err != nil {
			return fmt.Errorf("%s: %w", f.p.Assets[i], err)
		}
	}
	if !some {
		return errors.New("no asset has a bar")
	}
	return nil
}

func (f *Feed) checkBar(of, at time.Time, r *Row) error {
	b := &r.Bar
	if b.Time != of && !b.Time.IsZero() && !f.wall(b.Time).Equal(at) {
		return fmt.Errorf("a bar of %s", b.Time.Format(time.DateTime))
	}
	if !(b.Open > 0 && b.Close > 0 && b.Low > 0) || math.IsInf(b.High, 0) || !(b.High >= max(b.Open, b.Close, b.Low)) || !(b.Low <= min(b.Open, b.Close)) {
		return fmt.Errorf("open %v, high %v, low %v, close %v: expected positive prices between low and high", b.Open, b.High, b.Low, b.Close)
	}
	if b.Volume < 0 || math.IsInf(b.Volume, 0) {
		return fmt.Errorf("the volume %v", b.Volume)
	}
	for _, c := range f.quotes {
		if v := r.Quote[c]; c <= bars.Factor && c != bars.RawVolume && (!(v > 0) || math.IsInf(v, 0)) {
			return fmt.Errorf("%v is %v, expected a positive number", c, v)
		}
	}
	if len(r.Extra) != len(f.p.Extra) {
		return fmt.Errorf("%d further columns, expected %v", len(r.Extra), f.p.Extra)
	}
	return nil
}

// Begun reports whether there was a bar.
func (f *Feed) Begun() bool { return f.begun }

// Ready says whether there are as many rows as a window has. Like in a prepared set, rows count
// from the first at which some asset has all its features, if the pipeline drops those before.
func (f *Feed) Ready() bool { return f.held == f.p.Window }

// Raw returns the features of the last W rows, [W,N,F], as the indicators give them, NaN for an
// asset that is not defined. It is a view of the feed's memory, valid until the next Append; nil
// until the feed is ready.
func (f *Feed) Raw() *tensor.Tensor { return f.view(&f.raw) }

// Scaled is Raw with the statistics applied, and 0 for an asset that is not defined: the rows of
// the prepared set.
func (f *Feed) Scaled() *tensor.Tensor { return f.view(&f.scaled) }

func (f *Feed) view(r *ring) *tensor.Tensor {
	if !f.Ready() {
		return nil
	}
	return r.view()
}

// RawRow returns the unscaled features [N,F] of the last bar, valid until the next Append.
func (f *Feed) RawRow() []float32 { return f.raw.last() }

// ScaledRow returns the scaled features [N,F] of the last bar, valid until the next Append.
func (f *Feed) ScaledRow() []float32 { return f.scaled.last() }

// Time is that of the last bars, zero before the first.
func (f *Feed) Time() time.Time { return f.time }

// Rows is the number of rows that a prepared set of the same bars would have.
func (f *Feed) Rows() int { return f.rows }

// Status is what is known of an asset at the last bar.
func (f *Feed) Status(asset int) bars.Status { return f.assets[asset].status }

// Tradable says of each asset [N] what can be bought and sold at the close of the last bar. The
// slice changes with the next Append.
func (f *Feed) Tradable() []trading.Sides { return f.tradable }

// Open and Close are the prices [N] of the last bar, carried forward where an asset has none and 0
// before its first. The slices change with the next Append.
func (f *Feed) Open() []float64 { return f.open }

// Close is documented at Open.
func (f *Feed) Close() []float64 { return f.close }
