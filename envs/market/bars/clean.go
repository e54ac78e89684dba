package bars

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/configs"
)

// Rules say what happens to rows that are not as they should be. Whatever is chosen, the report
// counts them.
type Rules struct {
	// Duplicates are rows of one symbol and time that differ: error, first or last. Equal rows are
	// dropped.
	Duplicates string `yaml:"duplicates"`
	// Unsorted rows: sort or error.
	Unsorted string `yaml:"unsorted"`
	// BadPrices are prices that are not positive numbers: missing (the row is left out and the last
	// close carried forward) or error. A row whose prices are all blank is always missing.
	BadPrices string `yaml:"bad_prices"`
	// Inconsistent rows have a high below or a low above another price: widen (the range is made to
	// hold all), missing or error.
	Inconsistent string `yaml:"inconsistent"`
	// NegativeVolume: zero or error.
	NegativeVolume string `yaml:"negative_volume"`
	// ZeroVolume says what a row with a volume of 0 is, or one whose volume is blank where a row of
	// the symbol before it had one: suspended (it cannot be traded) or traded.
	ZeroVolume string `yaml:"zero_volume"`
	// Clock says what daily bars of one day at different clock times, bars of which some are named
	// by their beginning and others by their end, and dates that the time zone has moved are: error
	// or note.
	Clock string `yaml:"clock"`
	// Jump is the overnight change that is reported, 0.4 for a price that rises by 40 % or falls to
	// 1/1.4.
	Jump float64 `yaml:"jump"`
	// Calendar says what trading days of source.exchange without a bar, and bars on other days or
	// outside its hours, are: note (also if it is empty) or error.
	Calendar string `yaml:"calendar,omitzero"`
}

// DefaultRules returns the defaults.
func DefaultRules() Rules {
	return Rules{
		Duplicates: "error", Unsorted: "sort", BadPrices: "missing", Inconsistent: "widen", NegativeVolume: "zero", ZeroVolume: "suspended", Clock: "error", Jump: 0.4,
	}
}

// Validate reports what is wrong with the fields.
func (r Rules) Validate() error {
	var p configs.Problems
	p.OneOf("duplicates", r.Duplicates, "error", "first", "last")
	p.OneOf("unsorted", r.Unsorted, "sort", "error")
	p.OneOf("bad_prices", r.BadPrices, "missing", "error")
	p.OneOf("inconsistent", r.Inconsistent, "widen", "missing", "error")
	p.OneOf("negative_volume", r.NegativeVolume, "zero", "error")
	p.OneOf("zero_volume", r.ZeroVolume, "suspended", "traded")
	p.OneOf("clock", r.Clock, "error", "note")
	p.Positive("jump", r.Jump)
	p.OneOf("calendar", r.Calendar, "", "note", "error")
	return p.Err()
}

// SymbolReport counts what was found in the rows of one symbol.
type SymbolReport struct {
	Symbol string `json:"symbol"`
	First  string `json:"first"`
	Last   string `json:"last"`
	Rows   int    `json:"rows"` // that are left
	// Duplicates are equal rows, Conflicts different ones of the same time, Unsorted rows earlier
	// than the one before.
	Duplicates int `json:"duplicates"`
	Conflicts  int `json:"conflicts"`
	Unsorted   int `json:"unsorted"`
	// Blank rows have no prices, BadPrices rows some that are not positive numbers.
	Blank        int `json:"blank"`
	BadPrices    int `json:"bad_prices"`
	Inconsistent int `json:"inconsistent"`
	// OpenOffRange are those of the inconsistent rows whose open is above the high or below the
	// low.
	OpenOffRange int `json:"open_off_range"`
	// Volumes as found: blank, negative, zero.
	MissingVolume  int `json:"missing_volume"`
	NegativeVolume int `json:"negative_volume"`
	ZeroVolume     int `json:"zero_volume"`
	Suspended      int `json:"suspended"`
	// OffLimits counts rows whose open or close, as quoted, is beyond a limit of the day: limits
	// and prices are then not of one kind.
	OffLimits int `json:"off_limits,omitempty"`
	// OffActions counts dividends and bonus shares that are not what the factor changes by, and
	// changes of the factor without any, where there are columns of them; FirstOffAction is the
	// first.
	OffActions     int    `json:"off_actions,omitempty"`
	FirstOffAction string `json:"first_off_action,omitempty"`
	// Averages counts rows whose vwap is amount/volume, and OffAverage those of them in which that
	// is outside of low and high.
	Averages   int `json:"averages,omitempty"`
	OffAverage int `json:"off_average,omitempty"`
	// MissingFactor counts rows without an adjustment, which have that of the row before.
	MissingFactor int    `json:"missing_factor"`
	Jumps         []Jump `json:"jumps,omitempty"`
	// Filled counts times between rows at which there is none, LongestGap the most in a row, and
	// Absent those from the last row to the end of the panel. Align sets them.
	Filled     int `json:"filled"`
	LongestGap int `json:"longest_gap"`
	Absent     int `json:"absent"`
	// FirstOpenOff is the first row whose open is off the day's range.
	FirstOpenOff string `json:"first_open_off,omitempty"`
	// Problem says why the rows were refused; Inspect sets it.
	Problem string `json:"problem,omitempty"`
	// Examples say where the first finding of a kind is.
	Examples []string `json:"examples,omitempty"`
}

// Faults is the number of rows that were repaired, dropped or left out.
func (r *SymbolReport) Faults() int {
	return r.Duplicates + r.Conflicts + r.Unsorted + r.Blank + r.BadPrices + r.Inconsistent + r.NegativeVolume + r.MissingFactor
}

// SplitLike counts the jumps that look like splits which the data are not adjusted for.
func (r *SymbolReport) SplitLike() int {
	n := 0
	for _, j := range r.Jumps {
		if j.Like != "" {
			n++
		}
	}
	return n
}

// Clean checks the rows of one symbol and returns them in the order of time, adjusted, with finite
// positive prices and volumes that are not negative. The given series is not changed. With
// adjustVolume as in Source. The error names the symbol and the row.
func Clean(s Series, rules Rules, adjustVolume string) (Series, SymbolReport, error) {
	c := cleaner{rules: rules, report: SymbolReport{Symbol: s.Symbol}, records: slices.Clone(s.Records), has: actionsOf(s.Quoted)}
	for _, step := range []func() error{c.sort, c.unique, func() error { return c.adjust(adjustVolume) }, c.check} {
		if err := step(); err != nil {
			return Series{}, c.report, fmt.Errorf("symbol %s: %w", s.Symbol, err)
		}
	}
	out := Series{Symbol: s.Symbol, Records: c.records, Quoted: s.Quoted}
	r := &c.report
	if 2*r.OffAverage > r.Averages {
		return out, *r, fmt.Errorf("symbol %s: amount/volume of %d of %d rows is not between low and high, first on %s: the units of amount and volume do not fit together, see source.preset",
			s.Symbol, r.OffAverage, r.Averages, c.offAverage)
	}
	if r.Rows = len(c.records); r.Rows == 0 {
		return out, *r, fmt.Errorf("symbol %s: none of its %d rows has valid prices", s.Symbol, len(s.Records))
	}
	r.First, r.Last = formatTime(c.records[0].Time), formatTime(c.records[r.Rows-1].Time)
	r.Jumps = findJumps(c.records, rules.Jump)
	return out, *r, nil
}

type cleaner struct {
	rules   Rules
	report  SymbolReport
	records []Record
	// factor is that of the last row, 0 before the first; splits is what the steps of the factor
	// that look like splits have multiplied it by.
	factor, splits float64
	// has says that there are columns of dividends or bonus shares, and whether there is one of
	// factors; before is the last row that was kept.
	has    actionColumns
	before Record
	// counted says that a row before had a volume, be it 0.
	counted bool
	// offAverage is the first row of the report's.
	offAverage string
	// say, unless nil, receives every finding, not only the first of a kind.
	say func(string)
}

// found counts a finding, keeps the place of the first, and turns it into an error where the rule
// says so.
func (c *cleaner) found(count *int, rec *Record, rule, what string) error {
	*count++
	place := fmt.Sprintf("%s (%s, line %d): %s", formatTime(rec.Time), rec.File, rec.Line, what)
	if rule == "error" {
		return fmt.Errorf("%s", place)
	}
	if *count == 1 {
		c.report.Examples = append(c.report.Examples, place)
	}
	if c.say != nil {
		c.say(place)
	}
	return nil
}

// newestFirst says that the rows are in the order of time backwards, as TuShare gives them: within
// every file, and with at least two times.
func newestFirst(rows []Record) bool {
	falls := false
	for i := 1; i < len(rows); i++ {
		if rows[i].File != rows[i-1].File {
			continue
		}
		if rows[i].Time.After(rows[i-1].Time) {
			return false
		}
		falls = falls || rows[i].Time.Before(rows[i-1].Time)
	}
	return falls
}

func (c *cleaner) sort() error {
	backwards := newestFirst(c.records)
	for i := 1; i < len(c.records); i++ {
		if rec := &c.records[i]; !backwards && rec.Time.Before(c.records[i-1].Time) {
			if err := c.found(&c.report.Unsorted, rec, c.rules.Unsorted, "earlier than the row before"); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(c.records, func(a, b Record) int { return a.Time.Compare(b.Time) })
	return nil
}

func (c *cleaner) unique() error {
	kept := c.records[:0]
	for i := range c.records {
		rec := &c.records[i]
		if len(kept) == 0 || !kept[len(kept)-1].Time.Equal(rec.Time) {
			kept = append(kept, *rec)
			continue
		}
		last := &kept[len(kept)-1]
		if SameRow(last, rec) {
			if err := c.found(&c.report.Duplicates, rec, "", "there twice"); err != nil {
				return err
			}
			continue
		}
		choice := "the " + c.rules.Duplicates + " is kept"
		if c.rules.Duplicates == "error" {
			choice = "choose one with quality.duplicates"
		}
		what := fmt.Sprintf("differs from the row of the same time in line %d (close %v and %v); %s", last.Line, last.Close, rec.Close, choice)
		if err := c.found(&c.report.Conflicts, rec, c.rules.Duplicates, what); err != nil {
			return err
		}
		if c.rules.Duplicates == "last" {
			*last = *rec
		}
	}
	c.records = kept
	return nil
}

// SameRow reports whether two rows of the same time say the same, NaN being like NaN.
func SameRow(a, b *Record) bool {
	same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }
	return same(a.Open, b.Open) && same(a.High, b.High) && same(a.Low, b.Low) && same(a.Close, b.Close) && same(a.Volume, b.Volume) &&
		same(a.Factor, b.Factor) && a.Suspended == b.Suspended && slices.EqualFunc(a.Extra, b.Extra, same) && slices.EqualFunc(a.Quote[:], b.Quote[:], same)
}

// adjust adjusts all rows.
func (c *cleaner) adjust(volume string) error {
	for i := range c.records {
		if err := c.adjustRow(&c.records[i], volume); err != nil {
			return err
		}
	}
	return nil
}

// adjustRow multiplies prices by the factor of the row, or of the row before where it has none.
// Rows are given in the order of time.
func (c *cleaner) adjustRow(rec *Record, volume string) error {
	factor, own, err := rowFactor(rec, c.factor)
	if err == nil && !own && !math.IsNaN(rec.Close) {
		err = c.found(&c.report.MissingFactor, rec, "", "no adjustment; that of the row before is used")
	}
	if err != nil {
		return err
	}
	if c.factor == 0 {
		c.splits = 1
	} else if like, ratio := likeSplit(factor / c.factor); like != "" {
		c.splits *= ratio
	}
	c.factor = factor
	if rec.Factor = factor; factor == 0 {
		rec.Factor = 1 // Without prices it is left out.
	}
	rec.keepRaw()
	if rec.average > 0 {
		rec.Extra = slices.Clone(rec.Extra)
		rec.Extra[rec.average-1] *= rec.Factor
	}
	rec.Open, rec.High, rec.Low, rec.Close = rec.Open*rec.Factor, rec.High*rec.Factor, rec.Low*rec.Factor, rec.Close*rec.Factor
	switch volume {
	case "inverse":
		rec.Volume /= rec.Factor
	case "splits":
		rec.Volume /= c.splits
	}
	return nil
}

// check looks at every row by itself and leaves out those without valid prices.
func (c *cleaner) check() error {
	kept := c.records[:0]
	for i := range c.records {
		rec := &c.records[i]
		ok, err := c.checkRow(rec)
		if err != nil {
			return err
		}
		if ok {
			kept = append(kept, *rec)
		}
	}
	c.records = kept
	return nil
}

// checkRow reports whether the row can stay.
func (c *cleaner) checkRow(rec *Record) (bool, error) {
	ok, err := c.prices(rec)
	if ok && err == nil {
		rec.mendRaw()
		if err := c.actions(rec); err != nil {
			return false, err
		}
		c.average(rec)
		if rec.offLimits() {
			q := &rec.Quote
			_ = c.found(&c.report.OffLimits, rec, "", fmt.Sprintf("open %v and close %v, limits %v and %v", q[RawOpen], q[RawClose], q[LimitDown], q[LimitUp])) // No rule makes it an error.
		}
		err = c.volume(rec)
	}
	return ok, err
}

// prices reports whether the prices of the row are valid, or can be mended.
func (c *cleaner) prices(rec *Record) (bool, error) {
	blank, bad := 0, 0
	for _, v := range []float64{rec.Open, rec.High, rec.Low, rec.Close} {
		if math.IsNaN(v) {
			blank++
		} else if !(v > 0) || math.IsInf(v, 0) {
			bad++
		}
	}
	if blank == 4 {
		return false, c.found(&c.report.Blank, rec, "", "no prices")
	}
	if blank+bad > 0 {
		return false, c.found(&c.report.BadPrices, rec, c.rules.BadPrices, fmt.Sprintf("prices %v, %v, %v, %v", rec.Open, rec.High, rec.Low, rec.Close))
	}
	high, low := max(rec.Open, rec.High, rec.Low, rec.Close), min(rec.Open, rec.High, rec.Low, rec.Close)
	// Vendors round adjusted prices, so the last digits may disagree.
	const slack = 1e-5
	if high > rec.High*(1+slack) || low < rec.Low*(1-slack) {
		what := fmt.Sprintf("open %v, high %v, low %v, close %v", rec.Open, rec.High, rec.Low, rec.Close)
		if rec.Open > rec.High*(1+slack) || rec.Open < rec.Low*(1-slack) {
			if what += ": the open is off the day's range"; c.report.OpenOffRange == 0 {
				c.report.FirstOpenOff = fmt.Sprintf("%s (%s, line %d): %s", formatTime(rec.Time), rec.File, rec.Line, what)
			}
			c.report.OpenOffRange++
		}
		if err := c.found(&c.report.Inconsistent, rec, c.rules.Inconsistent, what); err != nil {
			return false, err
		}
		if c.rules.Inconsistent == "missing" {
			return false, nil
		}
	}
	rec.High, rec.Low = high, low
	return true, nil
}

func (c *cleaner) volume(rec *Record) error {
	known := rec.Volume-rec.Volume == 0
	switch v := rec.Volume; {
	case !known:
		rec.Volume = 0
		c.report.MissingVolume++
		rec.Suspended = rec.Suspended || c.counted && c.rules.ZeroVolume == "suspended"
	case v < 0:
		rec.Volume = 0
		if err := c.found(&c.report.NegativeVolume, rec, c.rules.NegativeVolume, fmt.Sprintf("volume %v", v)); err != nil {
			return err
		}
	case v == 0:
		c.report.ZeroVolume++
		rec.Suspended = rec.Suspended || c.rules.ZeroVolume == "suspended"
	}
	c.counted = c.counted || known
	if rec.Suspended {
		c.report.Suspended++
	}
	return nil
}
