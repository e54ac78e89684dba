package world

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Range is a uniform distribution; both ends may be drawn where it is of integers.
type Range struct {
	Low, High float64
}

func (r Range) draw(s *rng.Stream) float64 { return r.Low + float64((r.High-r.Low)*s.Float64()) }

func (r Range) integer(s *rng.Stream) int { return int(r.Low) + s.IntN(int(r.High)-int(r.Low)+1) }

// Generator has the distributions that worlds are drawn from.
type Generator struct {
	// Days is an integer.
	Days Range
	// Lines of each factory.
	Lines int
	// Cost of a unit, an integer; it is multiplied by one more than the level.
	Cost Range
	// Margin is the profit, relative to all costs, that catalog prices leave to a level, MarginDev
	// its standard deviation over days. The league asks for 0.05 of it and gets 0, a defect.
	Margin    Range
	MarginDev float64
	// Productivity is the share of a level's lines that is needed on a day, Supply that of the
	// first level's lines for which there is raw material.
	Productivity, Supply Range
	// Cash is the money of a factory, relative to what producing costs on all days.
	Cash Range
	// Storage and Shortfall are the means of a factory's coefficients, ShortfallDev the standard
	// deviation of the second, relative to its mean.
	Storage, Shortfall, ShortfallDev Range
	// ExogenousPriceDev is the relative standard deviation of exogenous prices, one for a world,
	// and Predictability how much the shares of factories stay the same, one for supply and one for
	// demand.
	ExogenousPriceDev, Predictability Range
	// RawPrice is the catalog price of product 0.
	RawPrice int
	Rules    Rules
}

// StandardLeague returns the distributions of the tournament of 2025.
func StandardLeague() Generator {
	return Generator{
		Days: Range{50, 200}, Lines: 10,
		Cost: Range{1, 4}, Margin: Range{0.1, 0.2}, Productivity: Range{0.8, 1}, Supply: Range{0.2, 1}, Cash: Range{1.5, 2.5},
		Storage: Range{0.01, 0.05}, Shortfall: Range{0.2, 1}, ShortfallDev: Range{0, 0.1},
		ExogenousPriceDev: Range{0.1, 0.2}, Predictability: Range{0, 0.7}, RawPrice: 10, Rules: DefaultRules(),
	}
}

// Validate reports all that is wrong.
func (g *Generator) Validate() error {
	var p configs.Problems
	for _, r := range []struct {
		key   string
		r     Range
		least float64
	}{
		{"days", g.Days, 1}, {"cost", g.Cost, 0}, {"margin", g.Margin, 0}, {"productivity", g.Productivity, 0}, {"supply", g.Supply, 0}, {"cash", g.Cash, 0},
		{"storage", g.Storage, 0}, {"shortfall", g.Shortfall, 0}, {"shortfall_dev", g.ShortfallDev, 0}, {"exogenous_price_dev", g.ExogenousPriceDev, 0}, {"predictability", g.Predictability, 0},
	} {
		p.AtLeast(r.key+".low", r.r.Low, r.least)
		p.AtLeast(r.key+".high", r.r.High, r.r.Low)
	}
	p.AtLeast("lines", g.Lines, 1)
	p.AtLeast("raw_price", g.RawPrice, 1)
	p.NonNegative("margin_dev", g.MarginDev)
	p.Join("rules", g.Rules.Validate())
	return p.Err()
}

// Draw returns a world of levels of these sizes. types names what acts for each factory, in order;
// it may be nil. Equal keys, sizes and generators give equal worlds whatever the types are.
//
// Productivity limits demand at each level; supply is drawn first. Prices follow from costs: what
// all raw material costs, and making it, plus a margin, is what a level's output sells for.
func (g *Generator) Draw(key rng.Key, sizes []int, types []string) (*Config, error) {
	if err := g.Validate(); err != nil {
		return nil, fmt.Errorf("draw a world: %w", err)
	}
	n := 0
	for _, size := range sizes {
		n += size
	}
	if types != nil && len(types) != n {
		return nil, fmt.Errorf("draw a world: %d types for %d agents", len(types), n)
	}
	s := key.Split("world").Stream()
	levels := len(sizes)
	c := &Config{Days: g.Days.integer(s), Lines: g.Lines, Catalog: make([]int, levels+1), Rules: g.Rules}
	for level, size := range sizes {
		for range size {
			f := Factory{Level: level, Cost: g.Cost.integer(s) * (level + 1), ShortfallMean: g.Shortfall.draw(s), StorageMean: g.Storage.draw(s)}
			f.ShortfallDev = float64(f.ShortfallMean * g.ShortfallDev.draw(s))
			if i := len(c.Factories); types != nil {
				f.Type = types[i]
			}
			f.ID = FactoryID(len(c.Factories), level, f.Type)
			c.Factories = append(c.Factories, f)
		}
	}
	supplies, sales := g.quantities(s, sizes, c.Days)
	last := g.price(s, c, sizes, supplies)
	g.contracts(s, c, sizes, supplies, sales, last)
	for i := range c.Factories {
		f := &c.Factories[i]
		f.Storage, f.Shortfall = make([]float64, c.Days), make([]float64, c.Days)
		for day := range c.Days {
			f.Storage[day] = f.StorageMean
			f.Shortfall[day] = math.Abs(f.ShortfallMean + float64(f.ShortfallDev*s.Normal()))
		}
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("draw a world: %w", err)
	}
	return c, nil
}

// quantities draws what is supplied to each factory of the first level and demanded of each of the
// last, by day.
func (g *Generator) quantities(s *rng.Stream, sizes []int, days int) (supplies, sales [][]int) {
	lines := func(level int, share float64) int {
		return int(math.RoundToEven(float64(float64(g.Lines*sizes[level]) * share)))
	}
	first, last := make([]int, days), make([]int, days)
	for day := range days {
		first[day] = lines(0, g.Supply.draw(s))
		last[day] = first[day]
		for level := range sizes {
			last[day] = min(last[day], lines(level, g.Productivity.draw(s)))
		}
	}
	forSales, forSupply := g.Predictability.draw(s), g.Predictability.draw(s)
	return spread(s, first, forSupply, sizes[0]), spread(s, last, forSales, sizes[len(sizes)-1])
}

// price sets the catalog and the balances, and returns the price of the last product on each day.
func (g *Generator) price(s *rng.Stream, c *Config, sizes []int, supplies [][]int) []float64 {
	cash := g.Cash.draw(s)
	total, income := make([]float64, c.Days), make([]float64, c.Days)
	for day, row := range supplies {
		for _, q := range row {
			total[day] += float64(q)
		}
		income[day] = float64(total[day] * float64(g.RawPrice))
	}
	price := make([]float64, c.Days)
	c.Catalog[0] = g.RawPrice
	for level, size := range sizes {
		dearest := 0
		for i := range c.Factories {
			if f := &c.Factories[i]; f.Level == level {
				dearest = max(dearest, f.Cost)
			}
		}
		margin, spent, highest := g.Margin.draw(s), 0.0, 1.0
		for day := range c.Days {
			cost := income[day] + float64(float64(dearest)*total[day])
			spent += cost
			m := margin
			if g.MarginDev > 0 {
				m = max(0, margin+float64(g.MarginDev*s.Normal()))
			}
			income[day] = math.Ceil(float64(cost * (1 + m)))
			if total[day] > 0 {
				price[day] = math.Ceil(income[day] / total[day])
			}
			if day >= level+1 || c.Days <= level+1 {
				highest = max(highest, price[day])
			}
		}
		c.Catalog[level+1] = int(highest)
		for i := range c.Factories {
			if f := &c.Factories[i]; f.Level == level {
				f.Balance = math.Ceil(float64(math.Ceil(spent/float64(size)) * cash))
			}
		}
	}
	return price
}

// contracts draws the prices of what comes from outside and goes there.
func (g *Generator) contracts(s *rng.Stream, c *Config, sizes []int, supplies, sales [][]int, last []float64) {
	dev := g.ExogenousPriceDev.draw(s)
	at := func(price float64) int {
		return int(0.5 + price + float64(float64(s.Normal()*dev)*price))
	}
	final := len(c.Factories) - sizes[len(sizes)-1]
	for day := range c.Days {
		for i, q := range supplies[day] {
			if q > 0 {
				c.Exogenous = append(c.Exogenous, Exogenous{Day: day, Factory: i, Quantity: q, Price: max(0, at(float64(g.RawPrice)))})
			}
		}
		for i, q := range sales[day] {
			if q > 0 {
				c.Exogenous = append(c.Exogenous, Exogenous{Day: day, Factory: final + i, Demand: true, Quantity: q, Price: max(0, at(last[day]))})
			}
		}
	}
}
