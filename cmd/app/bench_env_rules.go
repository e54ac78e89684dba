package app

import (
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// ruled returns a market as one of Chinese shares under their rule book: on all boards, with prices
// in whole fen, limits, volumes and factors that change once a year.
func ruled(m *trading.Market) (*trading.Market, error) {
	book, n := ashare.Book{}, len(m.Assets)
	codes := []string{"60%04d.SH", "00%04d.SZ", "300%03d.SZ", "688%03d.SH"}
	out := *m
	out.Rules, out.Assets, out.AtOpen = book, make([]string, n), make([]trading.Sides, len(m.Tradable))
	out.Tradable = append([]trading.Sides(nil), m.Tradable...)
	out.Dates = make([]time.Time, len(m.Dates))
	for t, at := range m.Dates {
		out.Dates[t] = at.AddDate(20, 0, 0) // all boards are open
	}
	raw := &trading.RawPrices{Open: make([]float64, len(m.Open)), Close: make([]float64, len(m.Open)), Factor: make([]float64, len(m.Open)), Volume: make([]float64, len(m.Open)), LimitUp: make([]float64, len(m.Open)), LimitDown: make([]float64, len(m.Open))}
	out.Raw = raw
	for i := range n {
		out.Assets[i] = fmt.Sprintf(codes[i%len(codes)], i/len(codes))
		class, err := book.Class(out.Assets[i])
		if err != nil {
			return nil, err
		}
		for at := i; at < len(m.Open); at += n {
			t := at / n
			// Every price was once in lots that pay: 50 is too dear for 1/16 of 10,000.
			factor := math.Pow(1.02, float64((t+i)/250))
			fen := func(price float64) float64 { return math.Round(10*price/factor) / 100 }
			raw.Open[at], raw.Close[at], raw.Factor[at], raw.Volume[at] = fen(m.Open[at]), fen(m.Close[at]), factor, 1e6
			low, high := int64(0), int64(0)
			if t > 0 {
				low, high = book.Limits(class, rules.Share{Day: bars.NewDate(out.Dates[t]), Previous: int64(math.Round(raw.Close[at-n] * raw.Factor[at-n] / factor * 100))})
			}
			raw.LimitDown[at], raw.LimitUp[at] = float64(low)/100, float64(high)/100
			traded := m.Tradable[at] != 0
			out.AtOpen[at] = m.Tradable[at] & trading.SidesAt(traded, raw.Open[at], raw.LimitDown[at], raw.LimitUp[at])
			out.Tradable[at] &= trading.SidesAt(traded, raw.Close[at], raw.LimitDown[at], raw.LimitUp[at])
		}
	}
	return &out, nil
}

// ruledConfig is that of the shipped experiment, with all that costs can be.
func ruledConfig() trading.Config {
	c := trading.Defaults()
	c.InitialCash, c.FeeRate = 1_000_000, 0.00025
	c.Costs = trading.Costs{Minimum: 5, Slippage: trading.Slippage{BP: 2, Impact: trading.SquareRoot, Coefficient: 0.01}, Participation: 0.05}
	return c
}
