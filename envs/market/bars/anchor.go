package bars

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// First is the [Source].Anchor that divides the factors of a symbol by that of its first row.
const First = "first"

// Anchor says where the prices of a symbol are as they were quoted, and what the source said there:
// whoever goes on with later bars of it divides their factors alike.
type Anchor struct {
	Symbol string `json:"symbol"`
	// From is the time of the first row and Factor the source's factor there, 0 for a symbol without
	// rows. Until is that of the last row, with UntilFactor.
	From        time.Time `json:"from,omitzero"`
	Factor      float64   `json:"factor,omitempty"`
	Until       time.Time `json:"until,omitzero"`
	UntilFactor float64   `json:"until_factor,omitempty"`
}

// Anchor divides the factors of each symbol by that of its first row that is not before from, so
// that a price depends on what happened until then and never on what comes later, and notes the
// Anchors. stored, unless nil, are those of data that somebody learnt from: bars that begin later
// are anchored where those were, as far as it can be known. Prices that nothing adjusts stay as they
// are.
func (d *Data) Anchor(from Date, stored []Anchor) error {
	if d.Adjustment.By == "none" {
		return nil
	}
	known := map[string]*Anchor{}
	for i := range stored {
		known[stored[i].Symbol] = &stored[i]
	}
	d.Adjustment.Anchored = true
	late, latest := 0, ""
	bases := map[string]float64{}
	for _, s := range d.Each() {
		var first, last, at *Record
		there := known[s.Symbol]
		for i := range s.Records {
			r := &s.Records[i]
			if !r.HasFactor() || !from.IsZero() && from.After(r.Time) {
				continue
			}
			if first == nil || r.Time.Before(first.Time) {
				first = r
			}
			if last == nil || r.Time.After(last.Time) {
				last = r
			}
			if there != nil && at == nil && r.Time.Equal(there.From) {
				at = r
			}
		}
		if first == nil {
			d.Anchors = append(d.Anchors, Anchor{Symbol: s.Symbol})
			continue
		}
		base := first.Factor
		switch {
		case there == nil || there.Factor == 0:
		case at != nil:
			base = at.Factor
		default:
			if err := there.holds(first, d.Adjustment.By); err != nil {
				return fmt.Errorf("symbol %s: %w", s.Symbol, err)
			}
			for i := range s.Records {
				if err := there.moved(&s.Records[i]); err != nil {
					return fmt.Errorf("symbol %s: %w", s.Symbol, err)
				}
			}
			if base = there.Factor; first.Time.After(there.Until) {
				if late++; late == 1 {
					latest = fmt.Sprintf("%s on %s", s.Symbol, formatTime(there.From))
				}
			}
		}
		d.Anchors = append(d.Anchors, Anchor{s.Symbol, first.Time, first.Factor, last.Time, last.Factor})
		bases[s.Symbol] = base
	}
	d.change(func(s *Series) {
		base, ok := bases[s.Symbol]
		for i := range s.Records {
			if r := &s.Records[i]; ok && r.HasFactor() {
				r.Factor /= base
			}
		}
	})
	if late > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of %d symbols, such as %s, %s", late, len(d.Series), latest, unproven))
	}
	return nil
}

// unproven says of symbols what cannot be known of bars that begin after those that were learnt
// from.
const unproven = "are anchored by the factor that the agent's data had, and no row is of both: if the source has changed its factors of the past since, as adjusted closes do with every dividend, levels are not those that the agent learnt from; give the bars from the anchor on"

// holds says why the factor of the anchor is none of rows that begin with first.
func (a *Anchor) holds(first *Record, by string) error {
	place := fmt.Sprintf("%s (%s, line %d)", formatTime(first.Time), first.File, first.Line)
	switch {
	case first.Time.Before(a.From):
		return fmt.Errorf("%s: a row before %s, on which the agent's prices are anchored and of which there is none; expected the bars from then on", place, formatTime(a.From))
	case by == ByActions:
		return fmt.Errorf("%s: the first row, and the agent's prices are anchored on %s: factors that are made of dividends and bonus shares begin with the bars; expected those from then on", place, formatTime(a.From))
	}
	return nil
}

// moved says that the source has another factor than it had for the last row that was learnt from.
func (a *Anchor) moved(r *Record) error {
	if !r.HasFactor() || !r.Time.Equal(a.Until) || math.Abs(r.Factor/a.UntilFactor-1) < 1e-3 {
		return nil
	}
	return fmt.Errorf("%s (%s, line %d): the factor of adjustment is %g and was %g when the agent's data were prepared: the source has changed those of the past, so that the anchor on %s cannot be known; expected the bars from then on", formatTime(r.Time), r.File, r.Line, r.Factor, a.UntilFactor, formatTime(a.From))
}

// Anchor has the factors of the rows divided as those of the data that somebody learnt from; see
// [Data.Anchor].
func (x *Incremental) Anchor(a Anchor) { x.anchor = &a }

// anchored divides the factor of a row.
func (x *Incremental) anchored(rec *Record) error {
	a := x.anchor
	if a == nil || !rec.HasFactor() {
		return nil
	}
	if x.base == 0 {
		switch {
		case a.Factor == 0 || rec.Time.Equal(a.From):
			x.base, x.own = rec.Factor, true
		case rec.Time.Before(a.From):
			return fmt.Errorf("%s (%s, line %d): a row before %s, on which the agent's prices are anchored; expected the bars from then on", formatTime(rec.Time), rec.File, rec.Line, formatTime(a.From))
		default:
			by := ""
			if x.derives {
				by = ByActions
			}
			if err := a.holds(rec, by); err != nil {
				return err
			}
			if x.base = a.Factor; rec.Time.After(a.Until) {
				x.clean.say("prices " + unproven)
			}
		}
	}
	if !x.own {
		if err := a.moved(rec); err != nil {
			return err
		}
	}
	rec.Factor /= x.base
	return nil
}

// errUnanchored is of a first row without a factor, whose price is on no known level.
var errUnanchored = errors.New("the row has no factor of adjustment, and the agent's prices are anchored; expected one with the bars")
