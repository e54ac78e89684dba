package synthetic

import (
	"fmt"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// LimitTrap is a market in which what rises is hard to get out of. On calm days a run begins with
// probability Begin: the price rises by Rise, from open to close, else it falls by as much as makes
// the mean of all moves 0. After the first day of a run it breaks with probability Hazard, after
// the second with twice that, up to the sixth; until then it rises by Rise each day. When it
// breaks, the price opens at its lower limit, Limit below the close before, on Locked days one
// after the other, and stays there: nobody can sell, neither at the open of these days nor for the
// next one at the close of the last. Then it is calm again.
//
// Most days of a run are followed by another rise, and whoever buys on the way up is right most of
// the time and loses. The best policy is there before a run begins, and gone while it can sell.
type LimitTrap struct {
	// Seed is where all randomness descends from.
	Seed uint64 `yaml:"seed"`
	// Bars is the number of days, Assets the number of assets, each with its own runs. Start is the
	// first day; days are weekdays.
	Bars   int       `yaml:"bars"`
	Assets int       `yaml:"assets"`
	Start  bars.Date `yaml:"start"`
	// Begin is the probability of a run, and Hazard what the probability that it breaks grows by on
	// each of its days.
	Begin  float64 `yaml:"begin"`
	Hazard float64 `yaml:"hazard"`
	// Rise is the size of a run's moves, and Limit that of the falls, as fractions of the price.
	Rise  float64 `yaml:"rise"`
	Limit float64 `yaml:"limit"`
	// Locked is the number of falls.
	Locked int `yaml:"locked"`
}

// trapRun is the number of days after which the hazard of a run does not grow any more.
const trapRun = 6

// DefaultLimitTrap returns one asset whose runs of 4 % a day end in two falls of 10 %.
func DefaultLimitTrap() LimitTrap {
	return LimitTrap{Seed: 1, Bars: 3000, Assets: 1, Start: date("2000-01-03"), Begin: 0.1, Hazard: 0.05, Rise: 0.04, Limit: 0.1, Locked: 2}
}

// Validate implements Market.
func (m LimitTrap) Validate() error {
	var p configs.Problems
	checkSize(&p, m.Bars, m.Assets)
	p.Check(!m.Start.IsZero(), "start", "must be a date such as 2000-01-03")
	p.Check(m.Begin > 0 && m.Begin <= 0.5, "begin", "%g, expected a probability in (0, 0.5]", m.Begin)
	p.Check(m.Hazard > 0 && m.Hazard <= 1.0/trapRun, "hazard", "%g, expected a probability in (0, 1/%d]", m.Hazard, trapRun)
	p.Check(m.Limit > 0 && m.Limit <= 0.3, "limit", "%g, expected a fraction in (0, 0.3]", m.Limit)
	p.Check(m.Rise > 0 && m.Rise < m.Limit, "rise", "%g, expected a fraction below the limit of %g", m.Rise, m.Limit)
	p.Check(m.Locked >= 1 && m.Locked <= 10, "locked", "%d, expected 1 to 10", m.Locked)
	if calm := m.calm(); p.Err() == nil {
		p.Check(calm < 0 && calm > -m.Limit, "locked", "%d falls, for which other days move by %g; expected a fall within the limit", m.Locked, calm)
	}
	return p.Err()
}

// calm is the move of a day on which no run begins. Of these there are (1 − Begin)/Begin for a run.
func (m LimitTrap) calm() float64 {
	rises, lasts := 0.0, 1.0
	for k := 1; k < trapRun; k++ {
		rises += lasts
		lasts *= 1 - float64(m.Hazard*float64(k))
	}
	rises += lasts / (m.Hazard * trapRun)
	return (float64(float64(m.Locked)*m.Limit) - float64(rises*m.Rise)) * m.Begin / (1 - m.Begin)
}

// The states: 0 is calm, those up to trapRun days of a run, and those beyond it days that were
// locked.
func (m LimitTrap) next(state int, draw func(p float64) bool) int {
	switch {
	case state == 0:
		if draw(m.Begin) {
			return 1
		}
		return 0
	case state <= trapRun:
		if draw(m.Hazard * float64(state)) {
			return trapRun + 1
		}
		return min(state+1, trapRun)
	case state < trapRun+m.Locked:
		return state + 1
	}
	if draw(m.Begin) {
		return 1
	}
	return 0
}

// Generate implements Market.
func (m LimitTrap) Generate() *bars.Data {
	root, times := rng.New(m.Seed).Split("limit_trap"), days(m.Start, m.Bars)
	series := make([]bars.Series, m.Assets)
	for n := range series {
		draws, shape := root.Split("move", n).Stream(), root.Split("shape", n).Stream()
		records, price, state := make([]bars.Record, m.Bars), 100.0, 0
		for t := range records {
			state = m.next(state, draws.Bernoulli)
			open, closing := price, price*(1+m.calm())
			up, down := price*(1+m.Limit), price*(1-m.Limit)
			if state > 0 {
				closing = price * (1 + m.Rise)
			}
			// Nothing is traded beyond the limits, and on a locked day at one price.
			r := &records[t]
			r.Bar = bar(shape, times[t], open, closing, m.Rise)
			r.High, r.Low = min(r.High, up), max(r.Low, down)
			if state > trapRun {
				closing = down
				r.Open, r.High, r.Low, r.Close = down, down, down, down
			}
			r.Quote[bars.PrevClose], r.Quote[bars.LimitUp], r.Quote[bars.LimitDown] = price, up, down
			price = closing
		}
		series[n] = bars.Series{Symbol: symbol(n), Records: records, Quoted: []bars.QuoteColumn{bars.PrevClose, bars.LimitUp, bars.LimitDown}}
	}
	return data(fmt.Sprintf("synthetic limit_trap, seed %d", m.Seed), series, nil)
}

// Chain implements Known: the states are calm, the days of a run, and the days that were locked,
// after which nothing can be sold.
func (m LimitTrap) Chain() *Chain {
	locked := Closed{Sell: true}
	c := &Chain{
		Moves:  []Move{{{Day: m.calm()}}, {{Day: m.Rise}}, {{Night: -m.Limit, Closed: locked}}},
		Next:   make([][]Branch, trapRun+m.Locked+1),
		Closed: make([]Closed, trapRun+m.Locked+1),
	}
	for s := range c.Next {
		for _, drawn := range []bool{true, false} {
			p := 0.0
			if drawn {
				p = 1 // where nothing is drawn
			}
			to := m.next(s, func(q float64) bool {
				if p = q; !drawn {
					p = 1 - q
				}
				return drawn
			})
			move := 0
			switch {
			case to > trapRun:
				move, c.Closed[to] = 2, locked
			case to > 0:
				move = 1
			}
			if p > 0 {
				c.Next[s] = append(c.Next[s], Branch{p, move, to})
			}
		}
	}
	return c
}

// States implements Known. Before the first day is a calm one.
func (m LimitTrap) States(s Seen) ([]float64, error) {
	states, state := make([]float64, len(s.Close)), 0
	for t := range states {
		switch {
		case s.Close[t] == s.Open[t]:
			state = min(max(state, trapRun), trapRun+m.Locked-1) + 1
		case !s.rises(t):
			state = 0
		case state > trapRun:
			state = 1
		default:
			state = min(state+1, trapRun)
		}
		states[t] = float64(state)
	}
	return states, nil
}
