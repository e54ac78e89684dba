package assess

import (
	"fmt"
	"sort"
	"time"
)

// Series is the prices of something that is not traded.
type Series struct {
	Name  string
	Dates []time.Time // ascending
	Close []float64
}

// At returns the last price at each date or before it. A date before the first price is an error.
func (s *Series) At(dates []time.Time) ([]float64, error) {
	out := make([]float64, len(dates))
	for i, d := range dates {
		n := sort.Search(len(s.Dates), func(k int) bool { return s.Dates[k].After(d) })
		if n == 0 {
			return nil, fmt.Errorf("index %s has no price on %s or before", s.Name, d.Format(time.DateOnly))
		}
		out[i] = s.Close[n-1]
	}
	if n := len(s.Dates); n > 0 && len(dates) > 0 && s.Dates[n-1].AddDate(0, 0, 10).Before(dates[len(dates)-1]) {
		return nil, fmt.Errorf("index %s ends on %s, before the split's last date, %s", s.Name, s.Dates[n-1].Format(time.DateOnly), dates[len(dates)-1].Format(time.DateOnly))
	}
	return out, nil
}
