package bars

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// unlike is the difference between the closes of two sources on one day, as a fraction, from which
// on they are not of the same thing.
const unlike = 0.005

// join puts the rows of an older source before those of the data, symbol by symbol: up to the first
// row of the data, with the factor scaled so that both sources have the same one on the first day
// that they share. On all days that they share their closes, as quoted, must be equal but for
// rounding. Symbols that the older source lacks stay as they are.
func (d *Data) join(s Source) error {
	s.Path, s.Join, s.Timezone = s.Join, "", cmp.Or(s.Timezone, d.Zone)
	older, err := Read(s, nil)
	if err != nil {
		return err
	}
	if older.Zone != "" {
		return fmt.Errorf("source.join: the times of %s have the offsets from UTC of %s, and those of the source are as written: set source.timezone", s.Path, older.Zone)
	}
	if older.Adjustment.By != d.Adjustment.By {
		return fmt.Errorf("source.join: the prices of %s would be adjusted by %s and those of the source by %s: set source.adjust", s.Path, older.Adjustment.By, d.Adjustment.By)
	}
	if d.Adjustment.Already {
		return fmt.Errorf("source.join: bars of Qlib are stored as adjusted, and their factors cannot be scaled")
	}
	extended, shared, rows := 0, 0, 0
	for i := range d.Series {
		k := slices.IndexFunc(older.Series, func(o Series) bool { return o.Symbol == d.Series[i].Symbol })
		if k < 0 {
			continue
		}
		added, common, err := d.Series[i].prepend(older.Series[k])
		if err != nil {
			return fmt.Errorf("source.join: %s: %w", d.Series[i].Symbol, err)
		}
		if shared += common; added > 0 {
			extended, rows = extended+1, rows+added
		}
	}
	if extended == 0 {
		return fmt.Errorf("source.join: %s has no rows of the source's symbols that are older", s.Path)
	}
	d.Files = append(older.Files, d.Files...)
	d.Notes = append(d.Notes, fmt.Sprintf("joined: %d rows of %d of %d symbols come from %s, up to the first row of the other source, with factors scaled to fit it; the closes agree on %d days that both have", rows, extended, len(d.Series), older.Files[0].Name, shared))
	return nil
}

// prepend adds the rows of an older series before the first one, and returns how many they are and
// how many days the series share.
func (s *Series) prepend(older Series) (added, shared int, err error) {
	at := map[int64]*Record{}
	first := s.Records[0].Time
	for i := range s.Records {
		r := &s.Records[i]
		at[r.Time.Unix()] = r
		if r.Time.Before(first) {
			first = r.Time
		}
	}
	scale, from := math.NaN(), time.Time{}
	var before []Record
	for _, o := range older.Records {
		r := at[o.Time.Unix()]
		switch {
		case r == nil && o.Time.Before(first):
			before = append(before, o)
		case r != nil && r.Close > 0 && o.Close > 0:
			if !(math.Abs(o.Close/r.Close-1) <= unlike) {
				return 0, 0, fmt.Errorf("on %s it closes at %g in %s:%d and at %g in %s:%d", o.Time.Format(time.DateOnly), o.Close, o.File, o.Line, r.Close, r.File, r.Line)
			}
			shared++
			if r.HasFactor() && o.HasFactor() && (from.IsZero() || o.Time.Before(from)) {
				scale, from = r.Factor/o.Factor, o.Time
			}
		}
	}
	if len(before) == 0 {
		return 0, shared, nil
	}
	if !(scale > 0) || math.IsInf(scale, 0) {
		return 0, 0, fmt.Errorf("the sources share no day with a factor, on which they could be joined; the source begins on %s", first.Format(time.DateOnly))
	}
	for i := range before {
		r := &before[i]
		r.Factor *= scale
		for _, c := range s.Quoted {
			if !slices.Contains(older.Quoted, c) {
				r.Quote[c] = math.NaN()
			}
		}
	}
	s.Records = append(before, s.Records...)
	return len(before), shared, nil
}
