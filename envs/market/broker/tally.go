package broker

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/runtime/sorted"
)

// Overlap is how far before the last fill fills are read again: one may become known after a later
// one.
const Overlap = 24 * time.Hour

// Tally keeps positions and cash by fills, each counted once.
type Tally struct {
	state tally
}

// tally is what is saved. Seen are the times of fills that may be read again.
type tally struct {
	Cash      float64              `json:"cash"`
	Positions map[string]float64   `json:"positions"`
	Last      time.Time            `json:"last"`
	Seen      map[string]time.Time `json:"seen"`
}

// NewTally begins with cash and positions at a time; fills up to it must not be counted.
func NewTally(at time.Time, cash float64, positions map[string]float64) *Tally {
	t := &Tally{tally{Cash: cash, Positions: map[string]float64{}, Last: at.Add(Overlap), Seen: map[string]time.Time{}}}
	for symbol, q := range positions {
		if q != 0 {
			t.state.Positions[symbol] = q
		}
	}
	return t
}

// Since is the time from which fills are to be read.
func (t *Tally) Since() time.Time { return t.state.Last.Add(-Overlap) }

// Count takes fills and returns those that were not counted before, in their order.
func (t *Tally) Count(fills ...Fill) []Fill {
	var fresh []Fill
	s := &t.state
	for _, f := range fills {
		if _, ok := s.Seen[f.ID]; ok || f.Time.Before(t.Since()) {
			continue
		}
		s.Seen[f.ID] = f.Time
		fresh = append(fresh, f)
		q := f.Quantity
		if f.Side == Sell {
			q = -q
		}
		s.Cash -= q * f.Price
		if q = round(s.Positions[f.Symbol] + q); q == 0 {
			delete(s.Positions, f.Symbol)
		} else {
			s.Positions[f.Symbol] = q
		}
	}
	for _, f := range fresh {
		if f.Time.After(s.Last) {
			s.Last = f.Time
		}
	}
	for id, at := range s.Seen {
		if at.Before(t.Since()) {
			delete(s.Seen, id)
		}
	}
	return fresh
}

// Cash is what the beginning's has become, without interest, fees and what else is no fill.
func (t *Tally) Cash() float64 { return t.state.Cash }

// Positions are those that are not 0, by symbol.
func (t *Tally) Positions() []Position {
	list := make([]Position, 0, len(t.state.Positions))
	for symbol, q := range sorted.All(t.state.Positions) {
		list = append(list, Position{Symbol: symbol, Quantity: q})
	}
	return list
}

// Adopt makes the broker's positions and cash those of the tally. The fills that led to them are
// counted, which fills has.
func (t *Tally) Adopt(cash float64, positions []Position, fills []Fill) {
	t.Count(fills...)
	t.state.Cash = cash
	clear(t.state.Positions)
	for _, p := range positions {
		t.state.Positions[p.Symbol] = p.Quantity
	}
}

// MarshalJSON is the state, which UnmarshalJSON goes on from.
func (t *Tally) MarshalJSON() ([]byte, error) { return json.Marshal(&t.state) }

// UnmarshalJSON reads the state.
func (t *Tally) UnmarshalJSON(b []byte) error {
	var s tally
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	if s.Positions == nil || s.Seen == nil || s.Last.IsZero() {
		return fmt.Errorf("tally: expected cash, positions, last and seen")
	}
	t.state = s
	return nil
}

// symbols are those of lists of positions, each once, sorted.
func symbols(lists ...[]Position) []string {
	var all []string
	for _, list := range lists {
		for _, p := range list {
			all = append(all, p.Symbol)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (t *Tally) clone() *Tally {
	s := t.state
	s.Positions, s.Seen = maps.Clone(s.Positions), maps.Clone(s.Seen)
	return &Tally{s}
}
