package record

import (
	"fmt"

	"github.com/onnxrl/onnxrl/envs/scml/world"
)

// Recorder makes a file of a run. Make one before the first day; call Day after each one.
type Recorder struct {
	w    *world.World
	file *World
	ids  []string
}

// NewRecorder begins a file of w.
func NewRecorder(w *world.World, seed int64) *Recorder {
	c := w.Config()
	r := &Recorder{w: w, file: Of(c)}
	r.file.Seed = seed
	for i := range c.Factories {
		r.ids = append(r.ids, c.Factories[i].ID)
	}
	return r
}

// Of returns a world that has not begun as a file.
func Of(c *world.Config) *World {
	f := &World{Levels: c.Levels(), Days: c.Days, Catalog: c.Catalog, Lines: c.Lines, Rules: &c.Rules, Agents: map[string]Agent{}, Exogenous: []Exogenous{}}
	if limit := c.Rules.PassLimit; limit > 0 {
		f.PassLimit = &limit
	}
	for i := range c.Factories {
		a := &c.Factories[i]
		f.Agents[a.ID] = Agent{Type: a.Type, Level: a.Level, Cost: a.Cost, Balance: a.Balance, Storage: a.Storage, Shortfall: a.Shortfall, StorageMean: a.StorageMean, ShortfallMean: a.ShortfallMean}
	}
	for _, e := range c.Exogenous {
		x := Exogenous{Day: e.Day, Seller: world.Seller, Buyer: c.Factories[e.Factory].ID, Quantity: e.Quantity, Price: e.Price}
		if e.Demand {
			x.Product, x.Seller, x.Buyer = c.Levels(), x.Buyer, world.Buyer
		}
		f.Exogenous = append(f.Exogenous, x)
	}
	return f
}

// Day records the day that was settled.
func (r *Recorder) Day() {
	d := Day{Day: r.w.Today(), InForce: []float64{}, Signed: []Contract{}, Executed: []string{}, Dropped: []string{}}
	for p := range r.file.Catalog {
		box := r.w.Box(p)
		d.Issues = append(d.Issues, [3][2]int{{box.Low.Quantity, box.High.Quantity}, {box.Low.Time, box.High.Time}, {box.Low.Price, box.High.Price}})
		d.InForce = append(d.InForce, r.w.PriceInForce(p))
	}
	for k, c := range r.w.SignedToday() {
		d.Signed = append(d.Signed, Contract{ID: contractID(c.Signed, k), Seller: r.ids[c.Seller], Buyer: r.ids[c.Buyer], Quantity: c.Quantity, Time: c.Time, Price: c.Price, Rounds: c.Rounds})
	}
	d.End = end(r.w, r.ids)
	for due := range r.w.DueToday() {
		id := contractID(due.Signed, due.Rank)
		if due.Dropped {
			d.Dropped = append(d.Dropped, id)
		} else {
			d.Executed = append(d.Executed, id)
		}
	}
	st := r.w.Statistics()
	d.Negotiations, d.Concluded, d.Reports = st.Negotiations, st.Concluded, reports(r.w, r.ids)
	r.file.Played = append(r.file.Played, d)
}

// contractID names the rank-th contract of a day.
func contractID(day, rank int) string { return fmt.Sprintf("%d.%d", day, rank) }

// File returns the file of the days recorded so far.
func (r *Recorder) File() *World {
	r.file.Scores = map[string]float64{}
	for i, id := range r.ids {
		r.file.Scores[id] = r.w.Score(i)
	}
	return r.file
}

// reports returns what is published of the agents, nil on most days.
func reports(w *world.World, ids []string) map[string]Report {
	list := w.Reports()
	if list == nil {
		return nil
	}
	m := map[string]Report{}
	for i, r := range list {
		m[ids[i]] = Report{r.Cash, r.BreachProb, r.BreachLevel, r.Bankrupt}
	}
	return m
}

// end returns what there is after a day.
func end(w *world.World, ids []string) End {
	e := End{Agents: map[string]Last{}}
	st := w.Statistics()
	for p, q := range st.Quantity {
		e.Trading, e.Quantity = append(e.Trading, w.TradingPrice(p)), append(e.Quantity, q)
		unit := 0.0
		if q > 0 {
			unit = st.Money[p] / float64(q)
		}
		e.UnitPrice = append(e.UnitPrice, unit)
	}
	for i, id := range ids {
		o := w.Outcome(i)
		e.Agents[id] = Last{
			Balance: w.Balance(i), Score: w.Score(i), Bankrupt: w.Bankrupt(i), Productivity: float64(o.Made) / float64(w.Config().Lines),
			Missing: o.Missing, Penalty: o.Penalty, StorageCost: o.Kept, Left: o.Left, Stock: w.Stock(i),
		}
	}
	return e
}
