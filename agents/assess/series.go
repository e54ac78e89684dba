package assess

import (
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/onnxrl/onnxrl/agents/evaluate"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// Series is the prices of something that is not traded.
type Series struct {
	Name string
	// Note says how its prices are adjusted.
	Note  string
	Dates []time.Time // ascending
	Close []float64
}

// LoadIndex reads the index of a configuration, nil where it names none, from its source or from
// that of the environment's data. Closes are adjusted as the source says.
func LoadIndex(o trading.Opened, c evaluate.Index) (*Series, error) {
	if c.Symbol == "" {
		return nil, nil
	}
	s, err := loadIndex(o, c)
	if err != nil {
		return nil, fmt.Errorf("eval.baselines.index: %w", err)
	}
	return s, nil
}

func loadIndex(o trading.Opened, c evaluate.Index) (*Series, error) {
	data := prepared.Default()
	params, ok := o.Config().(trading.Params)
	if !ok {
		return nil, errors.New("the environment does not say where its data come from; give baselines.index.source")
	}
	if err := params.Data.Decode(&data); err != nil && c.Source.IsZero() {
		return nil, err
	}
	source := data.Source
	if !c.Source.IsZero() {
		source = bars.DefaultSource()
		if err := c.Source.Decode(&source); err != nil {
			return nil, err
		}
	} else if data.Synthetic.Kind != "" {
		return nil, errors.New("the data are synthetic and have no index; give baselines.index.source")
	}
	read, err := bars.Read(source, []string{c.Symbol})
	if err != nil {
		return nil, err
	}
	clean, _, err := bars.Clean(read.Series[0], data.Quality, source.AdjustVolume)
	if err != nil {
		return nil, err
	}
	s := &Series{Name: c.Symbol, Note: read.Adjustment.String()}
	for _, r := range clean.Records {
		s.Dates, s.Close = append(s.Dates, r.Time), append(s.Close, r.Close)
	}
	return s, nil
}

// stale is how many days an index may be without a price before it counts as ended.
const stale = 10

// At returns the last price at each date or before it. A date before the first price, or long after
// the last one, is an error.
func (s *Series) At(dates []time.Time) ([]float64, error) {
	out := make([]float64, len(dates))
	for i, d := range dates {
		n := sort.Search(len(s.Dates), func(k int) bool { return s.Dates[k].After(d) })
		if n == 0 {
			return nil, fmt.Errorf("the index %s has no price on %s or before", s.Name, d.Format(time.DateOnly))
		}
		if s.Dates[n-1].AddDate(0, 0, stale).Before(d) {
			return nil, fmt.Errorf("the index %s has no price between %s and %s", s.Name, s.Dates[n-1].Format(time.DateOnly), d.Format(time.DateOnly))
		}
		out[i] = s.Close[n-1]
	}
	return out, nil
}
