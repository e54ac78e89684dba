package bars

import (
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// Incremental checks and adjusts the rows of one symbol one after another, in the order of time, as
// [Clean] does with all of them. It is not safe for concurrent use.
type Incremental struct {
	symbol       string
	clean        cleaner
	adjust       string
	adjustVolume string
	zone         *time.Location
	unsold       bool // the last row had no volume
	derives      bool // factors are made of dividends and bonus shares
	made         actionFactor
	last         Record  // the last row that was given out
	anchor       *Anchor // nil: factors are as the rows have them
	base         float64 // what factors are divided by; 0 before the first one
	own          bool    // the base is the factor of a row
	limit        float64
}

// NewIncremental returns what has seen no row. Of the source it uses how prices and volumes are
// adjusted; quoted are the columns of quotes that rows have. It calls say with every finding.
func NewIncremental(symbol string, s Source, rules Rules, quoted []QuoteColumn, say func(string)) *Incremental {
	zone, err := s.location()
	if err != nil || zone == nil {
		zone = time.UTC // Validate reports the error; times without a zone are as if of this one.
	}
	return &Incremental{
		symbol: symbol, adjust: s.Adjust, adjustVolume: s.AdjustVolume, zone: zone, limit: math.Log(1 + rules.Jump),
		clean: cleaner{rules: rules, has: actionsOf(quoted), say: func(text string) { say(symbol + ": " + text) }},
	}
}

// Derive says that the data were adjusted by [ByActions]: rows have the factors that their dividends
// and bonus shares make from the first one on.
func (x *Incremental) Derive() { x.derives = true }

// Next checks and adjusts a row in place, and reports whether it has prices; one that has none is
// as if it were not there. limit, unless nil, writes the limits of its day. The error, of a rule
// that says so, names the symbol and the row.
func (x *Incremental) Next(rec *Record, limit func(*Record)) (valid bool, err error) {
	c := &x.clean
	if x.derives {
		x.made.next(rec)
	}
	if c.factor == 0 && !rec.HasFactor() && !math.IsNaN(rec.Close) && x.adjust == "auto" {
		if a := x.anchor; a != nil && a.Factor != 0 && a.Factor != 1 {
			return false, fmt.Errorf("symbol %s: %s (%s, line %d): %w", x.symbol, formatTime(rec.Time), rec.File, rec.Line, errUnanchored)
		}
		rec.Factor = 1
		c.say(fmt.Sprintf("%s (%s, line %d): no adjustment; prices are taken as given until there is one", formatTime(rec.Time), rec.File, rec.Line))
	}
	if none := math.IsNaN(rec.Volume); none != x.unsold {
		if x.unsold = none; none {
			as := "0 is taken until there is one"
			if c.counted && c.rules.ZeroVolume == "suspended" {
				as = "it cannot be traded until there is one"
			}
			c.say(fmt.Sprintf("%s (%s, line %d): no volume; %s", formatTime(rec.Time), rec.File, rec.Line, as))
		}
	}
	if err = x.anchored(rec); err != nil {
		return false, fmt.Errorf("symbol %s: %w", x.symbol, err)
	}
	if err = c.adjustRow(rec, x.adjustVolume); err == nil {
		valid, err = c.checkRow(rec)
	}
	if err != nil {
		return false, fmt.Errorf("symbol %s: %w", x.symbol, err)
	}
	if limit != nil && valid {
		limit(rec)
	}
	if valid {
		if j, found := jumpBetween(&x.last, rec, x.limit); found && j.Like != "" {
			c.say(fmt.Sprintf("%s (%s, line %d): open %.3f of the close before, like that of a split or bonus shares (%s) that is NOT adjusted for", j.Date, rec.File, rec.Line, j.Ratio, j.Like))
		}
	}
	x.last = *rec
	return valid, nil
}

// State moves what is remembered from row to row: whoever loads it goes on with the same bits.
// Counts of findings are no part of it.
func (x *Incremental) State(c *state.Codec) {
	c.Float(&x.clean.factor)
	c.Float(&x.clean.splits)
	c.Bool(&x.unsold)
	c.Float(&x.made.factor)
	c.Float(&x.made.close)
	x.made.day.State(c)
	c.Bool(&x.clean.counted)
	if x.anchor != nil {
		c.Float(&x.base)
		c.Bool(&x.own)
	}
	for _, rec := range []*Record{&x.clean.before, &x.last} {
		x.move(c, rec)
	}
}

// move moves the numbers of a row without those of Extra.
func (x *Incremental) move(c *state.Codec, rec *Record) {
	there := !rec.Time.IsZero()
	c.Bool(&there)
	if !there {
		if c.Reading() {
			*rec = Record{}
		}
		return
	}
	second, nano := rec.Time.Unix(), rec.Time.Nanosecond()
	c.Int64(&second, math.MinInt64, math.MaxInt64)
	c.Int(&nano, 0, 999_999_999)
	if c.Reading() {
		rec.Time = time.Unix(second, int64(nano)).In(x.zone)
	}
	for _, v := range []*float64{&rec.Open, &rec.High, &rec.Low, &rec.Close, &rec.Volume, &rec.Factor} {
		c.Float(v)
	}
	c.Bool(&rec.Suspended)
	c.Floats(rec.Quote[:])
}
