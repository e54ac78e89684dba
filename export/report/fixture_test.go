package report_test

import (
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// weekdays gives n dates from Monday to Friday.
func weekdays(first string, n int) []time.Time {
	d, err := time.Parse(time.DateOnly, first)
	if err != nil {
		panic(err)
	}
	var all []time.Time
	for ; len(all) < n; d = d.AddDate(0, 0, 1) {
		if d.Weekday() != time.Saturday && d.Weekday() != time.Sunday {
			all = append(all, d)
		}
	}
	return all
}

// record is a strategy that holds random weights of assets with a common market, mean and deviation
// per day.
func record(key rng.Key, name string, role report.Role, assets int, market []float64, beta, mean, deviation float64) report.Strategy {
	s := key.Split(name).Stream()
	t := len(market)
	r := report.Strategy{Name: name, Role: role, Value: make([]float64, t+1), Cash: make([]float64, t+1), Weights: make([]float64, (t+1)*assets), Actions: make([]int8, t*assets), Turnover: make([]float64, t), Fees: make([]float64, t)}
	w := make([]float64, assets+1)
	for i := range w {
		w[i] = s.Exp()
	}
	r.Value[0] = 10000
	for i := range t + 1 {
		if i > 0 {
			r.Value[i] = r.Value[i-1] * (1 + beta*market[i-1] + mean + deviation*s.Normal())
			r.Turnover[i-1] = 0.05 * r.Value[i-1]
			r.Fees[i-1] = r.Turnover[i-1] * 0.0005
		}
		sum := 0.0
		for k := range w {
			w[k] *= math.Exp(0.08 * s.Normal())
			sum += w[k]
		}
		r.Cash[i] = w[assets] / sum
		for k := range assets {
			r.Weights[i*assets+k] = w[k] / sum
		}
	}
	for i := range r.Actions {
		u := s.Float64()
		switch {
		case u < 0.2:
			r.Actions[i] = 1
		case u < 0.35:
			r.Actions[i] = 2
		}
	}
	return r
}

// sample is a document with the given numbers of assets, returns and strategies; drift is what the
// agent earns a day above the market.
func sample(assets, returns, strategies int, drift float64) report.Document {
	key := rng.New(7)
	s := key.Split("market").Stream()
	market := make([]float64, returns)
	for i := range market {
		market[i] = 0.0004 + 0.011*s.Normal()
	}
	d := report.Document{
		Title: "QTMRL on sixteen US stocks", Split: report.Split{Name: "test"}, Dates: weekdays("2019-01-02", returns+1), Actions: []string{"hold", "buy", "sell"}, Benchmark: 1,
		Trials:     report.Trials{Count: 12, Counted: "four checkpoints of three seeds were evaluated on this split."},
		Provenance: []report.KeyValue{{"data", "16 assets, SHA-256 ab12…"}, {"code", "a0e281a"}, {"configuration", "configs/experiments/qtmrl.yaml, seed 42"}},
		NextSteps:  []report.Instruction{{"Train longer:", "onnxrl train configs/experiments/qtmrl.yaml --set train.env_steps=1000000"}},
		Notes:      []string{"The universe was chosen with hindsight: all of these stocks still trade."},
	}
	names := []string{"AAPL", "MSFT", "NVDA", "CVX", "OXY", "AAL", "UAL", "DAL", "CCL", "RCL", "WYNN", "LVS", "AXP", "BAC", "JNJ", "GOOGL"}
	for i := range assets {
		d.Assets = append(d.Assets, names[i%len(names)])
	}
	d.Strategies = append(d.Strategies, record(key, "A2C agent", report.Agent, assets, market, 0.8, drift, 0.005))
	others := []string{"equal-weight buy-and-hold", "MA10 rule", "MA20 rule", "MA30 rule", "random 42", "random 43", "random 44", "random 45", "random 46", "cash"}
	for i := 1; i < strategies; i++ {
		name := others[(i-1)%len(others)]
		if i > len(others) {
			name = fmt.Sprintf("%s %d", name, i)
		}
		d.Strategies = append(d.Strategies, record(key, name, report.Baseline, assets, market, 1/(1+0.2*float64(i-1)), 0, 0.002*float64(i)))
	}
	price := make([]float64, assets)
	stream := key.Split("trades").Stream()
	for i := range price {
		price[i] = 20 + 100*stream.Float64()
	}
	for t := range returns {
		for i := range price {
			price[i] *= 1 + 0.015*stream.Normal()
			if stream.Bernoulli(0.2) {
				side := report.Buy
				if stream.Bernoulli(0.4) {
					side = report.Sell
				}
				shares := 1 + 5*stream.Float64()
				d.Strategies[0].Trades = append(d.Strategies[0].Trades, report.Trade{Date: d.Dates[t+1], Asset: i, Side: side, Shares: shares, Price: price[i], Fee: shares * price[i] * 0.0005})
			}
		}
	}
	for _, x := range []float64{0, 5, 10, 20, 30, 50} {
		for k := range 2 {
			st := &d.Strategies[k]
			v := make([]float64, len(st.Value))
			for t := range v {
				v[t] = st.Value[t] * math.Exp(-x*1e-4*0.05*float64(t)*(1-0.9*float64(k)))
			}
			d.Cost = append(d.Cost, report.Variant{Strategy: st.Name, X: x, Value: v})
		}
	}
	d.Lag = []report.Variant{{Strategy: "A2C agent", X: 0, Value: d.Strategies[0].Value}, {Strategy: "A2C agent", X: 1, Value: record(key, "lagged", report.Agent, assets, market, 0.8, 0.1*drift, 0.005).Value}}
	return d
}
