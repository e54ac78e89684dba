package world_test

import (
	"math"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/world"
)

func nearly(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// lots makes contracts of quantities and prices.
func lots(pairs ...[2]int) []world.Lot {
	var list []world.Lot
	for i, p := range pairs {
		list = append(list, world.Lot{Quantity: p[0], Price: float64(p[1]), Contract: i})
	}
	return list
}

// TestSettle computes days of one factory, whose profits were read off the official program: cost
// 4, storage 3 % of 16, shortfall 60 % of 26.
func TestSettle(t *testing.T) {
	demand := world.Total{Quantity: 7, Money: 175}
	cases := []struct {
		name                string
		stock               int
		balance             float64
		demand              world.Total
		buys, sells         []world.Lot
		profit              float64
		made, missing, left int
	}{
		{"nothing", 0, 1000, demand, nil, nil, -109.2, 0, 7, 0},
		{"5 bought", 0, 1000, demand, lots([2]int{5, 15}), nil, -1.2, 5, 2, 0},
		{"9 bought", 0, 1000, demand, lots([2]int{5, 15}, [2]int{4, 17}), nil, 3.04, 7, 0, 2},
		{"12 bought", 0, 1000, demand, lots([2]int{12, 15}), nil, -35.4, 7, 0, 5},
		{"from stock", 6, 1000, demand, nil, nil, 110.4, 6, 1, 0},
		{"stock and 5", 6, 1000, demand, lots([2]int{5, 15}), nil, 70.08, 7, 0, 4},
		{"beyond the lines", 6, 1000, world.Total{Quantity: 12, Money: 300}, lots([2]int{8, 15}), nil, 56.88, 10, 2, 4},
		{"little money", 0, 100, demand, lots([2]int{5, 15}, [2]int{4, 17}), nil, -34.04, 6, 1, 3},
		{"no money", 0, -1, demand, lots([2]int{5, 15}), nil, -186.6, 0, 7, 5},
		{"in the middle", 0, 1000, world.Total{}, lots([2]int{8, 15}), lots([2]int{3, 24}, [2]int{4, 27}), 31.52, 7, 0, 1},
		{"dearest first", 0, 1000, world.Total{}, lots([2]int{5, 15}), lots([2]int{3, 24}, [2]int{4, 27}), 5.8, 5, 2, 0},
	}
	r := world.DefaultRules()
	for _, c := range cases {
		d := world.FactoryDay{Balance: c.balance, Cost: 4, Lines: 10, Stock: c.stock, Demand: c.demand, Shortfall: 0.6 * 26, Storage: 0.03 * 16}
		o, _, _ := d.Settle(&r, c.buys, c.sells)
		if !nearly(o.Profit, c.profit) || o.Made != c.made || o.Missing != c.missing || o.Left != c.left {
			t.Errorf("%s: %+v, expected profit %v, made %d, missing %d, left %d", c.name, o, c.profit, c.made, c.missing, c.left)
		}
	}
	if len(cases) != 11 {
		t.Errorf("%d cases", len(cases))
	}
}

// TestEqualPricesKeepTheirOrder: among inputs of one price what was negotiated is paid for first.
func TestEqualPricesKeepTheirOrder(t *testing.T) {
	r := world.DefaultRules()
	d := world.FactoryDay{Balance: 99, Cost: 2, Lines: 10, Supply: world.Total{Quantity: 2, Money: 20}, Demand: world.Total{Quantity: 10, Money: 250}}
	if o, _, _ := d.Settle(&r, lots([2]int{8, 10}), nil); o.Made != 9 {
		t.Errorf("%d made, expected 9", o.Made)
	}
}

// TestStock: officially what was used stays in stock.
func TestStock(t *testing.T) {
	r := world.DefaultRules()
	d := world.FactoryDay{Balance: 1000, Cost: 4, Lines: 10, Stock: 10, Demand: world.Total{Quantity: 10, Money: 300}}
	if o, _, _ := d.Settle(&r, nil, nil); o.Made != 10 || o.Stock != 10 {
		t.Errorf("%+v", o)
	}
	r.StockShrinks = true
	if o, _, _ := d.Settle(&r, nil, nil); o.Made != 10 || o.Stock != 0 {
		t.Errorf("repaired: %+v", o)
	}
}

// TestBreach has levels read off the official program.
func TestBreach(t *testing.T) {
	cases := []struct {
		supply, demand, stock, in, out int
		want                           float64
	}{
		{0, 0, 0, 5, 7, 2.0 / 7}, {0, 0, 0, 7, 5, 0}, {0, 0, 0, 0, 3, 1}, {0, 0, 0, 12, 14, 4.0 / 14}, {0, 0, 0, 15, 11, 1.0 / 11},
		{2, 0, 0, 5, 7, 0}, {2, 0, 0, 0, 3, 1.0 / 3}, {0, 3, 0, 5, 7, 0.5}, {0, 3, 0, 7, 5, 0.125}, {4, 1, 0, 12, 14, 1.0 / 3}, {4, 1, 0, 5, 12, 4.0 / 13}, {0, 0, 4, 5, 7, 0},
	}
	r := world.DefaultRules()
	for _, c := range cases {
		d := world.FactoryDay{Lines: 10, Stock: c.stock, Supply: world.Total{Quantity: c.supply}, Demand: world.Total{Quantity: c.demand}}
		if got := d.Breach(&r, c.in, c.out); !nearly(got, c.want) {
			t.Errorf("%+v: %v", c, got)
		}
	}
	r.BreachOnce = true
	d := world.FactoryDay{Lines: 10, Demand: world.Total{Quantity: 3}}
	if got := d.Breach(&r, 5, 7); !nearly(got, 2.0/7) {
		t.Errorf("repaired: %v", got)
	}
}

// TestPrices: the range of offers at a trading price.
func TestPrices(t *testing.T) {
	cases := []struct {
		trading   float64
		low, high int
	}{
		{9.856484, 8, 10}, {10, 9, 11}, {10.077369, 9, 11}, {14, 12, 15}, {15, 13, 16}, {16, 14, 17}, {16.018904, 14, 17}, {17, 15, 18}, {20, 18, 22}, {22, 19, 24},
		{25.9375, 23, 28}, {26.168478, 23, 28}, {28, 25, 30}, {45, 40, 49}, {70, 63, 77}, {0.5, 0, 1},
	}
	r := world.DefaultRules()
	for _, c := range cases {
		if low, high := r.Prices(c.trading); low != c.low || high != c.high {
			t.Errorf("at %v: %d-%d, expected %d-%d", c.trading, low, high, c.low, c.high)
		}
	}
	if first, last := r.Times(5, 50); first != 5 || last != 15 {
		t.Errorf("days %d-%d", first, last)
	}
	if first, last := r.Times(45, 50); first != 45 || last != 49 {
		t.Errorf("days %d-%d", first, last)
	}
}

// TestUpdate: a price is a discounted mean, and stays on days without trade.
func TestUpdate(t *testing.T) {
	r := world.DefaultRules()
	p := world.Price{Trading: 16, Weight: 51}
	p.Update(&r, 7, 4*17+3*15)
	if !nearly(p.Trading, 847.4/52.9) || !nearly(p.Weight, 52.9) {
		t.Errorf("%+v", p)
	}
	before := p
	if p.Update(&r, 0, 0); p != before {
		t.Errorf("%+v after a day without trade", p)
	}
}
