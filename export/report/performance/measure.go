package performance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"
)

// Input is the record of one strategy. The slices are read only.
type Input struct {
	Dates          []time.Time // [T+1], ascending
	Value          []float64   // [T+1], finite, not negative, the first positive
	Benchmark      []float64   // [T+1] values of the benchmark, or nil
	Cash           []float64   // [T+1] share of the value held in cash, or nil where unknown
	Turnover       []float64   // [T] money traded, purchases and sales added, or nil where unknown
	Fees           []float64   // [T] money paid, or nil where unknown
	PeriodsPerYear float64     // returns in a year; FrequencyOf recognises it
	RiskFree       float64     // rate per year, compounded
}

// Unit says how a number is shown.
type Unit string

// The units of metrics.
const (
	Percent Unit = "percent" // a fraction, shown times 100
	Ratio   Unit = "ratio"
	Days    Unit = "days" // of the calendar
	Count   Unit = "count"
)

// Group is a heading of the table of metrics.
type Group string

// The groups of metrics, in the order of the table.
const (
	Return    Group = "Return"
	Risk      Group = "Risk"
	Adjusted  Group = "Risk-adjusted"
	Wins      Group = "Wins and losses"
	Activity  Group = "Activity"
	Benchmark Group = "Against the benchmark"
	Recent    Group = "Recent"
)

// Definition describes a metric.
type Definition struct {
	Key        string `json:"key"` // stable
	Name       string `json:"name"`
	Group      Group  `json:"group"`
	Unit       Unit   `json:"unit"`
	Convention string `json:"convention"` // what exactly the number is
}

// Metric is a definition with its value.
type Metric struct {
	*Definition
	Value Number
}

// Metrics are all metrics of a record, in the order of the table. Their JSON form is an object of
// values by key, in that order.
type Metrics []Metric

// Get returns the value with a key, and NaN where there is none.
func (m Metrics) Get(key string) float64 {
	for i := range m {
		if m[i].Key == key {
			return float64(m[i].Value)
		}
	}
	return math.NaN()
}

// MarshalJSON implements json.Marshaler.
func (m Metrics) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	out.WriteByte('{')
	for i := range m {
		value, err := json.Marshal(m[i].Value)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out.WriteByte(',')
		}
		fmt.Fprintf(&out, "%q:%s", m[i].Key, value)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// UnmarshalJSON implements json.Unmarshaler. Keys that have no definition are left out, and
// definitions that have no key.
func (m *Metrics) UnmarshalJSON(text []byte) error {
	var values map[string]Number
	if err := json.Unmarshal(text, &values); err != nil {
		return fmt.Errorf("decode metrics: %w", err)
	}
	*m = nil
	for i := range table {
		if v, ok := values[table[i].Key]; ok {
			*m = append(*m, Metric{&table[i].Definition, v})
		}
	}
	return nil
}

// Definitions lists all metrics in the order of the table.
func Definitions() []Definition {
	all := make([]Definition, len(table))
	for i := range table {
		all[i] = table[i].Definition
	}
	return all
}

// Measure computes every metric of a record.
func Measure(in Input) (Metrics, error) {
	if err := in.check(); err != nil {
		return nil, fmt.Errorf("measure performance: %w", err)
	}
	s := newSample(in)
	m := make(Metrics, len(table))
	for i := range table {
		v := table[i].of(s)
		if math.IsInf(v, 0) {
			v = math.NaN()
		}
		m[i] = Metric{&table[i].Definition, Number(v)}
	}
	return m, nil
}

func (in *Input) check() error {
	n := len(in.Value)
	switch {
	case n < 2:
		return fmt.Errorf("%d values, expected at least 2", n)
	case len(in.Dates) != n:
		return fmt.Errorf("%d dates for %d values", len(in.Dates), n)
	case !(in.PeriodsPerYear > 0) || math.IsInf(in.PeriodsPerYear, 0):
		return fmt.Errorf("periods_per_year is %g, expected a positive number", in.PeriodsPerYear)
	case !(in.RiskFree > -1) || math.IsInf(in.RiskFree, 0):
		return fmt.Errorf("risk_free is %g, expected a rate per year above -1", in.RiskFree)
	}
	for t := 1; t < n; t++ {
		if !in.Dates[t].After(in.Dates[t-1]) {
			return fmt.Errorf("date %d, %s, is not after the one before", t, in.Dates[t].Format(time.DateOnly))
		}
	}
	for _, c := range []struct {
		name string
		x    []float64
		want int
	}{{"value", in.Value, n}, {"benchmark", in.Benchmark, n}, {"cash", in.Cash, n}, {"turnover", in.Turnover, n - 1}, {"fees", in.Fees, n - 1}} {
		if c.x == nil {
			continue
		}
		if len(c.x) != c.want {
			return fmt.Errorf("%s has %d numbers, expected %d", c.name, len(c.x), c.want)
		}
		for t, v := range c.x {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("%s is %g at %s, expected a finite number that is not negative", c.name, v, in.Dates[t].Format(time.DateOnly))
			}
		}
	}
	if in.Value[0] == 0 || in.Benchmark != nil && in.Benchmark[0] == 0 {
		return errors.New("the first value is 0, expected a positive number")
	}
	return nil
}

// sample is what the metrics of one record are computed from.
type sample struct {
	Input
	r, excess   []float64 // [T]
	day         []float64 // returns of days, r where bars are not shorter
	bench, over []float64 // [T] returns and excess returns of the benchmark, nil without one
	years, root float64   // length of the record by the calendar; √PeriodsPerYear
	daysPerYear float64   // PeriodsPerYear where bars are longer than a day
	months      []float64
	quarters    []float64
	calendar    []float64 // returns of calendar years
	drawdowns   []Drawdown
	underwater  []float64 // [T+1]
}

func newSample(in Input) *sample {
	s := &sample{Input: in, r: Returns(in.Value), root: math.Sqrt(in.PeriodsPerYear)}
	rate := PerPeriod(in.RiskFree, in.PeriodsPerYear)
	s.excess = Excess(s.r, rate)
	if in.Benchmark != nil {
		s.bench = Returns(in.Benchmark)
		s.over = Excess(s.bench, rate)
	}
	s.years = Years(in.Dates)
	s.day = DailyReturns(in.Dates, in.Value)
	s.daysPerYear = in.PeriodsPerYear * float64(len(s.day)) / float64(len(s.r))
	s.months = spanReturns(Spans(in.Dates, in.Value, 1))
	s.quarters = spanReturns(Spans(in.Dates, in.Value, 3))
	s.calendar = spanReturns(Spans(in.Dates, in.Value, 12))
	s.drawdowns = Drawdowns(in.Value)
	s.underwater = Underwater(in.Value)
	return s
}

// against is a metric that needs a benchmark.
func against(f func(s *sample) float64) func(s *sample) float64 {
	return func(s *sample) float64 {
		if s.bench == nil {
			return math.NaN()
		}
		return f(s)
	}
}

// trailing is the return since the date some months before the last one, per year where that is
// more than 12.
func trailing(months int) func(s *sample) float64 {
	return func(s *sample) float64 {
		last := s.Dates[len(s.Dates)-1]
		y, m, d := last.Date()
		// The day is kept within the month: three months before 31 May is the end of February.
		day := min(d, time.Date(y, m-time.Month(months)+1, 0, 0, 0, 0, 0, time.UTC).Day())
		r := Since(s.Dates, s.Value, time.Date(y, m-time.Month(months), day+1, 0, 0, 0, 0, last.Location()))
		if months > 12 {
			r = math.Pow(1+r, 12/float64(months)) - 1
		}
		return r
	}
}

// geometric is the compound return per part.
func geometric(total float64, parts int) float64 {
	if parts == 0 {
		return math.NaN()
	}
	return math.Pow(1+total, 1/float64(parts)) - 1
}

func largest(x []float64) float64 {
	m := math.NaN()
	for _, v := range x {
		if !(v <= m) {
			m = v
		}
	}
	return m
}

func smallest(x []float64) float64 {
	m := math.NaN()
	for _, v := range x {
		if !(v >= m) {
			m = v
		}
	}
	return m
}
