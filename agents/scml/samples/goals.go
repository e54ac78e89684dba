package samples

import (
	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs/scml/record"
	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// aim is what a factory has signed on a day for a side and a bucket. known says that price is of
// such a contract, or back-filled.
type aim struct {
	units int
	price float64
	known bool
}

// aims are those of a factory's days.
type aims [][2][scml.Buckets]aim

// infer returns the aims of all agents of a world, by index.
func infer(w *record.World, r *world.Rules, index map[string]int, whole bool) []aims {
	list := make([]aims, len(index))
	for i := range list {
		list[i] = make(aims, len(w.Played))
	}
	g := scml.Goal{Whole: whole}
	for day := range w.Played {
		d := &w.Played[day]
		for _, c := range d.Signed {
			seller, buyer := index[c.Seller], index[c.Buyer]
			b := g.Bucket(c.Time - day)
			product := w.Agents[c.Buyer].Level
			low, high := r.Prices(d.InForce[product])
			p := scml.PriceInRange(float64(c.Price), low, high)
			buy, sell := &list[buyer][day][shield.Buy][b], &list[seller][day][shield.Sell][b]
			if !buy.known || p > buy.price {
				buy.price = p
			}
			if !sell.known || p < sell.price {
				sell.price = p
			}
			for _, a := range []*aim{buy, sell} {
				a.units, a.known = a.units+c.Quantity, true
			}
		}
	}
	for _, a := range list {
		a.fill()
	}
	return list
}

// fill gives days without contracts the price of the next one with, and the last ones that of the
// one before.
func (a aims) fill() {
	for side := range 2 {
		for b := range scml.Buckets {
			next := aim{}
			for day := len(a) - 1; day >= 0; day-- {
				next = a[day][side][b].or(next)
			}
			for day := range a {
				next = a[day][side][b].or(next)
			}
		}
	}
}

// or takes the other's price where there is none, and returns what is known.
func (a *aim) or(o aim) aim {
	if !a.known && o.known {
		a.price, a.known = o.price, true
	}
	return *a
}

// goal returns the goal of a day.
func (a aims) goal(day int, d *scml.Day, whole bool) scml.Goal {
	g := scml.Goal{Whole: whole}
	from := scml.DefaultGoal(d)
	for side := range 2 {
		for b := range scml.Buckets {
			x := a[day][side][b]
			if !x.known {
				x.price = from.Targets[side][b].Price
			}
			g.Targets[side][b] = scml.Target{Quantity: x.units, Price: min(max(x.price, -1), 1)}
		}
	}
	return g
}
