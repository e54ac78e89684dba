package split

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Range is a pair of dates, both included, written [2000-01-03, 2010-12-31]. The zero Range is
// none.
type Range struct{ From, To bars.Date }

// IsZero reports whether the range is not given.
func (r Range) IsZero() bool { return r == Range{} }

// String returns "2000-01-03 to 2010-12-31".
func (r Range) String() string { return r.From.String() + " to " + r.To.String() }

// DecodeConfig reads a list of two dates.
func (r *Range) DecodeConfig(raw configs.Section) error {
	var list []bars.Date
	if err := raw.Decode(&list); err != nil {
		return err
	}
	if len(list) == 0 {
		*r = Range{}
		return nil
	}
	if len(list) != 2 || list[0].IsZero() || list[1].IsZero() {
		return raw.Errorf("", "expected two dates such as [2000-01-03, 2010-12-31]")
	}
	*r = Range{list[0], list[1]}
	return nil
}

// EncodeConfig writes the two dates.
func (r Range) EncodeConfig() (any, error) {
	if r.IsZero() {
		return []bars.Date{}, nil
	}
	return []bars.Date{r.From, r.To}, nil
}

// Config names the ranges.
type Config struct {
	// Train is learnt from; statistics of normalisation are its.
	Train Range `yaml:"train"`
	// Valid and Test may be left out.
	Valid Range `yaml:"valid"`
	Test  Range `yaml:"test"`
	// Purge is the number of bars at the end of a range that are left out where the next range
	// follows: at least the number of bars between a decision and the last price that its reward
	// depends on.
	Purge int `yaml:"purge"`
	// Embargo is the number of bars left out at the beginning of a range that follows another.
	Embargo int `yaml:"embargo"`
	// Without are ranges inside of Train that nothing is learnt from, with Purge bars before and
	// Purge and Embargo bars after each. Valid and Test may then lie in them: they are for studies
	// that train on later times, too, with random episodes. Most documents have none.
	Without []Range `yaml:"without,omitzero"`
}

// Default returns a configuration whose ranges must be set. One bar is purged: a decision is filled
// at the next open.
func Default() Config { return Config{Purge: 1} }

type named struct {
	name string
	Range
}

func (c Config) ranges() []named {
	return []named{{"train", c.Train}, {"valid", c.Valid}, {"test", c.Test}}
}

// MissingTrain says what a configuration without a range to train on needs.
const MissingTrain = "must be two dates such as [2000-01-03, 2010-12-31]"

// Validate reports ranges that are reversed or overlapping, and others without one to train on.
// That there is any is for whoever splits to check.
func (c Config) Validate() error {
	var p configs.Problems
	p.NonNegative("purge", c.Purge)
	p.NonNegative("embargo", c.Embargo)
	p.Check(!c.Train.IsZero() || c.Valid.IsZero() && c.Test.IsZero(), "train", MissingTrain)
	var before named
	for _, r := range c.ranges() {
		if r.IsZero() {
			continue
		}
		p.Check(!r.To.Before(r.From), r.name, "ends before it begins: %s", r.Range)
		if before.name != "" && !before.To.Before(r.From) && len(c.Without) == 0 {
			p.Addf(r.name, "overlaps or comes before %s: %s, and %s is %s", before.name, r.Range, before.name, before.Range)
		}
		before = r
	}
	if len(c.Without) > 0 {
		for _, r := range []named{{"valid", c.Valid}, {"test", c.Test}} {
			p.Check(r.IsZero() || slices.ContainsFunc(c.Without, func(w Range) bool { return !r.From.Before(w.From) && !w.To.Before(r.To) }), r.name, "%s lies in none of the ranges of without", r.Range)
		}
		p.Check(c.Valid.IsZero() || c.Test.IsZero() || c.Valid.To.Before(c.Test.From) || c.Test.To.Before(c.Valid.From), "test", "overlaps valid: %s, and valid is %s", c.Test, c.Valid)
	}
	return p.Err()
}

// Span is a run of positions, Lo included and Hi not.
type Span struct {
	Lo int `json:"lo"`
	Hi int `json:"hi"`
}

// Len is the number of positions.
func (s Span) Len() int { return s.Hi - s.Lo }

// Splits are the positions of the ranges; those not configured are empty.
type Splits struct {
	Train Span `json:"train"`
	Valid Span `json:"valid"`
	Test  Span `json:"test"`
}

// Named returns the spans that have positions, in order of time.
func (s Splits) Named() []struct {
	Name string
	Span
} {
	var list []struct {
		Name string
		Span
	}
	for i, span := range []Span{s.Train, s.Valid, s.Test} {
		if span.Len() > 0 {
			list = append(list, struct {
				Name string
				Span
			}{[]string{"train", "valid", "test"}[i], span})
		}
	}
	return list
}

// Resolve finds the positions of the ranges in times, which must be ascending, and purges them. A
// configured range without positions, or with none left after purging, is an error.
func (c Config) Resolve(times []time.Time) (Splits, error) {
	var s Splits
	if err := configs.Validate(c); err != nil {
		return s, fmt.Errorf("split: %w", err)
	}
	if c.Train.IsZero() {
		return s, errors.New("split: train: " + MissingTrain)
	}
	if len(times) == 0 {
		return s, errors.New("split: there are no times")
	}
	spans := []*Span{&s.Train, &s.Valid, &s.Test}
	var before *Span
	for i, r := range c.ranges() {
		if r.IsZero() {
			continue
		}
		span := spans[i]
		*span = r.span(times)
		if span.Len() <= 0 {
			return s, fmt.Errorf("split: %s is empty: no data from %s; there are data from %s to %s",
				r.name, r.Range, bars.NewDate(times[0]), bars.NewDate(times[len(times)-1]))
		}
		if before != nil && len(c.Without) == 0 {
			before.Hi = min(before.Hi, span.Lo-c.Purge)
			span.Lo += c.Embargo
		}
		before = span
	}
	if v := &s.Valid; len(c.Without) > 0 && v.Len() > 0 {
		// The valid range keeps its distance, too, from what lies on both sides.
		if v.Lo > 0 {
			v.Lo += c.Purge + c.Embargo
		}
		if v.Hi < len(times) {
			v.Hi -= c.Purge
		}
	}
	for i, r := range c.ranges() {
		if !r.IsZero() && spans[i].Len() <= 0 {
			return s, fmt.Errorf("split: %s, %s, has no bar left after purging %d and an embargo of %d bars", r.name, r.Range, c.Purge, c.Embargo)
		}
	}
	return s, nil
}

// Gaps are the positions inside of the training range that nothing is learnt from, ascending.
func (c Config) Gaps(times []time.Time) (list []Span) {
	for _, r := range c.Without {
		s := r.span(times)
		list = append(list, Span{max(0, s.Lo-c.Purge), min(len(times), s.Hi+c.Purge+c.Embargo)})
	}
	slices.SortFunc(list, func(a, b Span) int { return a.Lo - b.Lo })
	return list
}

// Outside returns what of a span lies in none of the gaps, which are ascending.
func (s Span) Outside(gaps []Span) (list []Span) {
	for _, g := range gaps {
		if part := (Span{s.Lo, min(s.Hi, g.Lo)}); part.Len() > 0 {
			list = append(list, part)
		}
		s.Lo = max(s.Lo, g.Hi)
	}
	if s.Len() > 0 {
		list = append(list, s)
	}
	return list
}

func (r Range) span(times []time.Time) Span {
	lo, hi := 0, len(times)
	for lo < hi && r.From.After(times[lo]) {
		lo++
	}
	for hi > lo && r.To.EndsBefore(times[hi-1]) {
		hi--
	}
	return Span{lo, hi}
}
