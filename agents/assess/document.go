package assess

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/export/report"
	"github.com/onnxrl/onnxrl/export/report/performance"
)

// About is what a report says of a run besides its records.
type About struct {
	Title      string
	Trials     report.Trials
	Notes      []string
	Provenance []report.KeyValue
	NextSteps  []report.Instruction
	// Seed is where the bootstrap's randomness descends from.
	Seed uint64
}

// The names of the actions, at the places that trading.Buy, Sell and Hold are.
var actionNames = []string{trading.Buy: "buy", trading.Sell: "sell", trading.Hold: "hold"}

// Document returns the assessment in the form of a report: the first agent, its other seeds,
// buy-and-hold, and the other baselines, in this order.
func (a *Assessment) Document(about About) *report.Document {
	d := &report.Document{
		Title: about.Title, Assets: a.Agents[0].Assets, Dates: a.Agents[0].Dates, Actions: actionNames,
		Split:          report.Split{Name: string(a.Split), First: a.Agents[0].Dates[0], Last: a.Agents[0].Dates[len(a.Agents[0].Dates)-1]},
		PeriodsPerYear: a.Config.PeriodsPerYear, PeriodsFrom: a.PeriodsFrom, RiskFree: a.Config.RiskFree, Trials: about.Trials, Provenance: about.Provenance, NextSteps: about.NextSteps,
		Bootstrap: report.Bootstrap{Resamples: a.Config.Bootstrap.Samples, Block: a.Config.Bootstrap.Block, Level: a.Config.Bootstrap.Confidence, Seed: about.Seed},
		Notes:     slices.Concat(a.dataNotes(), a.notes(), about.Notes), LookAhead: a.LookAhead, Seen: a.Seen,
	}
	for i, r := range a.Agents {
		role, note := report.Seed, "trained with another seed"
		if i == 0 {
			role, note = report.Agent, "takes the best action of every head"
			if !a.Config.Deterministic {
				note = "draws its actions from the policy"
			}
		}
		d.Strategies = append(d.Strategies, strategy(r, role, note))
	}
	d.Benchmark = len(d.Strategies)
	d.Strategies = append(d.Strategies, strategy(a.Benchmark, report.Baseline, "an equal share of the cash per stock, bought once and never sold"))
	for _, b := range a.Baselines {
		s := strategy(b.Record, report.Baseline, b.Note)
		s.Group = b.Group
		d.Strategies = append(d.Strategies, s)
	}
	variants := func(name string, list []Variant) (out []report.Variant) {
		for _, v := range list {
			out = append(out, report.Variant{Strategy: name, X: v.X, Value: v.Record.Value})
		}
		return out
	}
	d.Lag = variants(a.Agents[0].Name, a.Lag)
	d.Cost = append(variants(a.Agents[0].Name, a.Costs), variants(a.Benchmark.Name, a.HoldCosts)...)
	return d
}

func strategy(r *backtest.Record, role report.Role, note string) report.Strategy {
	s := report.Strategy{Name: r.Name, Role: role, Note: note, Value: r.Value, Cash: make([]float64, len(r.Cash)), Turnover: r.Turnover, Fees: r.Fees}
	for t, c := range r.Cash {
		s.Cash[t] = c / r.Value[t]
	}
	if r.IsIndex() {
		return s
	}
	s.Weights, s.Actions = r.Weights, make([]int8, len(r.Actions))
	for i, x := range r.Actions {
		s.Actions[i] = int8(x)
		if r.Tradable[i] == 0 {
			s.Actions[i] = -1
		}
	}
	if r.Bound != nil {
		for i, n := range r.BoundBars() {
			s.Limits = append(s.Limits, report.Limit{Name: risk.BoundNames[i], Bars: n})
		}
	}
	for _, f := range r.Trades {
		side := report.Buy
		if f.Side == trading.Sell {
			side = report.Sell
		}
		s.Trades = append(s.Trades, report.Trade{Date: f.Date, Asset: f.Asset, Side: side, Shares: f.Shares, Price: f.Price, Fee: f.Fee, Factor: f.Factor})
	}
	return s
}

// dataNotes are what is known of the data, as sentences.
func (a *Assessment) dataNotes() []string {
	var out []string
	for _, n := range a.DataNotes {
		if !strings.HasPrefix(n, prepared.LookAheadNote) { // The verdict says it already.
			out = append(out, "Data: "+n+".")
		}
	}
	return out
}

// notes are what a reader of any report must know.
func (a *Assessment) notes() []string {
	r, p := a.Agents[0], perAssetOf(a.Agents[0], a.Config)
	b := perAssetOf(a.Benchmark, a.Config)
	out := []string{
		fmt.Sprintf("All numbers in the tables are those of the portfolio. Means over the stocks, as in the paper, of the capital employed in each (stocks that were held at some time): %s %s; equal-weight buy-and-hold %s.", r.Name, p, b),
		a.Rules.CostsText(),
		"The assets were chosen by someone who knew how they would do; what buy-and-hold earns is owed to that choice as well.",
	}
	if a.Rules.Actions == trading.Weights {
		out = append(out, fmt.Sprintf("Actions of %s are target weights of the stocks and the cash; what is shown as its actions is what was bought and sold. Random orders and cash are traded by orders.", r.Name))
	}
	if a.Rules.Account.Prices == trading.Raw {
		known := "Of dividends, splits and rights only the change of a factor is known: it"
		if a.Actions {
			known = "Dividends and bonus shares are booked on their ex-dates as the data have them, before tax; a change of the factor without any"
		}
		out = append(out, "Accounts trade prices as they were quoted (account.prices: raw). "+known+" is booked on its date as shares that are reinvested at once, at the price that it implies and without costs or taxes.")
	}
	for _, x := range []*backtest.Record{r, a.Benchmark} {
		if text := endingsText(x, a.Rules.Account.Delisting); text != "" {
			out = append(out, text)
		}
	}
	if r.Bound != nil {
		out = append(out, limitsText(r))
	}
	if n := unlisted(a.Benchmark); n > 0 {
		out = append(out, fmt.Sprintf("%d of the %d stocks could not be traded on the first date; in buy-and-hold and in the moving averages their share is cash until they can.", n, len(r.Assets)))
	}
	return append(out, OrdersOf(r).text(r.Name))
}

// shownEndings is how many positions in assets that are gone are written out.
const shownEndings = 5

// endingsText says what has become of positions in assets that are gone, empty where there were none.
func endingsText(r *backtest.Record, d *trading.Delisting) string {
	if d == nil {
		var names []string
		for i, kept := range r.Kept {
			if kept {
				names = append(names, r.Assets[i])
			}
		}
		if names == nil {
			return ""
		}
		return fmt.Sprintf("%s held what has no row any more, at its last price, which nobody pays: %s. account.delisting: {} makes cash of it, with %g of that price (Shumway 1997).", r.Name, strings.Join(names, ", "), trading.DefaultRecovery)
	}
	if len(r.Endings) == 0 {
		return ""
	}
	var parts []string
	lost := 0.0
	for i, e := range r.Endings {
		if lost += e.Shares*e.Price - e.Cash; i < shownEndings {
			parts = append(parts, fmt.Sprintf("%s on %s, %.6g shares at %g of %.6g", r.Assets[e.Asset], e.Date.Format(time.DateOnly), e.Shares, d.Recovery, e.Price))
		}
	}
	if n := len(r.Endings) - shownEndings; n > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", n))
	}
	source := ""
	if d.Recovery == trading.DefaultRecovery {
		source = ", the mean of stocks that the NYSE and the AMEX delisted for their performance (Shumway 1997)"
	}
	return fmt.Sprintf("account.delisting made cash of %s of %s in stocks that had no row any more, for %g of the last price%s, which lost %.2f: %s.", plural(len(r.Endings), "position"), r.Name, d.Recovery, source, lost, strings.Join(parts, "; "))
}

// limitsText says what the limits on risk have done.
func limitsText(r *backtest.Record) string {
	var parts []string
	for i, n := range r.BoundBars() {
		if name := risk.BoundNames[i]; n > 0 && 1<<i == risk.Unsold {
			parts = append(parts, fmt.Sprintf("at %d bars something that a limit demands to be sold could not be", n))
		} else if n > 0 {
			parts = append(parts, fmt.Sprintf("%s at %d", name, n))
		}
	}
	if parts == nil {
		parts = []string{"none"}
	}
	return fmt.Sprintf("Limits on risk (risk) that have changed what %s traded, of %d bars: %s. Buy-and-hold and moving averages keep none; random orders and cash do.", r.Name, len(r.Bound), strings.Join(parts, ", "))
}

// String returns the four metrics in words.
func (p PerAsset) String() string {
	return fmt.Sprintf("total return %.2f %%, Sharpe %s, volatility %.2f %%, maximum drawdown %.2f %% (%d stocks)", p.TotalReturn*100, show(float64(p.Sharpe), performance.Ratio), p.Volatility*100, p.MaxDrawdown*100, p.Assets)
}

// unlisted counts the assets that could not be traded on the first date.
func unlisted(r *backtest.Record) (n int) {
	for _, s := range r.Tradable[:len(r.Assets)] {
		if s == 0 {
			n++
		}
	}
	return n
}
