package backtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/risk"
)

// Record is what happened in a run of T decisions about N assets. Row 0 of what has T+1 rows is the
// close at which the first decision is taken, when all is cash; row t of what has T rows is the
// decision at row t and what it led to at row t+1.
type Record struct {
	Name   string
	Assets []string    // [N]
	Dates  []time.Time // [T+1]
	// Value and Cash [T+1] at the closes, in the market's currency.
	Value, Cash []float64
	// Positions [T+1,N] are shares, Weights [T+1,N] their part of the value.
	Positions, Weights []float64
	// Actions [T,N] are the orders: trading.Buy, Sell and Hold. They include those that were not
	// executed. Where actions are target weights, they are what was bought and sold.
	Actions []int64
	// Tradable [T,N] says what could be traded at the bar of the decision: other orders are none.
	Tradable []trading.Sides
	Trades   []Trade
	// Fees and Turnover [T] are the fees paid and the amounts bought and sold, Skipped [T] the
	// orders that could not be executed.
	Fees, Turnover []float64
	Skipped        []int
	// Bound [T] are the limits on risk that have changed what was traded; nil where the environment
	// has none, and for simulated rules, which keep none.
	Bound []risk.Bounds
	// Endings are the positions in assets that were gone, which account.delisting has made cash of;
	// Kept are the assets [N] that were held though they were gone, at their last price.
	Endings []Ending
	Kept    []bool
	// Rewards [T] are the environment's, simple or logarithmic; those of a simulated rule are
	// P(t+1)/P(t) − 1.
	Rewards []float64
	// LookAhead says that fills were at prices which the decisions had seen: nobody can trade like
	// this.
	LookAhead bool

	// gains [T,N] are the returns of the capital employed in each asset.
	gains []float64
	index bool
}

// Trade is an executed order.
type Trade struct {
	// Date is the bar at whose price it was executed.
	Date time.Time
	// Asset is the column of the record.
	Asset int
	// Side is trading.Buy or trading.Sell. Shares is positive on either side.
	Side          int
	Shares, Price float64
	// Fee was paid on top of, or taken from, Shares·Price.
	Fee float64
	// Factor is that of raw prices at the bar, 0 where nothing happens to positions.
	Factor float64
}

// Ending is a position that was made cash of because its asset was gone.
type Ending struct {
	Date  time.Time // of the bar at which that was known
	Asset int       // the column of the record
	// Shares were held and are paid for with Cash; Price is the last close.
	Shares, Price, Cash float64
}

func newRecord(name string, m *trading.Market, bars trading.Range, lookAhead bool) *Record {
	t, n := bars.Last-bars.First, len(m.Assets)
	return &Record{
		Tradable: slices.Clone(m.Tradable[bars.First*n : bars.Last*n]),
		Name:     name, Assets: slices.Clone(m.Assets), Dates: slices.Clone(m.Dates[bars.First : bars.Last+1]),
		Value: make([]float64, 0, t+1), Cash: make([]float64, 0, t+1), Positions: make([]float64, 0, (t+1)*n), Weights: make([]float64, 0, (t+1)*n),
		Actions: make([]int64, 0, t*n), Fees: make([]float64, 0, t), Turnover: make([]float64, 0, t), Skipped: make([]int, 0, t), Rewards: make([]float64, 0, t),
		LookAhead: lookAhead, gains: make([]float64, 0, t*n),
	}
}

// Steps returns T.
func (r *Record) Steps() int { return len(r.Rewards) }

// Returns [T] are P(t+1)/P(t) − 1, whatever the reward is.
func (r *Record) Returns() []float64 {
	out := make([]float64, r.Steps())
	for t := range out {
		out[t] = r.Value[t+1]/r.Value[t] - 1
	}
	return out
}

// AssetReturns [T,N] are the returns of the capital employed in each asset: with the position worth
// a at the close before, purchases for b and their fees added, and sales for c, their fees taken
// off, that leave a position worth d at the close, (c + d)/(a + b) − 1. They are 0 where nothing is
// held. For accounts that are in or out with all they have, these are the accounts' own returns.
// The result belongs to the record.
func (r *Record) AssetReturns() []float64 { return r.gains }

// AssetReturn returns the column [T] of AssetReturns for asset i.
func (r *Record) AssetReturn(i int) []float64 {
	out, n := make([]float64, r.Steps()), len(r.Assets)
	for t := range out {
		out[t] = r.gains[t*n+i]
	}
	return out
}

// TotalFees returns the sum of the fees.
func (r *Record) TotalFees() float64 { return sum(r.Fees) }

// TotalTurnover returns the sum of the amounts bought and sold.
func (r *Record) TotalTurnover() float64 { return sum(r.Turnover) }

// TotalSkipped returns the number of orders that could not be executed.
func (r *Record) TotalSkipped() (n int) {
	for _, k := range r.Skipped {
		n += k
	}
	return n
}

// BoundBars returns at how many bars each limit on risk has changed what was traded, by the places
// of risk.BoundNames.
func (r *Record) BoundBars() (bars [len(risk.BoundNames)]int) {
	for _, b := range r.Bound {
		for i := range bars {
			bars[i] += int(b >> i & 1)
		}
	}
	return bars
}

// ActionMix returns the shares of buys, sells and holds among the orders for assets that could be
// traded.
func (r *Record) ActionMix() (mix [3]float64) {
	n := 0
	for i, a := range r.Actions {
		if r.Tradable[i] != 0 {
			mix[a]++
			n++
		}
	}
	for i := range mix {
		mix[i] /= float64(max(n, 1))
	}
	return mix
}

func sum(x []float64) (s float64) {
	for _, v := range x {
		s += v
	}
	return s
}

// close appends what is held at the close of a bar.
func (r *Record) close(m *trading.Market, bar int, value, cash float64, positions []float64) error {
	if !(value > 0) || math.IsInf(value, 0) || math.IsNaN(cash) {
		return fmt.Errorf("the portfolio of %s is worth %g on %s, with %g in cash", r.Name, value, m.Dates[bar].Format(time.DateOnly), cash)
	}
	r.Value, r.Cash = append(r.Value, value), append(r.Cash, cash)
	r.Positions = append(r.Positions, positions...)
	n := len(positions)
	for i, q := range positions {
		if q != 0 {
			q *= m.Close[bar*n+i] / value
			if m.Gone != nil && m.Gone[bar*n+i] != 0 {
				if r.Kept == nil {
					r.Kept = make([]bool, n)
				}
				r.Kept[i] = true
			}
		}
		r.Weights = append(r.Weights, q)
	}
	return nil
}

// settle appends the returns of the capital employed from one close to the next, when positions are
// known for both; fills are those of the step.
func (r *Record) settle(m *trading.Market, bar int, fills []trading.Fill, in, out []float64) {
	n := len(in)
	last := len(r.Positions) - n
	before, after := r.Positions[last-n:last], r.Positions[last:]
	for i := range in {
		in[i], out[i] = 0, 0
		if before[i] != 0 {
			in[i] = before[i] * m.Close[bar*n+i]
		}
		if after[i] != 0 {
			out[i] = after[i] * m.Close[(bar+1)*n+i]
		}
	}
	if o, ok := m.Overnight(bar + 1); ok {
		for i, q := range before {
			if q != 0 {
				_, cash := o.Of(i, q, m.Rules != nil)
				if out[i] += cash; o.Ended != nil && o.Ended[i] {
					r.Endings = append(r.Endings, Ending{Date: m.Dates[bar+1], Asset: i, Shares: q, Price: o.Close[i], Cash: cash})
				}
			}
		}
	}
	for _, f := range fills {
		if f.Shares > 0 {
			in[f.Asset] += f.Shares*f.Price + f.Fee
		} else {
			out[f.Asset] += -f.Shares*f.Price - f.Fee
		}
		t := Trade{Date: m.Dates[f.Bar], Asset: f.Asset, Side: trading.Buy, Shares: f.Shares, Price: f.Price, Fee: f.Fee}
		if f.Shares < 0 {
			t.Side, t.Shares = trading.Sell, -f.Shares
		}
		if m.Factor != nil {
			t.Factor = m.Factor[f.Bar*n+f.Asset]
		}
		r.Trades = append(r.Trades, t)
	}
	for i := range in {
		g := 0.0
		if in[i] > 0 {
			g = out[i]/in[i] - 1
		}
		r.gains = append(r.gains, g)
	}
}
