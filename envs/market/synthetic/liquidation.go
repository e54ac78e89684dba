package synthetic

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// The columns of Liquidation.
const (
	// Direction is 1 before a rise and -1 before a fall.
	Direction = "direction"
	// Remaining is how many opens there are before it, the next one included, as a part of Days.
	Remaining = "remaining"
)

// Liquidation is a market in which everybody knows when the price changes, and trading at once is
// dear. It rises by Move between the open and the close of every 2·Days-th day, and falls back as
// much Days later; on the other days it goes up or down by Noise, which nothing tells. There are
// thus Days opens to buy at before a rise, and as many to sell at before a fall. The value of what
// is traded on a day is Turnover. The environment must have an impact that is linear in the part of
// it that an order is, without which there is nothing to learn.
//
// The best way to sell is that of Almgren and Chriss (2001, Optimal execution of portfolio
// transactions), and to buy its mirror image: see [Liquidation.Shares].
type Liquidation struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days. Start is the first one; days are weekdays.
	Bars  int       `yaml:"bars"`
	Start bars.Date `yaml:"start"`
	// Days is the number of opens between changes of the price.
	Days int `yaml:"days"`
	// Move is the size of these changes, and Noise that of the others, as fractions of the price.
	Move  float64 `yaml:"move"`
	Noise float64 `yaml:"noise"`
	// Turnover is the value of what the market trades on a day, in its currency.
	Turnover float64 `yaml:"turnover"`
}

// DefaultLiquidation returns five days for what is as much as the market trades on one, with the
// shipped initial cash.
func DefaultLiquidation() Liquidation {
	return Liquidation{Seed: 1, Bars: 3000, Start: date("2000-01-03"), Days: 5, Move: 0.001, Turnover: 10_000}
}

// Validate implements Market.
func (m Liquidation) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, 1)
	p.Check(!m.Start.IsZero(), "start", "must be a date such as 2000-01-03")
	p.AtLeast("days", m.Days, 1)
	p.Check(m.Move > 0 && m.Move <= 0.2, "move", "%g, expected a fraction in (0, 0.2]", m.Move)
	p.Check(m.Noise >= 0 && m.Noise <= 0.2, "noise", "%g, expected a fraction in [0, 0.2]", m.Noise)
	p.Check(m.Turnover > 0 && !math.IsInf(m.Turnover, 0), "turnover", "%g, expected a positive amount", m.Turnover)
	return p.Err()
}

// Generate implements Market.
func (m Liquidation) Generate() *bars.Data {
	root, times := rng.New(m.Seed).Split("liquidation"), days(m.Start, m.Bars)
	noise, shape := root.Split("noise").Stream(), root.Split("shape").Stream()
	records, price := make([]bars.Record, m.Bars), 100.0
	for t := range records {
		// After this day's open so many are left before the next change.
		left, direction := m.Days-1-t%m.Days, 1-2*(t/m.Days%2)
		change := 1 - m.Noise
		if noise.Bernoulli(0.5) {
			change = 1 + m.Noise
		}
		switch {
		case left == 0 && direction > 0:
			change = 1 + m.Move
		case left == 0:
			change = 1 / (1 + m.Move)
		}
		r := &records[t]
		r.Bar = bar(shape, times[t], price, price*change, m.Noise)
		r.Volume = m.Turnover / price
		if left == 0 {
			left, direction = m.Days, -direction
		}
		r.Extra = []float64{float64(direction), float64(left) / float64(m.Days)}
		price *= change
	}
	return data(fmt.Sprintf("synthetic liquidation, seed %d", m.Seed), []bars.Series{{Symbol: symbol(0), Records: records}}, []string{Direction, Remaining})
}

// Shares returns which share of the portfolio is best in the asset after the next open, at the
// close of each bar [T]. Of what is to be sold at n opens, after k of them there is left
//
//	x(k) = sinh(κ(n − k)) / sinh(κn),   2(cosh κ − 1) = λσ²/η,
//
// with the risk aversion λ, the variance σ² of a day, and the cost η of trading all at once, both
// relative to the portfolio's value; without risk aversion, or noise, these are equal parts. Of a
// purchase there is x(n − k) after k opens. The aversion of rewards that are logarithms is 1/2. η
// is the environment's coefficient of impact times the portfolio's value, divided by Turnover.
//
// The environment differs from the paper in this: its impact is temporary, with no permanent part,
// and no fixed one unless there is a fee. A purchase spends an amount and gets the fewer shares for
// it, so that impact is the paper's to the first order only. Shares are of the portfolio's present
// value, which costs make smaller; and η grows with that value, on which equal parts do not depend.
// The price follows a binary walk instead of a normal one of the same variance. Whether Move is
// worth what the purchase and the sale cost is not asked.
func (m Liquidation) Shares(aversion, eta float64, s Seen) ([]float64, error) {
	direction, err := s.column(Direction)
	if err != nil {
		return nil, err
	}
	remaining, err := s.column(Remaining)
	if err != nil {
		return nil, err
	}
	n, kappa := float64(m.Days), math.Acosh(1+aversion*m.Noise*m.Noise/(2*eta))
	left := func(opens float64) float64 {
		if kappa == 0 {
			return opens / n
		}
		return math.Sinh(kappa*opens) / math.Sinh(kappa*n)
	}
	shares := make([]float64, len(direction))
	for t := range shares {
		after := math.Round(remaining[t]*n) - 1
		if shares[t] = left(after); direction[t] > 0 {
			shares[t] = left(n - after)
		}
	}
	return shares, nil
}
