package report

import (
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/export/report/performance"
)

// Document is what a report is about. T is the number of decisions and N that of assets. Nothing in
// it is changed.
type Document struct {
	Title          string
	Assets         []string // [N]
	Split          Split
	Dates          []time.Time // [T+1], ascending; value t is at Dates[t], decision t was taken there
	Strategies     []Strategy  // the first is the agent
	Benchmark      int         // index into Strategies of equal-weight buy-and-hold, which every report must have
	Actions        []string    // names of the action codes, such as hold, buy, sell
	PeriodsPerYear float64     // returns in a year; 0 recognises it from Dates
	PeriodsFrom    string      // what PeriodsPerYear is made of and where it is from, such as "252 trading days a year"
	RiskFree       float64     // rate per year
	Trials         Trials
	Lag            []Variant     // the agent with its decisions delayed; X is the delay in bars
	Cost           []Variant     // strategies under other fees; X is the fee of one side in basis points
	LookAhead      []string      // what in this run knows the future, one sentence each; empty if nothing does
	Seen           []string      // what of these data the agent was trained on or chosen by, one sentence each; empty out of sample
	Notes          []string      // what a reader must know, one sentence each
	Bootstrap      Bootstrap     // zero for the defaults
	Provenance     []KeyValue    // data, code, configuration, in this order
	NextSteps      []Instruction // what to run next
}

// Split names the part of the data that the records cover.
type Split struct {
	Name        string // train, valid, test
	First, Last time.Time
}

// Role says what a strategy is in a comparison.
type Role string

// The roles.
const (
	Agent    Role = "agent"
	Baseline Role = "baseline"
	Seed     Role = "seed" // the agent trained with another seed
)

// Strategy is one record. Slices other than Value may be nil where they are unknown.
type Strategy struct {
	Name     string
	Role     Role
	Note     string    // one line, such as the rule of a baseline
	Group    string    // of baselines that differ by their seed; curves draw them alike
	Value    []float64 // [T+1] worth of the portfolio, in money
	Cash     []float64 // [T+1] share of the value
	Weights  []float64 // [(T+1)*N] shares of the value, row by row
	Actions  []int8    // [T*N] codes, row by row; a negative code is no decision, as for an asset that is not listed
	Turnover []float64 // [T] money traded, purchases and sales added
	Fees     []float64 // [T] money paid
	Trades   []Trade   // in order of time
	Limits   []Limit   // on risk
}

// Limit is a limit on risk and the number of bars at which it has changed what was traded.
type Limit struct {
	Name string `json:"name"`
	Bars int    `json:"bars"`
}

// Side says whether shares were bought or sold.
type Side string

// The sides of a trade.
const (
	Buy  Side = "buy"
	Sell Side = "sell"
)

// Trade is one fill.
type Trade struct {
	Date   time.Time
	Asset  int // index into Document.Assets
	Side   Side
	Shares float64 // > 0
	Price  float64
	Fee    float64 // money
	// Factor makes shares of several dates comparable: Shares/Factor of a position that dividends
	// and splits were reinvested in stay the same. 0 is 1.
	Factor float64
}

// Trials is what the best run was chosen from.
type Trials struct {
	Count          int     // runs whose result was looked at, the reported one included; 0 is 1
	SharpeVariance float64 // of their Sharpe ratios per period; 0 if unknown
	Counted        string  // how they were counted, one sentence
}

// Variant is a record under another assumption.
type Variant struct {
	Strategy string  // its name in Strategies
	X        float64 // the assumption as a number
	Value    []float64
}

// Bootstrap configures the intervals.
type Bootstrap struct {
	Resamples int     // 0 is 2000
	Block     float64 // mean length in returns; 0 is chosen from the records
	Level     float64 // 0 is 0.95
	Seed      uint64
}

// KeyValue is a line of the provenance.
type KeyValue struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// Instruction is a thing to do and the command that does it.
type Instruction struct {
	Text    string `json:"text"`
	Command string `json:"command"`
}

// defaults returns the document with zero settings replaced.
func (d Document) defaults() Document {
	if d.PeriodsPerYear == 0 {
		f := performance.FrequencyOf(d.Dates)
		d.PeriodsPerYear, d.PeriodsFrom = f.PeriodsPerYear, f.String()+", by the timestamps"
	}
	if d.Trials.Count == 0 {
		d.Trials.Count = 1
	}
	if d.Bootstrap.Resamples == 0 {
		d.Bootstrap.Resamples = 2000
	}
	if d.Bootstrap.Level == 0 {
		d.Bootstrap.Level = 0.95
	}
	return d
}

// Validate reports everything that is wrong with the document.
func (d *Document) Validate() error {
	var all []error
	fail := func(format string, args ...any) { all = append(all, fmt.Errorf(format, args...)) }
	if len(d.Dates) < 3 {
		fail("%d dates, expected at least 3", len(d.Dates))
	}
	for t := 1; t < len(d.Dates); t++ {
		if !d.Dates[t].After(d.Dates[t-1]) {
			fail("date %d, %s, is not after the one before", t, d.Dates[t].Format(time.DateOnly))
			break
		}
	}
	if len(d.Strategies) == 0 {
		fail("no strategies, expected the agent first")
	} else if d.Strategies[0].Role != Agent {
		fail("the first strategy, %q, has the role %q, expected %q", d.Strategies[0].Name, d.Strategies[0].Role, Agent)
	}
	if d.Benchmark < 1 || d.Benchmark >= len(d.Strategies) {
		fail("the benchmark is strategy %d, expected one of the %d after the agent: without equal-weight buy-and-hold nothing can be said", d.Benchmark, max(len(d.Strategies)-1, 0))
	}
	if p := d.PeriodsPerYear; !(p >= 0) || math.IsInf(p, 0) {
		fail("periods per year is %g, expected a positive number", p)
	}
	if !(d.RiskFree > -1) || math.IsInf(d.RiskFree, 0) {
		fail("the risk-free rate is %g per year, expected more than -1", d.RiskFree)
	}
	if v := d.Trials.SharpeVariance; d.Trials.Count < 0 || !(v >= 0) || math.IsInf(v, 0) {
		fail("%d trials with a variance of %g, expected numbers that are not negative", d.Trials.Count, v)
	}
	if b := d.Bootstrap; b.Resamples < 0 || !(b.Block >= 0) || !(b.Level >= 0 && b.Level < 1) {
		fail("bootstrap with %d resamples, blocks of %g and level %g, expected numbers that are not negative and a level below 1", b.Resamples, b.Block, b.Level)
	}
	names := map[string]bool{}
	for i := range d.Strategies {
		s := &d.Strategies[i]
		if s.Name == "" || names[s.Name] {
			fail("strategy %d is called %q, expected a name of its own", i, s.Name)
		}
		names[s.Name] = true
		if s.Role != Baseline && s.Role != Seed && (i > 0 || s.Role != Agent) {
			fail("strategy %q has the role %q, expected %q or %q", s.Name, s.Role, Baseline, Seed)
		}
		if err := s.check(len(d.Dates), len(d.Assets), len(d.Actions)); err != nil {
			fail("strategy %q: %w", s.Name, err)
		}
	}
	for _, list := range []struct {
		name     string
		variants []Variant
	}{{"lag", d.Lag}, {"cost", d.Cost}} {
		for i, v := range list.variants {
			if !names[v.Strategy] {
				fail("%s variant %d names the strategy %q, which is not there", list.name, i, v.Strategy)
			}
			if math.IsNaN(v.X) || math.IsInf(v.X, 0) {
				fail("%s variant %d is at %g", list.name, i, v.X)
			}
			if err := checkValues("value", v.Value, len(d.Dates)); err != nil {
				fail("%s variant %d of %q: %w", list.name, i, v.Strategy, err)
			}
		}
	}
	if len(all) > 0 {
		return fmt.Errorf("report: %w", errors.Join(all...))
	}
	return nil
}

// check compares a record's slices with the numbers of dates, assets and action codes.
func (s *Strategy) check(dates, assets, codes int) error {
	if err := checkValues("value", s.Value, dates); err != nil {
		return err
	}
	for _, c := range []struct {
		name string
		x    []float64
		want int
	}{{"cash", s.Cash, dates}, {"weights", s.Weights, dates * assets}, {"turnover", s.Turnover, dates - 1}, {"fees", s.Fees, dates - 1}} {
		if c.x == nil {
			continue
		}
		if len(c.x) != c.want {
			return fmt.Errorf("%s has %d numbers, expected %d", c.name, len(c.x), c.want)
		}
		for i, v := range c.x {
			if !(v >= 0) || math.IsInf(v, 0) {
				return fmt.Errorf("%s[%d] is %g, expected a finite number that is not negative", c.name, i, v)
			}
		}
	}
	if s.Actions != nil && len(s.Actions) != (dates-1)*assets {
		return fmt.Errorf("%d actions, expected %d", len(s.Actions), (dates-1)*assets)
	}
	for i, a := range s.Actions {
		if int(a) >= codes {
			return fmt.Errorf("action %d has the code %d, and %d codes are named", i, a, codes)
		}
	}
	for i, t := range s.Trades {
		switch {
		case t.Asset < 0 || t.Asset >= assets:
			return fmt.Errorf("trade %d is of asset %d, and there are %d", i, t.Asset, assets)
		case t.Side != Buy && t.Side != Sell:
			return fmt.Errorf("trade %d has the side %q, expected %q or %q", i, t.Side, Buy, Sell)
		case !(t.Shares > 0) || !(t.Price >= 0) || !(t.Fee >= 0) || math.IsInf(t.Shares, 0) || math.IsInf(t.Price, 0) || math.IsInf(t.Fee, 0):
			return fmt.Errorf("trade %d is %g shares at %g with a fee of %g, expected finite numbers that are not negative", i, t.Shares, t.Price, t.Fee)
		case i > 0 && t.Date.Before(s.Trades[i-1].Date):
			return fmt.Errorf("trade %d is of %s, before the one that precedes it", i, t.Date.Format(time.DateOnly))
		}
	}
	return nil
}

func checkValues(name string, x []float64, want int) error {
	if len(x) != want {
		return fmt.Errorf("%s has %d numbers, expected %d, one for each date", name, len(x), want)
	}
	for t, v := range x {
		if !(v >= 0) || math.IsInf(v, 0) || t == 0 && v == 0 {
			return fmt.Errorf("%s[%d] is %g, expected a finite number that is not negative, and a positive one at the start", name, t, v)
		}
	}
	return nil
}
