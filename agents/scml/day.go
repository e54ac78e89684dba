package scml

import (
	"iter"

	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Layout is that of the layout of everything that this package writes.
const Layout = 1

// The lengths of the vectors of a day. Temporal is that of each day ahead.
const (
	StaticFeatures   = 16
	TemporalFeatures = 10
	RoleFeatures     = 2
	// Horizon is how many days after today x_temporal has unless a configuration says otherwise.
	Horizon = 40
)

// DaysAhead is what days ahead are relative to.
const DaysAhead = 10

// Day is what a factory knows in the morning.
type Day struct {
	Level, Levels, Lines int
	Today, Days          int
	Stock                int
	// Balance and Initial are money now and before the first day, Cost that of making a unit.
	Balance, Initial float64
	Cost             int
	// Storage and Shortfall are the means of the factory's coefficients.
	Storage, Shortfall float64
	// In and Out are the prices of its input and its output.
	In, Out Prices
	// Supply and Demand are today's exogenous contracts of the factory.
	Supply, Demand world.Total
	// Outside sums the exogenous units of the days seen so far, today included, of supply and of
	// demand; Seen is how many days these are.
	Outside [2]int
	Seen    int
	// Supplies and Sales are what is negotiated, by days ahead, today first. Days beyond the
	// slices have nothing.
	Supplies, Sales []world.Total
	// Buys and Sells say whether the factory has anybody to negotiate with.
	Buys, Sells bool
	// Suppliers, Consumers and Competitors count agents, bankrupt ones and itself included.
	Suppliers, Consumers, Competitors int
	// Horizon is how many days ahead may be agreed on, StockShrinks the rule of that name.
	Horizon      int
	StockShrinks bool
}

// Prices are those of a product: of the catalog, and the trading price in force.
type Prices struct {
	Catalog int
	Trading float64
}

// Read reads the morning of a running world. l has the money of the agent's contracts. Slices are
// reused.
func (d *Day) Read(v *world.View, l *shield.Ledger) {
	today, rules := v.Today(), v.Rules()
	*d = Day{
		Level: v.Level(), Levels: v.Levels(), Lines: v.Lines(), Today: today, Days: v.Days(), Stock: v.Stock(), Balance: v.Balance(), Initial: v.InitialBalance(), Cost: v.Cost(),
		In: Prices{v.Catalog(v.Level()), v.TradingPrice(v.Level())}, Out: Prices{v.Catalog(v.Level() + 1), v.TradingPrice(v.Level() + 1)},
		Supply: v.Supply(), Demand: v.Demand(), Outside: l.Outside, Seen: l.Seen, Supplies: d.Supplies[:0], Sales: d.Sales[:0], Buys: v.Buys(), Sells: v.Sells(),
		Suppliers: len(v.Suppliers()), Consumers: len(v.Consumers()), Competitors: len(v.Competitors()), Horizon: rules.Horizon, StockShrinks: rules.StockShrinks,
	}
	d.Shortfall, d.Storage = v.MeanPenalties()
	for day := today; day < min(today+rules.Horizon+1, v.Days()); day++ {
		d.Supplies = append(d.Supplies, world.Total{Quantity: v.SuppliesAt(day), Money: l.Paid[day]})
		d.Sales = append(d.Sales, world.Total{Quantity: v.SalesAt(day), Money: l.Earned[day]})
	}
}

// expected is what comes from outside, or is owed to it, on later days: the mean of the days seen,
// rounded down, and at most what can be made.
func (d *Day) expected(side int) int {
	if d.Seen == 0 {
		return 0
	}
	return min(d.Outside[side]/d.Seen, d.Lines)
}

func at(list []world.Total, i int) world.Total {
	if i < len(list) {
		return list[i]
	}
	return world.Total{}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// relative is the mean price of a total relative to a trading price, less 1; 0 of nothing.
func relative(t world.Total, trading float64) float64 {
	if t.Quantity == 0 {
		return 0
	}
	return t.Money/float64(t.Quantity)/trading - 1
}

// Write writes the vectors of the day: x_static [StaticFeatures], x_temporal [(horizon+1)·Temporal], of
// which the horizon follows, and x_role [RoleFeatures].
func (d *Day) Write(static, temporal, role []float32) {
	d.WriteFactory(static, role)
	lines := float64(d.Lines)
	for i, a := range d.ahead(len(temporal) / TemporalFeatures) {
		in, out := at(d.Supplies, i), at(d.Sales, i)
		exists := d.Today+i < d.Days
		for j, x := range [TemporalFeatures]float64{
			float64(in.Quantity) / lines,  // what is negotiated to come
			float64(out.Quantity) / lines, // and to be delivered
			relative(in, d.In.Trading),    // at which mean prices
			relative(out, d.Out.Trading),  //
			float64(a.supply) / lines,     // exogenous, today's, or what is expected
			float64(a.demand) / lines,     //
			float64(a.stock) / lines,      // stock of that morning, if nothing else is agreed
			float64(a.missing) / lines,    // what would be missing
			bit(exists),                   //
			bit(exists && i <= d.Horizon), // whether it may be agreed on
		} {
			temporal[i*TemporalFeatures+j] = float32(x)
		}
	}
}

// WriteFactory writes x_static and x_role alone.
func (d *Day) WriteFactory(static, role []float32) {
	lines := float64(d.Lines)
	for i, x := range [StaticFeatures]float64{
		d.Balance / d.Initial,                                            // money
		float64(d.Stock) / lines,                                         // stock
		float64(d.Cost) / d.Out.Trading,                                  // what making a unit costs
		d.Storage * 10,                                                   // what storing one does
		d.Shortfall,                                                      // and missing one
		float64(d.Today) / float64(d.Days),                               // how much of the world is over
		float64(d.Days-d.Today) / 200,                                    // how many days are left
		d.In.Trading / float64(d.In.Catalog),                             // prices, relative to the catalog
		d.Out.Trading / float64(d.Out.Catalog),                           //
		float64(d.Supply.Quantity) / lines,                               // exogenous supply of today
		float64(d.Demand.Quantity) / lines,                               // and demand
		(d.Out.Trading - d.In.Trading - float64(d.Cost)) / d.Out.Trading, // margin
		float64(d.Suppliers) / 6,                                         // partners and competitors
		float64(d.Consumers) / 6,                                         //
		float64(d.Competitors) / 6,                                       //
		float64(d.Level) / float64(d.Levels-1),                           // place in the chain
	} {
		static[i] = float32(x)
	}
	role[0], role[1] = float32(bit(d.Buys)), float32(bit(d.Sells))
}

// ahead is what a day comes to if nothing else is agreed.
type ahead struct{ supply, demand, stock, missing int }

// ahead goes through so many days, today first.
func (d *Day) ahead(days int) iter.Seq2[int, ahead] {
	return func(yield func(int, ahead) bool) {
		stock := d.Stock
		for i := range days {
			a := ahead{supply: d.expected(shield.Buy), demand: d.expected(shield.Sell), stock: stock}
			switch {
			case i == 0:
				a.supply, a.demand = d.Supply.Quantity, d.Demand.Quantity
			case d.Today+i >= d.Days:
				a.supply, a.demand = 0, 0
			}
			comes, owed := at(d.Supplies, i).Quantity+a.supply, at(d.Sales, i).Quantity+a.demand
			made := min(stock+comes, d.Lines, owed)
			a.missing = owed - made
			if !yield(i, a) {
				return
			}
			if d.StockShrinks {
				stock += comes - made
			} else {
				stock += max(0, comes-made)
			}
		}
	}
}

// Missing returns how many units will be missing on the days ahead that may be agreed on if nothing
// else is agreed.
func (d *Day) Missing() (units int) {
	for _, a := range d.ahead(d.Horizon + 1) {
		units += a.missing
	}
	return units
}
