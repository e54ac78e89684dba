package audit_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/market/ashare"
	"github.com/onnxrl/onnxrl/envs/market/ashare/audit"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/live"
	"github.com/onnxrl/onnxrl/envs/market/prepared"
	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
	"github.com/onnxrl/onnxrl/envs/market/trading/feed"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/sorted"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var symbols = []string{"600000.SH", "000001.SZ", "300001.SZ", "688001.SH", "430001.BJ", "600001.SH"}

// write makes bars of shares of all boards around the change of ChiNext, the circuit breaker or the
// year 2021: within the limits of their days and often at them, with suspensions, dividends, a
// share under risk warning and one that is listed late. With limits it has columns of them, and
// with actions columns of dividends and bonus shares for ten held.
func write(from time.Time, days int, limits, actions bool) string {
	s := rng.New(uint64(from.Unix())).Stream()
	text := new(strings.Builder)
	fmt.Fprint(text, "date,symbol,open,high,low,close,preclose,volume,adj_factor,isST")
	if limits {
		fmt.Fprint(text, ",limit_up,limit_down")
	}
	if actions {
		fmt.Fprint(text, ",cash,new")
	}
	fmt.Fprintln(text)
	type share struct {
		close  ashare.Fen
		factor float64
		listed bars.Date
		days   int
	}
	list := make([]share, len(symbols))
	for i := range list {
		list[i] = share{close: ashare.Fen(500 + 900*i), factor: 1}
	}
	for d := range days {
		day := from.AddDate(0, 0, d)
		rules, err := ashare.On(bars.NewDate(day))
		if err != nil {
			panic(err)
		}
		for i, symbol := range symbols {
			x := &list[i]
			board, err := ashare.BoardOf(symbol)
			if err != nil {
				panic(err)
			}
			if !rules.Open(board) || i == 1 && d < 40 {
				continue
			}
			if d > 0 && x.days == 0 && (i == 1 || board == ashare.STAR || board == ashare.BSE) {
				x.listed = bars.NewDate(day)
			}
			x.days++
			st := i == 5 && d%90 > 30
			previous, dividend := x.close, ashare.Distribution{}
			if x.days > 1 && s.IntN(60) == 0 {
				dividend = ashare.Distribution{Cash: int64(s.IntN(3)) * int64(x.close) * 2, Bonus: int64(s.IntN(3)) * 1500}
				previous = dividend.Reference(x.close)
				x.factor *= float64(x.close) / float64(previous)
			}
			listing := ashare.Listing{Board: board, ST: st, Listed: x.listed}
			if !x.listed.IsZero() {
				listing.Day = x.days
			}
			l := rules.Limits(listing, previous)
			price := func() ashare.Fen {
				p := max(ashare.Fen(math.Round(float64(previous)*math.Exp(0.08*s.Normal()))), 1)
				if l.Limited {
					p = min(max(p, l.Low), l.High)
				}
				return p
			}
			open, close, volume := price(), price(), 1000+s.IntN(200_000)
			if s.IntN(25) == 0 {
				open, close, volume = previous, previous, 0
			}
			fmt.Fprintf(text, "%s,%s,%v,%v,%v,%v,%v,%d,%.9f,%d", day.Format(time.DateOnly), symbol, open, max(open, close), min(open, close), close, previous, volume, x.factor, map[bool]int{true: 1}[st])
			switch {
			case limits && l.Limited:
				fmt.Fprintf(text, ",%v,%v", l.High, l.Low)
			case limits:
				fmt.Fprint(text, ",,")
			}
			if actions {
				fmt.Fprintf(text, ",%g,%g", float64(dividend.Cash)/1000, float64(dividend.Bonus)/1000)
			}
			fmt.Fprintln(text)
			x.close = close
		}
	}
	return text.String()
}

var (
	years = map[string]time.Time{
		"2008": time.Date(2008, 6, 1, 0, 0, 0, 0, time.UTC), "2015": time.Date(2015, 6, 1, 0, 0, 0, 0, time.UTC), "2020": time.Date(2020, 3, 1, 0, 0, 0, 0, time.UTC), "2021": time.Date(2021, 9, 1, 0, 0, 0, 0, time.UTC),
	}
	ways = map[string]func(*trading.Config){
		"orders":  func(*trading.Config) {},
		"owner":   func(c *trading.Config) { c.Execution.CashSplit, c.BuyPct, c.SellPct = trading.Owner, 0.6, 1 },
		"weights": func(c *trading.Config) { c.Actions = trading.Weights },
		"little cash": func(c *trading.Config) {
			c.Actions, c.InitialCash, c.Execution.Fill = trading.Weights, 9_000.01, trading.NextClose
		},
		"dear": func(c *trading.Config) {
			c.InitialCash, c.Costs, c.Execution.Fill = 3_000, trading.Costs{Minimum: 5}, trading.SameClose
		},
	}
)

func config(change func(*trading.Config)) trading.Config {
	c := trading.Defaults()
	c.Window, c.InitialCash, c.FeeRate = 5, 100_000, 0.00025
	c.Costs = trading.Costs{Minimum: 5, Slippage: trading.Slippage{BP: 10, Impact: trading.SquareRoot, Coefficient: 0.05}, Participation: 0.1}
	change(&c)
	return c
}

// section is that of data in a file.
func section(t *testing.T, text string, days int) prepared.Config {
	t.Helper()
	file := filepath.Join(t.TempDir(), "bars.csv")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	first, err := time.Parse(time.DateOnly, strings.SplitN(text, "\n", 3)[1][:10])
	if err != nil {
		t.Fatal(err)
	}
	columns := ""
	if strings.Contains(text, ",cash,new\n") {
		columns = ", columns: {dividend: cash, bonus: new}"
	}
	doc, err := configs.Parse("data", fmt.Appendf(nil, "{source: {path: %q, per_shares: 10%s}, rules: ashare, features: {indicators: {}}, split: {train: [%s, %s], valid: null, test: null}}", file, columns,
		first.Format(time.DateOnly), first.AddDate(0, 0, days).Format(time.DateOnly)))
	if err != nil {
		t.Fatal(err)
	}
	c := prepared.Default()
	c.Window = 5
	if err := doc.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// TestRandomPolicies trades every kind of market in every way.
func TestRandomPolicies(t *testing.T) {
	fills := 0
	for year, from := range sorted.All(years) {
		for _, limits := range []bool{false, true} {
			set, _, err := prepared.Make(context.Background(), section(t, write(from, 260, limits, year < "2020"), 260))
			if err != nil {
				t.Fatal(err)
			}
			own := "limits of 0 rows"
			if text := strings.Join(set.Manifest.Notes, "\n"); limits && !strings.Contains(text, own) || strings.Contains(text, "NOT what") || strings.Contains(text, "NOT agree") {
				t.Errorf("%s: %s", year, text)
			}
			for name, change := range sorted.All(ways) {
				m := feed.FromSet(set).Market
				s, err := trading.NewSource(m, config(change))
				if err != nil {
					t.Fatal(err)
				}
				r, err := audit.Random(context.Background(), s, trading.Range{First: 0, Last: m.Len() - 1}, 3)
				if err != nil {
					t.Fatal(err)
				}
				if r.Problems() != 0 || r.BlockedBuys < 10 || r.BlockedSells < 10 || r.Buys < 50 || r.Sells < 40 {
					t.Errorf("%s, %s, limits %v: %+v", year, name, limits, r)
				}
				fills += r.Buys + r.Sells
			}
		}
	}
	if fills < 30_000 {
		t.Errorf("%d fills", fills)
	}
}

// TestDelisted: what is held of stocks that are gone becomes cash to the fen.
func TestDelisted(t *testing.T) {
	lines := strings.SplitAfter(write(years["2020"], 200, false, false), "\n")
	end := years["2020"].AddDate(0, 0, 120).Format(time.DateOnly)
	lines = slices.DeleteFunc(lines, func(line string) bool {
		return line > end && line < "3" && (strings.Contains(line, symbols[0]) || strings.Contains(line, symbols[2]))
	})
	set, _, err := prepared.Make(context.Background(), section(t, strings.Join(lines, ""), 200))
	if err != nil {
		t.Fatal(err)
	}
	cash := map[float64]int{}
	for _, recovery := range []float64{0, 0.7, 1} {
		m := feed.FromSet(set).Market
		if m.Gone == nil {
			t.Fatal("nothing is gone")
		}
		s, err := trading.NewSource(m, config(func(c *trading.Config) { c.Account.Delisting = &trading.Delisting{Recovery: recovery} }))
		if err != nil {
			t.Fatal(err)
		}
		r, err := audit.Random(context.Background(), s, trading.Range{First: 0, Last: m.Len() - 1}, 3)
		if err != nil || r.Problems() != 0 || r.Buys < 50 {
			t.Errorf("%g: %+v, %v", recovery, r, err)
		}
		hold, err := backtest.Accounts(context.Background(), s, trading.Range{First: 0, Last: m.Len() - 1}, backtest.BuyAndHold())
		if err != nil || len(hold.Endings) != 2 || hold.Kept != nil {
			t.Fatalf("%+v, %v", hold, err)
		}
		for _, e := range hold.Endings {
			if c := 100 * e.Cash; e.Cash > e.Shares*e.Price*recovery+0.0051 || math.Abs(c-math.Round(c)) > 1e-6 {
				t.Errorf("%+v", e)
			}
		}
		cash[hold.Value[len(hold.Value)-1]]++
	}
	if len(cash) != 3 {
		t.Errorf("the recovery makes no difference: %v", cash)
	}
}

// TestFindsWhatIsWrong looks at markets that say what the rules do not.
func TestFindsWhatIsWrong(t *testing.T) {
	set, _, err := prepared.Make(context.Background(), section(t, write(years["2020"], 260, false, false), 260))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, harm := range []func(m *trading.Market){
		func(m *trading.Market) { m.Raw.LimitUp = slices.Repeat([]float64{1}, len(m.Open)) },
		func(m *trading.Market) {
			for i, price := range m.Close {
				if price > 0 {
					m.Tradable[i], m.AtOpen[i] = trading.Both, trading.Both
				}
			}
		},
	} {
		m := feed.FromSet(set).Market
		harm(m)
		c := config(func(*trading.Config) {})
		c.Costs.Participation, c.Costs.Slippage = 0, trading.Slippage{BP: 1}
		s, err := trading.NewSource(m, c)
		if err != nil {
			t.Fatal(err)
		}
		r, err := audit.Random(context.Background(), s, trading.Range{First: 0, Last: m.Len() - 1}, 1)
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, r.Examples...)
	}
	for _, want := range []string{"blocked at a price", "outside the limits", "buy at the upper limit", "without trading"} {
		if !slices.ContainsFunc(found, func(k string) bool { return strings.Contains(k, want) }) {
			t.Errorf("%q was not found, but %v", want, found)
		}
	}
}

// TestFollowed trades bars as they are written, whose limits are computed row by row: accounts,
// masks and fills are those of the environment.
func TestFollowed(t *testing.T) {
	compared, fills := 0, 0
	for year, from := range sorted.All(years) {
		for name, change := range sorted.All(ways) {
			text := write(from, 200, year == "2008", year == "2015")
			d := section(t, text, 200)
			set, _, err := prepared.Make(context.Background(), d)
			if err != nil {
				t.Fatal(err)
			}
			c := config(change)
			s, err := trading.NewSource(feed.FromSet(set).Market, c)
			if err != nil {
				t.Fatal(err)
			}
			e, err := s.Env(trading.Range{First: 0, Last: set.Manifest.T - 1})
			if err != nil {
				t.Fatal(err)
			}
			pipeline := live.NewPipeline(&set.Manifest)
			f, err := live.New(pipeline)
			if err != nil {
				t.Fatal(err)
			}
			p, err := live.NewPortfolio(c, f)
			if err != nil {
				t.Fatal(err)
			}
			follower, err := bars.Follow(d.Source, strings.NewReader(text), d.Quality, bars.Date{}, pipeline.Assets, set.Manifest.Adjusted, func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			limiter, err := prepared.Limiter(d.Rules, pipeline.Assets)
			if err != nil {
				t.Fatal(err)
			}
			follower.Require(pipeline.Needs())
			follower.Limit(limiter.Limit)
			ts, stream := envs.NewTimeStep(e.Spec()), rng.New(5).Stream()
			if err := e.Reset(rng.New(1), ts); err != nil {
				t.Fatal(err)
			}
			rows, orders, weights := make([]live.Row, len(symbols)), tensor.New(tensor.Int64, len(pipeline.Assets)), make([]float64, len(pipeline.Assets)+1)
			for {
				at, records, valid, err := follower.Next(context.Background())
				if err != nil {
					break // the last rows are not complete
				}
				rows = rows[:len(pipeline.Assets)]
				for i, ok := range valid {
					if rows[i] = (live.Row{Status: bars.Missing}); ok {
						rows[i] = live.Row{Bar: records[i].Bar, Status: bars.Traded, Quote: records[i].Quote}
						if records[i].Suspended {
							rows[i].Status = bars.Suspended
						}
					}
				}
				if err := f.Append(at, rows); err != nil {
					t.Fatal(err)
				}
				if f.Rows()-1 < e.Bar() {
					continue
				}
				p.Update()
				if p.Value() != e.Value() || p.Account().Cash() != e.Cash() || !slices.Equal(p.Account().Positions(), e.Positions()) || compared > 0 && ts.Type != envs.First && !slices.Equal(p.Account().Fills(), e.Fills()) {
					t.Fatalf("%s, %s, %s: value %v, cash %v, fills %v, expected %v, %v, %v", year, name, at, p.Value(), p.Account().Cash(), p.Account().Fills(), e.Value(), e.Cash(), e.Fills())
				}
				if e.Spec().Masked && !slices.Equal(p.Mask().Bools(), ts.Mask.Bools()) {
					t.Fatalf("%s, %s, %s: the masks differ", year, name, at)
				}
				fills += len(e.Fills())
				compared++
				if ts.Type == envs.Last {
					break
				}
				clear(weights)
				for i := range orders.Int64s() {
					orders.Int64s()[i] = int64(stream.IntN(3))
					weights[i] = 1 / float64(len(weights))
				}
				weights[stream.IntN(len(weights))] += 1 / float64(len(weights))
				if e.Spec().Masked {
					err = p.Decide(orders.Int64s())
					if err == nil {
						err = e.Step(orders, ts)
					}
				} else if err = p.Rebalance(weights); err == nil {
					err = e.Rebalance(weights, ts)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	if compared < 3_500 || fills < 5_000 {
		t.Errorf("%d bars and %d fills compared", compared, fills)
	}
}

// TestConflicts sets keys beside the rule book.
func TestConflicts(t *testing.T) {
	n := 0
	for want, change := range sorted.All(map[string]func(*trading.Config){
		"execution.lot: 100, and data.rules: ashare says":            func(c *trading.Config) { c.Execution.Lot = 100 },
		"account.settlement: 1, and data.rules: ashare says":         func(c *trading.Config) { c.Account.Settlement = 1 },
		"account.prices: adjusted, and data.rules: ashare is for":    func(c *trading.Config) { c.Account.Prices = trading.Adjusted },
		"costs.taxes: there are some, and data.rules: ashare":        func(c *trading.Config) { c.Costs.Taxes = []trading.Tax{{Side: "both"}} },
		"fee_rate: 0.00012345, expected a multiple of 1e-07":         func(c *trading.Config) { c.FeeRate = 0.00012345 },
		"costs.minimum: 0.005, expected a multiple of 0.01 beside d": func(c *trading.Config) { c.Costs.Minimum = 0.005 },
	}) {
		c := config(change)
		if err := c.CheckRules("ashare"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
		if _, err := c.Under(ashare.Book{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
		n++
	}
	if n != 6 {
		t.Errorf("%d keys", n)
	}
}
