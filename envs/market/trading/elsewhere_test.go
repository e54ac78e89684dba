package trading

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/onnxrl/onnxrl/envs/risk"
)

// TestIntendIsWhatTradeExecutes: what an account would execute is what another one executes, to the
// bit, and nothing changes by asking; fills that are booked lead to the same account.
func TestIntendIsWhatTradeExecutes(t *testing.T) {
	at := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	n := 0
	for _, x := range []struct {
		name    string
		edit    func(*Config)
		orders  []int64
		weights []float64
	}{
		{name: "orders", orders: []int64{Buy, Sell, Hold}},
		{name: "buyers", orders: []int64{Buy, Buy, Hold}},
		{name: "lots", edit: func(c *Config) { c.Execution.Lot = 10 }, orders: []int64{Buy, Sell, Buy}},
		{name: "limits", edit: func(c *Config) { c.Risk = risk.Config{MaxWeight: 0.3, MaxTurnover: 0.4} }, orders: []int64{Buy, Sell, Hold}},
		{name: "settlement", edit: func(c *Config) { c.Account.Settlement = 1 }, orders: []int64{Buy, Sell, Hold}},
		{name: "weights", edit: func(c *Config) { c.Actions = Weights }, weights: []float64{0.2, 0.3, 0.1, 0.4}},
	} {
		t.Run(x.name, func(t *testing.T) {
			n++
			c := Defaults()
			if x.edit != nil {
				x.edit(&c)
			}
			prices := []float64{10, 20, 5}
			open := []Sides{Both, Both, Both}
			b := Bar{Date: at, Price: prices, Decided: open, Tradable: open}
			var own, other *Account
			for _, a := range []**Account{&own, &other} {
				var err error
				if *a, err = NewAccount(c, 3); err != nil {
					t.Fatal(err)
				}
				if err := (*a).Hold([]float64{100, 50, 30}, 2000); err != nil {
					t.Fatal(err)
				}
				(*a).HoldUnsettled([]float64{0, 20, 0}, at)
				(*a).Mark(at, prices)
			}
			own.Elsewhere()
			fills := slices.Clone(own.Intend(x.orders, x.weights, &b, prices))
			if own.Cash() != 2000 || !slices.Equal(own.Positions(), []float64{100, 50, 30}) {
				t.Errorf("asking changed it to %v and %v", own.Cash(), own.Positions())
			}
			if x.weights != nil {
				other.Rebalance(x.weights, &b)
			} else {
				other.Trade(x.orders, &b)
			}
			if !slices.Equal(fills, other.Fills()) || len(fills) == 0 || own.Bound() != other.Bound() {
				t.Errorf("%+v, expected %+v", fills, other.Fills())
			}
			for _, f := range fills {
				if !own.Executed(f, at) {
					t.Errorf("%+v was not held", f)
				}
			}
			if math.Abs(own.Cash()-other.Cash()) > 1e-9 || !slices.Equal(own.Positions(), other.Positions()) {
				t.Errorf("%v and %v, expected %v and %v", own.Cash(), own.Positions(), other.Cash(), other.Positions())
			}
			have, _ := own.Unsettled()
			want, _ := other.Unsettled()
			if !slices.Equal(have, want) {
				t.Errorf("%v is not settled, expected %v", have, want)
			}
			if m, w := own.RiskMemory(), other.RiskMemory(); m != nil && (math.Abs(m.Traded-w.Traded) > 1e-9 || m.TradedOn != w.TradedOn) {
				t.Errorf("%+v, expected %+v", m, w)
			}
		})
	}
	if n != 6 {
		t.Errorf("%d cases", n)
	}
}

// TestExecutedElsewhere: a broker may leave a debt, which nothing is bought with, and sell more
// than was held; what it reports is taken over.
func TestExecutedElsewhere(t *testing.T) {
	at := time.Date(2024, 3, 1, 0, 0, 0, 0, time.UTC)
	c := Defaults()
	c.Account.Settlement = 1
	a, err := NewAccount(c, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Hold([]float64{0, 0}, -1); err == nil {
		t.Error("a debt is possible without a broker")
	}
	a.Elsewhere()
	if !a.Executed(Fill{Asset: 0, Shares: 11, Price: c.InitialCash / 10}, at) || a.Cash() >= 0 {
		t.Errorf("cash %v", a.Cash())
	}
	open := []Sides{Both, Both}
	prices := []float64{c.InitialCash / 10, 1}
	if fills := a.Intend([]int64{Buy, Buy}, nil, &Bar{Date: at, Price: prices, Decided: open, Tradable: open}, prices); len(fills) != 0 {
		t.Errorf("%+v with a debt", fills)
	}
	if err := a.Own([]float64{8, 2}, -5); err != nil {
		t.Fatal(err)
	}
	if s, _ := a.Unsettled(); !slices.Equal(s, []float64{8, 0}) || a.Cash() != -5 || !slices.Equal(a.Positions(), []float64{8, 2}) {
		t.Errorf("%v is not settled of %v, cash %v", s, a.Positions(), a.Cash())
	}
	for _, bad := range [][]float64{{8}, {-1, 0}, {math.NaN(), 0}} {
		if err := a.Own(bad, 0); err == nil || a.Cash() != -5 {
			t.Errorf("%v is taken: %v", bad, err)
		}
	}
	if a.Executed(Fill{Asset: 0, Shares: -9, Price: 1}, at) || a.Positions()[0] != 0 || a.Cash() != 4 {
		t.Errorf("%v after a sale of more than was held, cash %v", a.Positions(), a.Cash())
	}
}
