package world_test

import (
	"math"
	"strings"
	"testing"

	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// daily is a coefficient that never changes.
func daily(x float64, days int) []float64 {
	list := make([]float64, days)
	for i := range list {
		list[i] = x
	}
	return list
}

// two is a factory S of level 0 and one B of level 1.
func two(days int, catalog []int, s, b world.Factory, exogenous ...world.Exogenous) *world.Config {
	s.ID, b.ID, b.Level = "S", "B", 1
	for _, f := range []*world.Factory{&s, &b} {
		f.Storage, f.Shortfall = daily(f.StorageMean, days), daily(f.ShortfallMean, days)
	}
	c := &world.Config{Days: days, Lines: 10, Catalog: catalog, Factories: []world.Factory{s, b}, Exogenous: exogenous, Rules: world.DefaultRules()}
	c.Rules.PassLimit = 0
	return c
}

// run plays a world on which nobody negotiates and contracts are signed by day. After each day, and
// when agents learn that one begins, it looks.
type run struct {
	*world.World
	signed map[int][]world.Contract
	begins func(day int)
	ends   func(day int)
}

func play(t *testing.T, c *world.Config, r *run) {
	t.Helper()
	w, err := world.New(c, make([]bool, len(c.Factories)))
	if err != nil {
		t.Fatal(err)
	}
	r.World = w
	told, ended := false, false
	for {
		q := w.Next()
		switch q.Event {
		case world.DayBegins:
			if !told && r.begins != nil {
				r.begins(w.Today())
			}
			told, ended = true, false
		case world.DayEnds:
			if !ended {
				for _, c := range r.signed[w.Today()] {
					if err := w.Sign(c); err != nil {
						t.Fatal(err)
					}
				}
			}
			told, ended = false, true
		case world.Settled:
			r.ends(w.Today())
		case world.Over:
			return
		}
	}
}

func contract(quantity, price, day int) world.Contract {
	return world.Contract{Seller: 0, Buyer: 1, Quantity: quantity, Time: day, Price: price, Rounds: 1}
}

func near(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*max(1, math.Abs(b)) }

// row is what is expected of an agent after a day.
type row struct {
	balance                   float64
	stock, made, left, missed int
}

func (r row) check(t *testing.T, w *world.World, agent, day int) {
	t.Helper()
	o := w.Outcome(agent)
	if !near(w.Balance(agent), r.balance, 1e-9) || w.Stock(agent) != r.stock || o.Made != r.made || o.Left != r.left || o.Missing != r.missed {
		t.Errorf("day %d, agent %d: balance %.10f, stock %d, %+v; expected %+v", day, agent, w.Balance(agent), w.Stock(agent), o, r)
	}
}

// TestFourDays is a world computed by hand, and recorded: stock, prices and deliveries of later
// days.
func TestFourDays(t *testing.T) {
	c := two(4, []int{10, 16, 26}, world.Factory{Cost: 2, ShortfallMean: 0.5, StorageMean: 0.02, Balance: 1000}, world.Factory{Cost: 4, ShortfallMean: 0.6, StorageMean: 0.03, Balance: 1500},
		world.Exogenous{Day: 0, Quantity: 8, Price: 10}, world.Exogenous{Day: 0, Factory: 1, Demand: true, Quantity: 5, Price: 26},
		world.Exogenous{Day: 1, Quantity: 4, Price: 11}, world.Exogenous{Day: 1, Factory: 1, Demand: true, Quantity: 3, Price: 25},
		world.Exogenous{Day: 2, Quantity: 12, Price: 9}, world.Exogenous{Day: 2, Factory: 1, Demand: true, Quantity: 12, Price: 27})
	s := []row{{1003.6, 2, 6, 2, 0}, {958.4, 6, 0, 6, 0}, {947.1829787234043, 11, 7, 11, 0}, {947.1829787234043 - 11*0.02*9.8564843670766, 11, 0, 11, 0}}
	b := []row{{1513.52, 1, 5, 1, 0}, {1503.32, 1, 1, 0, 2}, {1512.07, 1, 8, 0, 4}, {1512.07 - 0.03*16.01890359168242, 1, 0, 1, 0}}
	prices := [][3]float64{{10, 16, 26}, {10.077369, 16, 25.9375}, {9.856484, 16.018904, 26.168478}, {9.856484, 16.018904, 26.168478}}
	needs := [][2]int{{8, 5}, {6, 2}, {14, 7}, {11, -1}}
	concluded, days := []int{5, 3, 3, 0}, 0
	r := &run{signed: map[int][]world.Contract{0: {contract(6, 16, 0)}, 1: {contract(4, 17, 2)}, 2: {contract(3, 15, 2)}}}
	r.begins = func(day int) {
		if got := [2]int{r.View(0).NeededSales(), r.View(1).NeededSupplies()}; got != needs[day] {
			t.Errorf("day %d: needs %v, expected %v", day, got, needs[day])
		}
		v := r.View(1)
		if got := v.With(0, 2); day == 2 && got != (world.Total{Quantity: 4, Money: 68}) || day == 3 && v.With(0, 2).Quantity != 0 || got.Quantity != v.SuppliesAt(2) {
			t.Errorf("day %d: %+v agreed for day 2", day, got)
		}
		supply, demand := v.Outside()
		if supply != r.View(0).Supply() || demand != v.Demand() || v.Cost() != 4 || v.Catalog(1) != 16 || v.InitialBalance() != 1500 || len(v.Competitors()) != 1 || v.Bankrupt(0) {
			t.Errorf("day %d: %+v, %+v", day, supply, demand)
		}
		if day == 2 && (!near(v.ShortfallPenalty(), 0.6*25.9375, 1e-12) || !near(v.StorageCost(), 0.03*v.TradingPrice(1), 1e-12)) {
			t.Errorf("penalties %v and %v", v.ShortfallPenalty(), v.StorageCost())
		}
		if shortfall, storage := v.MeanPenalties(); shortfall != 0.6 || storage != 0.03 {
			t.Errorf("means %v and %v", shortfall, storage)
		}
		if report, ok := v.Report(0); ok != (day > 0) || ok && (report.Day != 0 || !near(report.Cash, 1003.6, 1e-12) || report.BreachProb != 0) {
			t.Errorf("day %d: %+v", day, report)
		}
		if r.View(0).NeededSupplies() != 0 || r.View(1).NeededSales() != 0 {
			t.Errorf("day %d: needs of what is exogenous", day)
		}
	}
	r.ends = func(day int) {
		days++
		s[day].check(t, r.World, 0, day)
		b[day].check(t, r.World, 1, day)
		for p, want := range prices[day] {
			if !near(r.TradingPrice(p), want, 1e-6/want) {
				t.Errorf("day %d: product %d at %.6f, expected %.6f", day, p, r.TradingPrice(p), want)
			}
		}
		if got := r.Statistics().Concluded; got != concluded[day] {
			t.Errorf("day %d: %d contracts concluded, expected %d", day, got, concluded[day])
		}
	}
	play(t, c, r)
	if days != 4 {
		t.Errorf("%d days", days)
	}
	if score := r.Score(0); !near(score, r.Balance(0)/1000, 1e-15) {
		t.Errorf("score %v", score)
	}
}

// TestBankruptcy is one that was recorded: what the bankrupt agent had agreed is not delivered, the
// partner's books keep it, and losses go on.
func TestBankruptcy(t *testing.T) {
	make := func() *world.Config {
		c := two(4, []int{10, 20, 30}, world.Factory{Cost: 2, ShortfallMean: 0.5, StorageMean: 0.02, Balance: 150}, world.Factory{Cost: 4, ShortfallMean: 0.5, StorageMean: 0.02, Balance: 1500})
		for day := range 4 {
			c.Exogenous = append(c.Exogenous, world.Exogenous{Day: day, Quantity: 12, Price: 10}, world.Exogenous{Day: day, Factory: 1, Demand: true, Quantity: 2, Price: 30})
		}
		return c
	}
	s := []row{{27.6, 12, 0, 12, 0}, {-45.6, 21, 3, 21, 0}, {-172.2, 33, 0, 33, 0}, {-301.2, 45, 0, 45, 0}}
	b := []row{{1470, 0, 0, 0, 2}, {1464.6, 1, 2, 1, 0}, {1475.6, 1, 1, 0, 1}, {1486.6, 1, 1, 0, 1}}
	dropped, tp := []int{0, 0, 1, 0}, []float64{20, 19.9375, 19.9375, 19.9375}
	negotiations := []int{1, 1, 0, 0}
	for _, forget := range []bool{false, true} {
		c := make()
		c.Rules.ForgetBankrupt = forget
		days := 0
		r := &run{signed: map[int][]world.Contract{0: {contract(4, 18, 2)}, 1: {contract(3, 19, 1)}}}
		r.begins = func(day int) {
			if day != 2 {
				return
			}
			promised, needed := 4, -3
			if forget {
				promised, needed = 0, 1
			}
			if got := r.View(1).SuppliesAt(2); got != promised {
				t.Errorf("forget %v: %d units are promised, expected %d", forget, got, promised)
			}
			if got := r.View(1).NeededSupplies(); got != needed {
				t.Errorf("forget %v: %d needed, expected %d", forget, got, needed)
			}
		}
		r.ends = func(day int) {
			days++
			s[day].check(t, r.World, 0, day)
			b[day].check(t, r.World, 1, day)
			st := r.Statistics()
			if r.Bankrupt(0) != (day > 0) || r.Bankrupt(1) || st.Dropped != dropped[day] || st.Negotiations != negotiations[day] || !near(r.TradingPrice(1), tp[day], 1e-12) {
				t.Errorf("day %d: bankrupt %v, %d dropped, %d negotiations, price %v", day, r.Bankrupt(0), st.Dropped, st.Negotiations, r.TradingPrice(1))
			}
			if day == 2 {
				if err := r.Sign(contract(1, 20, 3)); err == nil || !strings.Contains(err.Error(), "S is bankrupt") {
					t.Errorf("%v", err)
				}
			}
		}
		play(t, c, r)
		if days != 4 {
			t.Errorf("%d days", days)
		}
	}
}

// TestStockIsFree: officially ten units of stock are made into ten units on every day; each repair
// changes that in its own way.
func TestStockIsFree(t *testing.T) {
	cases := []struct {
		name          string
		rules         func(r *world.Rules)
		balances      []float64
		sBalance      float64
		made, bStocks []int
	}{
		{"official", func(*world.Rules) {}, []float64{894, 1154, 1414, 1674, 1934}, 850, []int{10, 10, 10, 10, 10}, []int{10, 10, 10, 10, 10}},
		{"stock shrinks", func(r *world.Rules) { r.StockShrinks = true }, nil, 850, []int{10, 10, 0, 0, 0}, []int{10, 0, 0, 0, 0}},
		{"what is made is delivered", func(r *world.Rules) { r.DeliverMade = true }, []float64{1080, 1080 - 180, 1080 - 360, 1080 - 540, 1080 - 720}, 850, []int{10, 0, 0, 0, 0}, []int{0, 0, 0, 0, 0}},
	}
	for _, k := range cases {
		c := two(5, []int{10, 20, 30}, world.Factory{Cost: 2, ShortfallMean: 0.5, StorageMean: 0.02, Balance: 1000}, world.Factory{Cost: 4, ShortfallMean: 0.6, StorageMean: 0.03, Balance: 1000}, world.Exogenous{Quantity: 20, Price: 10})
		for day := range 5 {
			c.Exogenous = append(c.Exogenous, world.Exogenous{Day: day, Factory: 1, Demand: true, Quantity: 10, Price: 30})
		}
		k.rules(&c.Rules)
		r := &run{signed: map[int][]world.Contract{0: {contract(20, 18, 0)}}}
		r.ends = func(day int) {
			if got := r.Outcome(1).Made; got != k.made[day] || r.Stock(1) != k.bStocks[day] {
				t.Errorf("%s, day %d: %d made, stock %d", k.name, day, got, r.Stock(1))
			}
			if k.balances != nil && !near(r.Balance(1), k.balances[day], 1e-12) {
				t.Errorf("%s, day %d: balance %v, expected %v", k.name, day, r.Balance(1), k.balances[day])
			}
			if day == 0 && !near(r.TradingPrice(1), 1260.0/65, 1e-12) {
				t.Errorf("%s: price %v", k.name, r.TradingPrice(1))
			}
			if o := r.Outcome(0); day == 0 && (o.Missing != 10 || o.Penalty != 100) {
				t.Errorf("%s: %+v of the seller", k.name, o)
			}
		}
		play(t, c, r)
		if k.name == "official" && !near(r.Balance(0), k.sBalance, 1e-12) {
			t.Errorf("%s: the seller has %v", k.name, r.Balance(0))
		}
	}
}

// TestRawIssues: the box of product 0 that agents read is that of day 0 for ever, unless repaired;
// those of the others follow the day.
func TestRawIssues(t *testing.T) {
	for _, refresh := range []bool{false, true} {
		c := two(20, []int{10, 20, 30}, world.Factory{Cost: 2, Balance: 1000}, world.Factory{Cost: 4, Balance: 1000})
		for day := range 20 {
			c.Exogenous = append(c.Exogenous, world.Exogenous{Day: day, Quantity: 10, Price: 20}, world.Exogenous{Day: day, Factory: 1, Demand: true, Quantity: 10, Price: 60})
		}
		c.Rules.RefreshRaw = refresh
		r := &run{ends: func(int) {}}
		looked := 0
		r.begins = func(day int) {
			if day != 15 {
				return
			}
			looked++
			in, out, last := r.View(0).InputBox(), r.View(0).OutputBox(), r.View(1).OutputBox()
			frozen := in.Low.Time == 0 && in.High.Time == 10 && in.Low.Price == 9 && in.High.Price == 11
			if frozen == refresh {
				t.Errorf("refresh %v: %+v", refresh, in)
			}
			if out.Low.Time != 15 || out.High.Time != 19 || out.Low.Price != 18 || out.High.Price != 22 || last.Low.Price < 40 || last.Low.Time != 15 {
				t.Errorf("%+v, %+v", out, last)
			}
		}
		play(t, c, r)
		if looked != 1 {
			t.Errorf("looked %d times", looked)
		}
	}
}
