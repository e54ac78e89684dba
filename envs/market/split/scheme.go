package split

import (
	"fmt"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Length is a stretch of time: years, months, weeks or days of the calendar, or bars, written 5y,
// 6m, 4w, 30d and 250b. The zero Length is none.
type Length struct {
	N    int
	Unit byte
}

// UnmarshalText reads a length; nothing is the zero Length.
func (l *Length) UnmarshalText(text []byte) error {
	s := string(text)
	if s == "" {
		*l = Length{}
		return nil
	}
	unit := s[len(s)-1]
	n, err := strconv.Atoi(s[:len(s)-1])
	if err != nil || n < 1 || !strings.ContainsRune("ymwdb", rune(unit)) {
		return fmt.Errorf("%q is not a length such as 5y, 6m, 4w, 30d or 250b (years, months, weeks, days, bars)", s)
	}
	*l = Length{n, unit}
	return nil
}

// MarshalText writes the length.
func (l Length) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// String returns 5y, or nothing.
func (l Length) String() string {
	if l.IsZero() {
		return ""
	}
	return strconv.Itoa(l.N) + string(l.Unit)
}

// IsZero reports whether there is none.
func (l Length) IsZero() bool { return l == Length{} }

// days is about how long it is; bars count as days.
func (l Length) days() float64 {
	return float64(l.N) * map[byte]float64{'y': 365.25, 'm': 365.25 / 12, 'w': 7, 'd': 1, 'b': 1}[l.Unit]
}

// The kinds of schemes.
const (
	Expanding     = "expanding"
	Rolling       = "rolling"
	Combinatorial = "combinatorial"
)

// Scheme says how a data set is divided into folds, each with a training, a validation and a test
// range.
type Scheme struct {
	// Kind is expanding (every fold trains from the beginning of the data), rolling (it trains on a
	// stretch of the length train) or combinatorial (purged blocks: every choice of test_blocks out
	// of blocks is tested once, and trained on what is left, also of later times).
	Kind string `yaml:"kind"`
	// Train, Valid and Test are the lengths of the ranges that follow each other, and Step is what
	// lies between the beginnings of two folds, at least Test; absent it is Test. Lengths of years
	// or months begin with those of the calendar. They are not those of combinatorial.
	Train Length `yaml:"train"`
	Valid Length `yaml:"valid"`
	Test  Length `yaml:"test"`
	Step  Length `yaml:"step,omitzero"`
	// Purge and Embargo are the bars that are left out at the end and the beginning of a range next
	// to another, as in env.data.split.
	Purge   int `yaml:"purge"`
	Embargo int `yaml:"embargo"`
	// Blocks and TestBlocks are those of combinatorial. The last block that is not tested is the
	// validation range.
	Blocks     int `yaml:"blocks,omitzero"`
	TestBlocks int `yaml:"test_blocks,omitzero"`
}

// DefaultScheme walks year by year, from five years of training.
func DefaultScheme() Scheme {
	return Scheme{Kind: Expanding, Train: Length{5, 'y'}, Valid: Length{1, 'y'}, Test: Length{1, 'y'}, Purge: 1}
}

// Validate reports all problems of the section.
func (s Scheme) Validate() error {
	var p configs.Problems
	p.OneOf("kind", s.Kind, Expanding, Rolling, Combinatorial)
	p.NonNegative("purge", s.Purge)
	p.NonNegative("embargo", s.Embargo)
	if s.Kind == Combinatorial {
		p.AtLeast("blocks", s.Blocks, 3)
		p.Check(s.TestBlocks >= 1 && s.TestBlocks <= s.Blocks-2, "test_blocks", "%d of %d, expected at least 1, and 2 that are left for training and validation", s.TestBlocks, s.Blocks)
		return p.Err()
	}
	p.Check(s.Blocks == 0, "blocks", "belongs to the kind %s", Combinatorial)
	p.Check(s.TestBlocks == 0, "test_blocks", "belongs to the kind %s", Combinatorial)
	bar := 0
	for _, l := range []struct {
		name string
		Length
	}{{"train", s.Train}, {"valid", s.Valid}, {"test", s.Test}} {
		p.Check(!l.IsZero(), l.name, "required: a length such as 1y")
		if l.Unit == 'b' {
			bar++
		}
	}
	p.Check(bar == 0 || bar == 3, "train", "bars and lengths of the calendar cannot be mixed: train %s, valid %s, test %s", s.Train, s.Valid, s.Test)
	if !s.Step.IsZero() {
		p.Check((s.Step.Unit == 'b') == (bar > 0), "step", "bars and lengths of the calendar cannot be mixed: %s", s.Step)
		p.Check(s.Step.days() >= s.Test.days(), "step", "%s is shorter than test, %s: bars would be tested twice", s.Step, s.Test)
	}
	return p.Err()
}

// SchemeFold is one fold of a [Scheme].
type SchemeFold struct {
	// Name is the year, or the first date, of the test range, or the numbers of the test blocks.
	Name string
	// Train, Valid and Tests are the ranges before they are purged. Without are ranges inside of
	// Train that are not learnt from; only combinatorial folds have them, and several Tests.
	Train, Valid Range
	Tests        []Range
	Without      []Range
}

// Split is the configuration of a data set for the fold, with the test range i.
func (f SchemeFold) Split(s Scheme, i int) Config {
	return Config{Train: f.Train, Valid: f.Valid, Test: f.Tests[i], Without: f.Without, Purge: s.Purge, Embargo: s.Embargo}
}

// Folds divides times, which must be ascending, day by day: all bars of a day are in one range. The
// last test range is left out where the data have less than half of it.
func (s Scheme) Folds(times []time.Time) ([]SchemeFold, error) {
	if err := configs.Validate(s); err != nil {
		return nil, fmt.Errorf("scheme: %w", err)
	}
	if len(times) == 0 {
		return nil, fmt.Errorf("scheme: there are no times")
	}
	var folds []SchemeFold
	var err error
	if s.Kind == Combinatorial {
		if folds, err = s.combine(times); err != nil {
			return nil, err
		}
	} else {
		folds = s.walk(times)
	}
	first, last := bars.NewDate(times[0]), bars.NewDate(times[len(times)-1])
	if len(folds) == 0 {
		return nil, fmt.Errorf("scheme: the data, %s to %s, are shorter than one fold of train %s, valid %s and half of test %s", first, last, s.Train, s.Valid, s.Test)
	}
	for _, f := range folds {
		for i := range f.Tests {
			if _, err := f.Split(s, i).Resolve(times); err != nil {
				return nil, fmt.Errorf("scheme: fold %s: %w", f.Name, err)
			}
		}
	}
	return folds, nil
}

// walk lists the folds of expanding and rolling schemes.
func (s Scheme) walk(times []time.Time) (folds []SchemeFold) {
	step := s.Step
	if step.IsZero() {
		step = s.Test
	}
	anchor := s.anchor(times[0])
	// at is the position where some lengths end that begin at the first fold.
	at := func(lengths ...Length) int {
		y, m, d, b := 0, 0, 0, 0
		for _, l := range lengths {
			switch l.Unit {
			case 'y':
				y += l.N
			case 'm':
				m += l.N
			case 'w':
				d += 7 * l.N
			case 'd':
				d += l.N
			case 'b':
				b += l.N
			}
		}
		if s.Test.Unit == 'b' {
			return dayOf(times, b)
		}
		end := anchor.AddDate(y, m, d)
		return sort.Search(len(times), func(i int) bool { return !times[i].Before(end) })
	}
	for k := 0; ; k++ {
		moved := Length{step.N * k, step.Unit}
		lo, valid, test, hi := at(moved), at(moved, s.Train), at(moved, s.Train, s.Valid), at(moved, s.Train, s.Valid, s.Test)
		if s.Kind == Expanding {
			lo = 0
		}
		if test >= len(times) || hi == len(times) && s.half(times, test) {
			return folds
		}
		f := SchemeFold{Train: within(times, lo, valid), Valid: within(times, valid, test), Tests: []Range{within(times, test, hi)}}
		if f.Name = f.Tests[0].From.String(); s.Test.Unit == 'y' && step.Unit == 'y' {
			f.Name = f.Name[:4]
		}
		folds = append(folds, f)
	}
}

// half reports whether the data end in the first half of the test range at a position.
func (s Scheme) half(times []time.Time, test int) bool {
	if s.Test.Unit == 'b' {
		return 2*(len(times)-test) < s.Test.N
	}
	return 2*bars.HoursBetween(times[test], times[len(times)-1])/24 < s.Test.days()-14
}

// anchor is where the first fold begins: with the year or the month, if all lengths are of these,
// unless data lack more of it than a few days; then with the next.
func (s Scheme) anchor(first time.Time) time.Time {
	day := time.Date(first.Year(), first.Month(), first.Day(), 0, 0, 0, 0, first.Location())
	years, months := true, true
	for _, l := range []Length{s.Train, s.Valid, s.Test, s.Step} {
		years = years && (l.IsZero() || l.Unit == 'y')
		months = months && (l.IsZero() || l.Unit == 'y' || l.Unit == 'm')
	}
	const few = 10
	switch {
	case years:
		begin := time.Date(day.Year(), 1, 1, 0, 0, 0, 0, day.Location())
		if day.After(begin.AddDate(0, 0, few)) {
			begin = begin.AddDate(1, 0, 0)
		}
		return begin
	case months:
		begin := time.Date(day.Year(), day.Month(), 1, 0, 0, 0, 0, day.Location())
		if day.After(begin.AddDate(0, 0, few)) {
			begin = begin.AddDate(0, 1, 0)
		}
		return begin
	}
	return day
}

// combine lists the folds of combinatorial schemes.
func (s Scheme) combine(times []time.Time) (folds []SchemeFold, err error) {
	c := CombinatorialPurged{Blocks: s.Blocks, TestBlocks: s.TestBlocks, Purge: s.Purge, Embargo: s.Embargo}
	positions, err := c.Folds(len(times))
	if err != nil {
		return nil, err
	}
	starts := c.starts(len(times))
	for i := range starts {
		starts[i] = dayOf(times, starts[i])
	}
	block := func(g int) Range { return within(times, starts[g], starts[g+1]) }
	for _, p := range positions {
		f, names, tested := SchemeFold{Train: within(times, 0, len(times))}, []string{"blocks"}, map[int]bool{}
		for _, g := range p.Groups {
			tested[g] = true
			f.Tests, names = append(f.Tests, block(g)), append(names, strconv.Itoa(g+1))
		}
		valid := s.Blocks - 1
		for tested[valid] {
			valid--
		}
		f.Name, f.Valid, f.Without = strings.Join(names, "-"), block(valid), append(f.Tests[:len(f.Tests):len(f.Tests)], block(valid))
		folds = append(folds, f)
	}
	return folds, nil
}

// dayOf is the first position of the day of a position.
func dayOf(times []time.Time, i int) int {
	if i >= len(times) {
		return len(times)
	}
	day := bars.NewDate(times[i])
	for i > 0 && bars.NewDate(times[i-1]) == day {
		i--
	}
	return i
}

// within is the range of dates of positions; it is zero where there are none.
func within(times []time.Time, lo, hi int) Range {
	if lo >= hi {
		return Range{}
	}
	return Range{bars.NewDate(times[lo]), bars.NewDate(times[hi-1])}
}
