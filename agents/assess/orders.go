package assess

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/market/trading"
	"github.com/onnxrl/onnxrl/envs/market/trading/backtest"
)

// Orders counts what became of an agent's orders; the JSON keys are stable.
type Orders struct {
	Buys  int `json:"buys"`
	Sells int `json:"sells"`
	// Impossible ones had nothing to sell, no cash, or no trading at the bar of the fill.
	Impossible int `json:"impossible"`
}

// OrdersOf counts those of a record.
func OrdersOf(r *backtest.Record) Orders {
	o := Orders{Impossible: r.TotalSkipped()}
	for _, f := range r.Trades {
		if f.Side == trading.Sell {
			o.Sells++
		} else {
			o.Buys++
		}
	}
	return o
}

func (o Orders) text(name string) string {
	s := fmt.Sprintf("%s bought %d times and sold %d times; ", name, o.Buys, o.Sells)
	if o.Impossible == 0 {
		return s + "none of its orders was impossible."
	}
	return s + fmt.Sprintf("%d orders could not be executed: nothing to sell, no cash, or no trading at the bar of the fill.", o.Impossible)
}
