package ashare

import (
	"io/fs"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// The shipped experiment charges what the book does, to the fen, and buys and sells in its lots, on
// every day and board from 2008 on.
func TestShippedExperiment(t *testing.T) {
	text, err := fs.ReadFile(configs.Shipped(), "ashare.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("ashare.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	p := struct {
		Kind           string `yaml:"kind"`
		trading.Params `yaml:",inline"`
	}{Params: trading.Params{Config: trading.Defaults()}}
	section, ok := doc.Lookup("env")
	if !ok {
		t.Fatal("no environment")
	}
	if err := section.Decode(&p); err != nil {
		t.Fatal(err)
	}
	c := p.Config
	c.Costs.Slippage, c.Costs.Participation = trading.Slippage{}, 0
	if c, err = c.Under(Book{}); err != nil {
		t.Fatal(err)
	}
	symbols := []string{MainSH: "600000.SH", MainSZ: "000001.SZ", ChiNext: "300001.SZ", STAR: "688001.SH", BSE: "430001.BJ"}
	ruled, err := trading.NewRuled(Book{}, symbols)
	if err != nil {
		t.Fatal(err)
	}
	broker, prices := Broker{Rate: 2_500, Least: 500}, []float64{20.37, 3.11, 88.8, 41.03, 7.77}
	n := 0
	for day := time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2027; day = day.AddDate(0, 0, 1) {
		rules, err := On(bars.NewDate(day))
		if err != nil {
			t.Fatal(err)
		}
		bar := trading.Bar{Date: day, Price: prices}
		if err := ruled.Bar(&bar, false); err != nil {
			t.Fatal(err)
		}
		charges := c.Charges(&bar)
		for b := range boards {
			if !rules.Open(b) {
				continue
			}
			const money = 60_000
			buy, sell := charges.Buy(int(b), money), charges.Sell(int(b), 333, 12_345)
			for side, f := range []trading.Fill{Buy: buy, Sell: sell} {
				shares := int64(max(f.Shares, -f.Shares))
				amount, _ := FenOf(prices[b] * float64(shares))
				if fee, exact := FenOf(f.Fee); !exact || fee != rules.Costs(b, Side(side), amount, shares, broker).Total() {
					t.Fatalf("%s, %v, side %v: %+v, the book has %v", day.Format(time.DateOnly), b, side, f, rules.Costs(b, Side(side), amount, shares, broker).Total())
				}
				n++
			}
			bought, lot := int64(buy.Shares), rules.Lot(b)
			more := bought + lot.Step
			amount, _ := FenOf(prices[b] * float64(more))
			if lot.Buy(bought) != bought || buy.Shares*buy.Price+buy.Fee > money || amount+rules.Costs(b, Buy, amount, more, broker).Total() <= 100*money {
				t.Fatalf("%s, %v: %+v is not the largest purchase for %d", day.Format(time.DateOnly), b, buy, money)
			}
			if want := float64(lot.Sell(333, 12_345)); sell.Shares != -want {
				t.Fatalf("%s, %v: %g shares are sold, the lots allow %g", day.Format(time.DateOnly), b, sell.Shares, want)
			}
		}
	}
	if n != 49_490 {
		t.Errorf("compared %d fees", n)
	}
}
