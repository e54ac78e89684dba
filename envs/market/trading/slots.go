package trading

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/universe"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// slots are the places at which an environment sees and trades K of the N assets of a market at a
// time. The account has a position for each place, and whoever is at a place leaves it only when
// nothing of it is held.
type slots struct {
	m      *Market
	window int
	asset  []int    // [K] the asset at a place, -1 where there is none
	place  []int    // [N] the place of an asset, -1 where it has none
	fresh  []int    // places whose asset has just come or gone
	names  []string // [K]

	// rows is a ring of the last window rows [K,F] of features; the oldest is at next.
	rows []float32
	next int

	// The values of a bar for the places, [K], and two tables' rows.
	price, volume, up, down, spread, depth, first, second []float64
	class                                                 []uint8
	decided, tradable                                     []Sides
	members                                               []universe.Membership

	positions []float64 // [N]
	fills     []Fill    // by asset
}

func newSlots(m *Market, c *Config) *slots {
	k, n := c.Slots, len(m.Assets)
	floats := func() []float64 { return make([]float64, k) }
	return &slots{
		m: m, window: c.Window, asset: make([]int, k), place: make([]int, n), fresh: make([]int, 0, 2*k), names: make([]string, k), rows: make([]float32, c.Window*k*len(m.Features)),
		price: floats(), volume: floats(), up: floats(), down: floats(), spread: floats(), depth: floats(), first: floats(), second: floats(), class: make([]uint8, k), decided: make([]Sides, k), tradable: make([]Sides, k),
		members: make([]universe.Membership, k), positions: make([]float64, n), fills: make([]Fill, 0, k),
	}
}

// put sets the assets of the first places, empties the others and forgets the fills.
func (s *slots) put(assets []int) {
	s.fills = s.fills[:0]
	for i := range s.place {
		s.place[i] = -1
	}
	for k := range s.asset {
		if s.asset[k], s.names[k] = -1, emptySlot; k < len(assets) && assets[k] >= 0 {
			s.seat(k, assets[k])
		}
	}
}

// emptySlot is the name of a place without an asset.
const emptySlot = "an empty slot"

// seat gives a place to an asset.
func (s *slots) seat(k, a int) { s.asset[k], s.place[a], s.names[k] = a, k, s.m.Assets[a] }

// check reports assets that cannot be at the places.
func (s *slots) check(assets []int) error {
	if len(assets) != len(s.asset) {
		return fmt.Errorf("%d slots, expected %d", len(assets), len(s.asset))
	}
	seen := make([]bool, len(s.place))
	for k, a := range assets {
		if a < -1 || a >= len(seen) || a >= 0 && seen[a] {
			return fmt.Errorf("slot %d holds asset %d, which is none of the %d, or there twice", k, a, len(seen))
		}
		if a >= 0 {
			seen[a] = true
		}
	}
	return nil
}

// assign empties, at a bar, the places of assets that do not belong and of which nothing is held,
// and gives the first empty places to the first assets of the market that belong and have none.
func (s *slots) assign(bar int, held []float64) {
	s.fresh = s.fresh[:0]
	empty := 0
	for k, a := range s.asset {
		if a >= 0 && held[k] == 0 && !s.m.Member(bar, a) {
			s.asset[k], s.place[a], s.names[k] = -1, -1, emptySlot
			s.fresh = append(s.fresh, k)
			a = -1
		}
		if a < 0 {
			empty++
		}
	}
	for a, k := 0, 0; a < len(s.place) && empty > 0; a++ {
		if s.place[a] >= 0 || !s.m.Member(bar, a) {
			continue
		}
		for s.asset[k] >= 0 {
			k++
		}
		s.seat(k, a)
		s.fresh = append(s.fresh, k)
		empty--
	}
}

// advance adds the row of a bar, and the rows before it of places that have changed.
func (s *slots) advance(bar int) {
	s.write(s.next, bar)
	s.next = (s.next + 1) % s.window
	for _, k := range s.fresh {
		for i := range s.window {
			s.one((s.next+i)%s.window, bar-s.window+1+i, k)
		}
	}
}

// fill writes all rows up to a bar.
func (s *slots) fill(bar int) {
	s.next = 0
	for i := range s.window {
		s.write(i, bar-s.window+1+i)
	}
}

// write puts the features of a bar into a row of the ring.
func (s *slots) write(row, bar int) {
	f, n := len(s.m.Features), len(s.place)
	dst, src := s.rows[row*len(s.asset)*f:(row+1)*len(s.asset)*f], s.m.X[bar*n*f:(bar+1)*n*f]
	for k, a := range s.asset {
		if to := dst[k*f : (k+1)*f]; a >= 0 {
			copy(to, src[a*f:(a+1)*f])
		} else {
			clear(to)
		}
	}
}

// one is write for a single place.
func (s *slots) one(row, bar, k int) {
	f := len(s.m.Features)
	to := s.rows[(row*len(s.asset)+k)*f:][:f]
	if a := s.asset[k]; a >= 0 {
		copy(to, s.m.X[(bar*len(s.place)+a)*f:][:f])
	} else {
		clear(to)
	}
}

// observe writes the window [W,K,F].
func (s *slots) observe(dst []float32) {
	at := s.next * (len(s.rows) / s.window)
	copy(dst[copy(dst, s.rows[at:]):], s.rows[:at])
}

// gather writes the values of the places from a row [N]; it is the zero value where a place is
// empty.
func gather[T any](s *slots, dst, row []T) []T {
	if row == nil {
		return nil
	}
	var zero T
	for k, a := range s.asset {
		if dst[k] = zero; a >= 0 {
			dst[k] = row[a]
		}
	}
	return dst
}

// bar replaces the rows [N] of a bar by those of the places.
func (s *slots) bar(b *Bar) {
	b.Price, b.Decided, b.Tradable = gather(s, s.price, b.Price), gather(s, s.decided, b.Decided), gather(s, s.tradable, b.Tradable)
	b.Members = gather(s, s.members, b.Members)
	b.Class = gather(s, s.class, b.Class)
	b.Volume, b.LimitUp, b.LimitDown = gather(s, s.volume, b.Volume), gather(s, s.up, b.LimitUp), gather(s, s.down, b.LimitDown)
	b.Spread, b.Depth = gather(s, s.spread, b.Spread), gather(s, s.depth, b.Depth)
}

// settle notes by asset what the account has done by place.
func (s *slots) settle(fills []Fill) {
	s.fills = append(s.fills[:0], fills...)
	for i := range s.fills {
		s.fills[i].Asset = s.asset[s.fills[i].Asset]
	}
}

// held returns the positions of all assets.
func (s *slots) held(pos []float64) []float64 {
	clear(s.positions)
	for k, a := range s.asset {
		if a >= 0 {
			s.positions[a] = pos[k]
		}
	}
	return s.positions
}

// fillSlots fills the places at the first bar of an episode.
func (e *Env) fillSlots() {
	if s := e.slots; s != nil {
		s.put(nil)
		s.assign(e.t, e.account.pos)
		s.fill(e.t)
	}
}

// rotate lets places change hands at the new bar.
func (e *Env) rotate() {
	if s := e.slots; s != nil {
		s.assign(e.t, e.account.pos)
		s.advance(e.t)
	}
}

// window writes the features of the current bar's window.
func (e *Env) window(ts *envs.TimeStep) {
	if e.slots == nil {
		ts.SetWindow(0, e.source.window, e.t)
		return
	}
	e.slots.observe(ts.Obs[0].Float32s())
}

// sides writes what can be done at the current bar: the mask, or where actions are weights the last
// field.
func (e *Env) sides(ts *envs.TimeStep) {
	m, from, to := e.market, e.t*len(e.market.Assets), (e.t+1)*len(e.market.Assets)
	sides, members := m.Tradable[from:to], m.Members
	if members != nil {
		members = members[from:to]
	}
	if s := e.slots; s != nil {
		sides, members = gather(s, s.decided, sides), gather(s, s.members, members)
	}
	if e.target != nil {
		e.account.WriteTradable(tensor.Data[uint8](ts.Obs[len(ts.Obs)-1]), sides)
		return
	}
	mask := ts.Mask.Bools()
	e.account.WriteMask(mask, sides, m.Dates[e.t])
	e.account.maskExits(mask, members)
	e.maskRestricted(mask)
}

// overnight books what happens overnight before bar t.
func (e *Env) overnight(t int) {
	if m := e.market; m.calm != nil && m.calm[t] {
		return
	}
	if o, ok := e.market.Overnight(t); ok {
		e.account.Book(&o, e.Slots())
	}
}

// Slots returns the asset that each place [K] of the observation and the action stands for, -1
// where it is empty, and nil where every asset has its own. The slice is the environment's own; it
// holds for the current bar.
func (e *Env) Slots() []int {
	if e.slots == nil {
		return nil
	}
	return e.slots.asset
}
