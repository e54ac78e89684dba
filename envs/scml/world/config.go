package world

import (
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// Seller and Buyer are the names of what exogenous contracts are with.
const (
	Seller = "SELLER"
	Buyer  = "BUYER"
)

// Config is a world before its first day.
type Config struct {
	// Days is the number of days, Lines that of each factory's lines.
	Days, Lines int
	// Catalog has the catalog price of each product; there is one product more than levels.
	Catalog []int
	// Factories are ordered by level.
	Factories []Factory
	// Exogenous contracts are ordered by day. Agents learn of them on that day.
	Exogenous []Exogenous
	Rules     Rules
}

// Factory is what one agent owns.
type Factory struct {
	// FactoryID is the agent's, Type the name of what acts for it, which may be empty.
	ID, Type string
	Level    int
	// Cost is that of making a unit, Balance the money before the first day.
	Cost    int
	Balance float64
	// Storage and Shortfall are one coefficient for each day: the share of the trading price of the
	// input that storing a unit costs, and of the output that missing one does. The means are what
	// the agent knows of other days.
	Storage, Shortfall         []float64
	StorageMean, ShortfallMean float64
	// ShortfallDev is the standard deviation of Shortfall.
	ShortfallDev float64
}

// Exogenous is a contract with the outside: supply of product 0 to a factory of level 0, or demand
// for the last product at one of the last level.
type Exogenous struct {
	Day, Factory int
	// Demand says that the factory sells.
	Demand bool
	// Quantity is in units, Price money per unit.
	Quantity, Price int
}

// Levels returns the number of levels.
func (c *Config) Levels() int { return len(c.Catalog) - 1 }

// maxFactories bounds worlds to what numbers of two digits name.
const maxFactories = 100

// Validate reports all that is wrong.
func (c *Config) Validate() error {
	var p configs.Problems
	levels := c.Levels()
	p.AtLeast("n_steps", c.Days, 1)
	p.AtLeast("n_lines", c.Lines, 1)
	p.Check(levels >= 2, "catalog_prices", "%d prices, expected one more than there are levels, which are 2 or more", len(c.Catalog))
	for i, price := range c.Catalog {
		p.AtLeast(fmt.Sprintf("catalog_prices[%d]", i), price, 1)
	}
	p.Check(len(c.Factories) <= maxFactories, "agents", "%d agents, at most %d can be named", len(c.Factories), maxFactories)
	count, seen, last := make([]int, max(levels, 0)), map[string]bool{}, 0
	for i := range c.Factories {
		f := &c.Factories[i]
		at := "agents." + f.ID
		p.Check(f.ID != "" && f.ID != Seller && f.ID != Buyer && !seen[f.ID], fmt.Sprintf("agents[%d]", i), "id %q is empty or taken", f.ID)
		seen[f.ID] = true
		if f.Level < last || f.Level >= levels {
			p.Addf(at+".level", "is %d, expected %d … %d: agents are ordered by level", f.Level, last, levels-1)
		} else {
			last = f.Level
			count[f.Level]++
		}
		p.NonNegative(at+".cost", f.Cost)
		p.Positive(at+".initial_balance", f.Balance)
		daily(&p, at+".storage_cost_per_day", f.Storage, c.Days)
		daily(&p, at+".shortfall_penalty_per_day", f.Shortfall, c.Days)
	}
	for i, n := range count {
		p.Check(n > 0, "agents", "there is none of level %d", i)
	}
	for i, e := range c.Exogenous {
		at := fmt.Sprintf("exogenous[%d]", i)
		p.InRange(at+".day", e.Day, 0, float64(c.Days-1))
		p.NonNegative(at+".quantity", e.Quantity)
		p.NonNegative(at+".unit_price", e.Price)
		p.Check(i == 0 || e.Day >= c.Exogenous[i-1].Day, at+".day", "is %d, after %d: contracts are ordered by day", e.Day, c.Exogenous[max(i, 1)-1].Day)
		want := 0
		if e.Demand {
			want = levels - 1
		}
		if e.Factory < 0 || e.Factory >= len(c.Factories) {
			p.Addf(at, "agent %d of %d", e.Factory, len(c.Factories))
		} else if f := &c.Factories[e.Factory]; f.Level != want {
			p.Addf(at, "is of %s, expected an agent of level %d", f.ID, want)
		}
	}
	p.Join("rules", c.Rules.Validate())
	return p.Err()
}

// daily checks a list of one coefficient a day.
func daily(p *configs.Problems, key string, list []float64, days int) {
	p.Check(len(list) == days, key, "%d values, expected %d, one for each day", len(list), days)
	for day, x := range list {
		if !(x >= 0 && x-x == 0) {
			p.Addf(fmt.Sprintf("%s[%d]", key, day), "must not be negative, is %v", x)
		}
	}
}

// TypeCode returns the letters that stand for a type in the ids of its agents: the first three capitals
// of its name without Agent and OneShot, or else the first two letters. In names of three letters
// and fewer the rest follows, from the second letter on.
func TypeCode(typ string) string {
	capitals := ""
	for _, r := range strings.NewReplacer("Agent", "", "OneShot", "").Replace(typ) {
		if r >= 'A' && r <= 'Z' {
			capitals += string(r)
		}
	}
	switch {
	case len(capitals) >= 3:
		return capitals[:3]
	case len(typ) < 2:
		return typ
	case len(typ) <= 3:
		return typ[:2] + typ[1:]
	}
	return typ[:2]
}

// FactoryID returns the id of the index-th agent of a world.
func FactoryID(index, level int, typ string) string {
	return fmt.Sprintf("%02d%s@%d", index, TypeCode(typ), level)
}
