package backtest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// BuyAndHold returns the rule to be in every asset.
func BuyAndHold() Rule { return buyAndHold{} }

type buyAndHold struct{}

func (buyAndHold) Name() string                        { return "equal-weight buy-and-hold" }
func (buyAndHold) Long(*trading.Market, int, int) bool { return true }

// BuyListed returns the rule to be in every asset that can be traded at the first bar, with all of
// the cash, and never in one that is listed later.
func BuyListed() Rule { return &buyListed{} }

type buyListed struct{ in []bool }

func (*buyListed) Name() string { return "buy-and-hold of the listed" }

func (r *buyListed) Long(_ *trading.Market, _, asset int) bool { return r.in[asset] }

// shares implements sharer.
func (r *buyListed) shares(m *trading.Market, first int) []float64 {
	n, count := len(m.Assets), 0
	r.in = make([]bool, n)
	for i := range r.in {
		r.in[i] = m.Tradable[first*n+i] != 0 && m.Member(first, i)
	}
	for _, in := range r.in {
		if in {
			count++
		}
	}
	out := make([]float64, n)
	for i, in := range r.in {
		// Where nothing is listed, all stays cash.
		if count == 0 {
			out[i] = 1 / float64(n)
		} else if in {
			out[i] = 1 / float64(count)
		}
	}
	return out
}

// MovingAverage returns the rule to be in an asset whose close lies above the mean of its last n
// closes, at least 2.
func MovingAverage(n int) (Rule, error) {
	if n < 2 {
		return nil, fmt.Errorf("back-test: a moving average of %d closes, expected at least 2", n)
	}
	return movingAverage{n}, nil
}

type movingAverage struct{ n int }

func (r movingAverage) Name() string { return fmt.Sprintf("MA%d", r.n) }

// Long adds up all closes each time: n is small, and a running sum would drift.
func (r movingAverage) Long(m *trading.Market, bar, asset int) bool {
	if bar < r.n-1 {
		return false
	}
	total, close := 0.0, m.AdjustedClose(bar, asset)
	// The asset must have been tradable at the oldest bar or before it: prices in front of its
	// listing are not real.
	if !listed(m, bar-r.n+1, asset) {
		return false
	}
	for b := bar - r.n + 1; b <= bar; b++ {
		total += m.AdjustedClose(b, asset)
	}
	return close > total/float64(r.n)
}

// listed reports whether an asset could be traded at a bar or at one before it.
func listed(m *trading.Market, bar, asset int) bool {
	for b := bar; b >= 0; b-- {
		if m.Tradable[b*len(m.Assets)+asset] != 0 {
			return true
		}
	}
	return false
}

// Index returns the record of holding a series of prices, one for each date, with all of the cash
// and without costs.
func Index(name string, dates []time.Time, prices []float64, cash float64) (*Record, error) {
	if len(dates) != len(prices) || len(dates) < 2 || !(cash > 0) {
		return nil, fmt.Errorf("back-test index %s: %d dates, %d prices and %g in cash", name, len(dates), len(prices), cash)
	}
	m := &trading.Market{Assets: []string{name}, Dates: dates, Close: prices, Tradable: slices.Repeat([]trading.Sides{trading.Both}, len(dates))}
	r := newRecord(name, m, trading.Range{First: 0, Last: len(dates) - 1}, false)
	r.index = true
	shares := []float64{cash / prices[0]}
	scratch := make([]float64, 2)
	for t, p := range prices {
		if !(p > 0) || math.IsInf(p, 0) {
			return nil, fmt.Errorf("back-test index %s: the price on %s is %g", name, dates[t].Format(time.DateOnly), p)
		}
		if err := r.close(m, t, shares[0]*p, 0, shares); err != nil {
			return nil, fmt.Errorf("back-test index %s: %w", name, err)
		}
		if t == 0 {
			continue
		}
		r.settle(m, t-1, nil, scratch[:1], scratch[1:])
		r.Actions, r.Skipped = append(r.Actions, trading.Hold), append(r.Skipped, 0)
		r.Fees, r.Turnover = append(r.Fees, 0), append(r.Turnover, 0)
		r.Rewards = append(r.Rewards, p/prices[t-1]-1)
	}
	return r, nil
}

// IsIndex reports whether the record is of a series of prices, whose one asset is not among those
// that were traded.
func (r *Record) IsIndex() bool { return r.index }
