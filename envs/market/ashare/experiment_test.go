package ashare

import (
	"io/fs"
	"math"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// The shipped experiment charges what the book does, to the rounding of fees, on every day from
// 2008 on.
func TestShippedExperiment(t *testing.T) {
	text, err := fs.ReadFile(configs.Shipped(), "ashare.yaml")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := configs.Parse("ashare.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	c := trading.Defaults()
	section, ok := doc.Lookup("env.costs")
	if !ok {
		t.Fatal("no costs")
	}
	if err := section.Decode(&c.Costs); err != nil {
		t.Fatal(err)
	}
	c.Costs.Slippage, c.Costs.Participation, c.FeeRate = trading.Slippage{}, 0, 0.00025
	broker := Broker{Rate: 2_500, Least: 500}
	n := 0
	const shares, price = 10_000, 20
	for day := time.Date(2008, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() < 2027; day = day.AddDate(0, 0, 1) {
		rules, err := On(bars.NewDate(day))
		if err != nil {
			t.Fatal(err)
		}
		charges := c.Charges(&trading.Bar{Date: day})
		for side, order := range []int64{Buy: trading.Buy, Sell: trading.Sell} {
			for _, b := range []Board{MainSH, MainSZ} {
				if b == MainSH && day.Before(time.Date(2015, 8, 1, 0, 0, 0, 0, time.UTC)) {
					continue // by par value
				}
				want := rules.Costs(b, Side(side), shares*price*100, shares, broker).Total()
				if got := charges.Fee(order, shares*price); math.Abs(got-float64(want)/100) > 0.011 {
					t.Fatalf("%s, %v, side %v: %v, the book has %v", day.Format(time.DateOnly), b, side, got, want)
				}
				n++
			}
		}
	}
	if n != 22222 {
		t.Errorf("compared %d fees", n)
	}
}
