package stream

import (
	"errors"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/state"
)

// ticks makes bars of ticks.
type ticks struct {
	grid *bars.Grid // nil where why says that the bars are not made of ticks one by one
	why  error
	book int // of the columns of messages, those of the book at their beginning
	// before [N] is the tick before, of each asset, and kept [N,book] what the book was at the end
	// of the last bar.
	before []bars.Tick
	kept   []float64
}

func newTicks(s bars.Source, extra []string, assets int) *ticks {
	t := &ticks{before: make([]bars.Tick, assets)}
	t.grid, t.why = bars.NewGrid(s)
	if len(extra) >= len(bars.BookColumns) && slices.Equal(extra[:len(bars.BookColumns)], bars.BookColumns) {
		t.book = len(bars.BookColumns)
	}
	t.kept = make([]float64, assets*t.book)
	for i := range t.kept {
		t.kept[i] = math.NaN()
	}
	return t
}

// tickedMoment is what a time has whose bars are made of ticks.
type tickedMoment struct {
	until        time.Time   // no tick belongs to it from then on
	began, ended []time.Time // [N], of the first and the last tick
	known        []time.Time // [N,E], of the ticks that the values of Extra are from
}

func (t *tickedMoment) reset(assets, columns int) {
	if t.began == nil {
		t.began, t.ended, t.known = make([]time.Time, assets), make([]time.Time, assets), make([]time.Time, assets*columns)
	}
}

// sameKind says why a message is not one of those before: rows and ticks are not mixed.
func (g *Gatherer) sameKind(m *Message) error {
	is := ofBars
	if m.IsTick() {
		is = ofTicks
	}
	if g.kind == is {
		return nil
	}
	switch {
	case g.kind == ofBars:
		return errors.New("it is a tick, and the messages before it are bars")
	case g.kind == ofTicks:
		return errors.New("it is a bar, and the messages before it are ticks")
	case is == ofTicks && g.ticks == nil:
		return errors.New("it is a tick, and the agent's data are bars: data.source.bars says which ones to make of ticks")
	case is == ofTicks && g.ticks.grid == nil:
		return g.ticks.why
	}
	g.kind = is
	return nil
}

// takeTick takes a tick of an asset, whose partition has been advanced.
func (g *Gatherer) takeTick(i int, m *Message, at, came time.Time) error {
	if m.Price != m.Price {
		return nil // The time has come.
	}
	if at.Before(g.newest[i]) {
		g.counters.OutOfOrder++
	} else {
		g.newest[i] = at
	}
	slot, ok := g.ticks.grid.At(at)
	if !ok {
		return g.leave(&g.counters.Outside, Drop, m, "the tick belongs to no session")
	}
	if !g.done.IsZero() && !slot.End.After(g.done) {
		return g.leave(&g.counters.Late, g.rules.Late, m, "it is late: its bar was decided on")
	}
	before := &g.ticks.before[i]
	if sameDay(before.Time, at) && bars.ImpossiblePrice(before.Price, m.Price) {
		return g.leave(&g.counters.Impossible, Drop, m, "its price is a tenth of the one before or less, or ten times as much or more")
	}
	before.Time, before.Price = at, m.Price
	// The first tick tells when the bar ends by the clock.
	t := g.moment(slot.End, came.Add(slot.Until.Sub(at)))
	t.ticked.until = slot.Until
	g.fold(t, i, m, at)
	return nil
}

func sameDay(a, b time.Time) bool {
	y, m, d := a.Date()
	y2, m2, d2 := b.Date()
	return y == y2 && m == m2 && d == d2
}

// fold adds a tick to the bar of its asset. The order of ticks is that of their time, and of those
// at one time that in which they came.
func (g *Gatherer) fold(t *moment, i int, m *Message, at time.Time) {
	r, w := &t.records[i], g.width()
	size, amount := m.Size, m.Quote[bars.Amount]
	if size != size {
		size = 0
	}
	if amount != amount {
		amount = size * m.Price
	}
	known := t.ticked.known[i*len(g.extra) : (i+1)*len(g.extra)]
	if !t.arrived[i] {
		t.arrived[i] = true
		t.left--
		t.ticked.began[i], t.ticked.ended[i] = at, at
		*r = bars.Record{Bar: bars.Bar{Open: m.Price, High: m.Price, Low: m.Price, Close: m.Price}, Factor: 1}
		for c := range r.Quote {
			r.Quote[c] = math.NaN()
		}
		r.Quote[bars.Amount] = 0
		r.SetAverage(-1)
		r.Extra = t.values[i*w : i*w+len(g.extra) : (i+1)*w]
		for k := range r.Extra {
			r.Extra[k], known[k] = math.NaN(), time.Time{}
		}
	} else {
		if at.Before(t.ticked.began[i]) {
			t.ticked.began[i], r.Open = at, m.Price
		}
		if !at.Before(t.ticked.ended[i]) {
			t.ticked.ended[i], r.Close = at, m.Price
		}
		r.High, r.Low = max(r.High, m.Price), min(r.Low, m.Price)
	}
	r.Volume += size
	r.Quote[bars.Amount] += amount
	for k := range r.Extra {
		v := math.NaN()
		for j, name := range m.Names {
			if name == g.extra[k] {
				v = m.values[j]
				break
			}
		}
		// Unknown values of a book stay as they were.
		if k < g.ticks.book && v != v || at.Before(known[k]) {
			continue
		}
		r.Extra[k], known[k] = v, at
	}
}

// endBar completes the bar of an asset with the book that it ends with.
func (g *Gatherer) endBar(t *moment, i int) {
	book := g.ticks.book
	if book == 0 {
		return
	}
	r, kept := &t.records[i], g.ticks.kept[i*book:(i+1)*book]
	for k := range kept {
		if r.Extra[k] == r.Extra[k] {
			kept[k] = r.Extra[k]
		}
		r.Extra[k] = kept[k]
	}
	r.Quote[bars.Spread], r.Quote[bars.Depth] = kept[1], kept[2]
}

// ticksComplete reports whether no tick of a time is expected any more.
func (g *Gatherer) ticksComplete(t *moment) bool {
	for i := range t.arrived {
		if !g.passed(i, t) {
			return false
		}
	}
	return true
}

// moveAsset moves what ticks have left of an asset.
func (g *Gatherer) moveAsset(c *state.Codec, i int) {
	before, book := &g.ticks.before[i], g.ticks.book
	g.moveTime(c, &before.Time)
	c.Float(&before.Price)
	c.Floats(g.ticks.kept[i*book : (i+1)*book])
}
