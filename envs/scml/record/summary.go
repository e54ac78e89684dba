package record

import (
	"cmp"
	"fmt"
	"io"
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/printable"
)

// Summary is what came of a world. The keys are stable.
type Summary struct {
	Seed   int64 `json:"seed"`
	Levels int   `json:"n_processes"`
	Days   int   `json:"n_steps"`
	// Played is how many days there are.
	Played    int       `json:"days_played"`
	Contracts int       `json:"contracts"`
	Agents    []Result  `json:"agents"`
	Products  []Product `json:"products"`
	// Flows are what was delivered between two agents, or an agent and the outside.
	Flows []Flow `json:"flows"`
	// Talks are what the negotiations of an official folder came to, where it has them; Cut says
	// that their table was not written to its end.
	Talks []Talks `json:"negotiations,omitempty"`
	Cut   bool    `json:"negotiations_cut,omitempty"`
}

// Result is an agent's.
type Result struct {
	ID      string  `json:"id"`
	Type    string  `json:"type"`
	Level   int     `json:"level"`
	Cost    int     `json:"cost"`
	Initial float64 `json:"initial_balance"`
	Balance float64 `json:"balance"`
	Score   float64 `json:"score"`
	// BankruptOn is the day, -1 for none.
	BankruptOn int `json:"bankrupt_on"`
	// In and Out are what was delivered to the agent and what it owed, with the mean unit prices.
	In       int     `json:"quantity_in"`
	PriceIn  float64 `json:"mean_price_in"`
	Out      int     `json:"quantity_out"`
	PriceOut float64 `json:"mean_price_out"`
	// Productivity is the mean share of its lines that made something.
	Productivity float64 `json:"productivity"`
	Missing      int     `json:"shortfall_quantity"`
	Penalties    float64 `json:"shortfall_penalty"`
	StorageCost  float64 `json:"storage_cost"`
	Stock        int     `json:"inventory_input"`
}

// Product is one of the chain.
type Product struct {
	Product   int     `json:"product"`
	Catalog   int     `json:"catalog_price"`
	Trading   float64 `json:"trading_price"`
	Lowest    float64 `json:"lowest_trading_price"`
	Highest   float64 `json:"highest_trading_price"`
	Contracts int     `json:"contracts"`
	Quantity  int     `json:"quantity"`
	UnitPrice float64 `json:"mean_unit_price"`
}

// Flow is what one agent has delivered to another.
type Flow struct {
	Product   int     `json:"product"`
	Seller    string  `json:"seller"`
	Buyer     string  `json:"buyer"`
	Contracts int     `json:"contracts"`
	Quantity  int     `json:"quantity"`
	UnitPrice float64 `json:"mean_unit_price"`
}

// trade adds up contracts.
type trade struct {
	contracts, quantity int
	money               float64
}

func (t *trade) add(quantity, price int) {
	t.contracts++
	t.quantity += quantity
	t.money += float64(quantity * price)
}

func (t *trade) mean() float64 {
	if t.quantity == 0 {
		return 0
	}
	return t.money / float64(t.quantity)
}

// Summarise adds up what was delivered on the days that the file has.
func (w *World) Summarise() *Summary {
	s := &Summary{Seed: w.Seed, Levels: w.Levels, Days: w.Days, Played: len(w.Played), Agents: []Result{}, Products: []Product{}, Flows: []Flow{}}
	dropped := map[string]bool{}
	for i := range w.Played {
		for _, id := range w.Played[i].Dropped {
			dropped[id] = true
		}
	}
	flows, in, out := map[Flow]*trade{}, map[string]*trade{}, map[string]*trade{}
	for _, m := range []map[string]*trade{in, out} {
		for id := range w.Agents {
			m[id] = new(trade)
		}
		m[world.Seller], m[world.Buyer] = new(trade), new(trade)
	}
	products := make([]trade, len(w.Catalog))
	add := func(product int, seller, buyer string, quantity, price int) {
		key := Flow{Product: product, Seller: seller, Buyer: buyer}
		if flows[key] == nil {
			flows[key] = new(trade)
		}
		for _, t := range []*trade{flows[key], in[buyer], out[seller], &products[product]} {
			t.add(quantity, price)
		}
	}
	for _, e := range w.Exogenous {
		if e.Day < len(w.Played) {
			add(e.Product, e.Seller, e.Buyer, e.Quantity, e.Price)
		}
	}
	for i := range w.Played {
		s.Contracts += len(w.Played[i].Signed)
		for _, c := range w.Played[i].Signed {
			if c.Time < len(w.Played) && !dropped[c.ID] {
				add(w.Agents[c.Buyer].Level, c.Seller, c.Buyer, c.Quantity, c.Price)
			}
		}
	}
	for key, t := range flows {
		key.Contracts, key.Quantity, key.UnitPrice = t.contracts, t.quantity, t.mean()
		s.Flows = append(s.Flows, key)
	}
	slices.SortFunc(s.Flows, func(a, b Flow) int {
		return cmp.Or(cmp.Compare(a.Product, b.Product), cmp.Compare(a.Seller, b.Seller), cmp.Compare(a.Buyer, b.Buyer))
	})
	for _, id := range w.IDs() {
		s.Agents = append(s.Agents, w.result(id, in[id], out[id]))
	}
	for p, t := range products {
		x := Product{Product: p, Catalog: w.Catalog[p], Trading: float64(w.Catalog[p]), Lowest: float64(w.Catalog[p]), Highest: float64(w.Catalog[p]), Contracts: t.contracts, Quantity: t.quantity, UnitPrice: t.mean()}
		for i := range w.Played {
			x.Trading = at(w.Played[i].End.Trading, p)
			x.Lowest, x.Highest = min(x.Lowest, x.Trading), max(x.Highest, x.Trading)
		}
		s.Products = append(s.Products, x)
	}
	return s
}

func (w *World) result(id string, in, out *trade) Result {
	a := w.Agents[id]
	r := Result{ID: id, Type: a.Type, Level: a.Level, Cost: a.Cost, Initial: a.Balance, Balance: a.Balance, Score: 1, BankruptOn: -1, In: in.quantity, PriceIn: in.mean(), Out: out.quantity, PriceOut: out.mean()}
	for i := range w.Played {
		e := w.Played[i].End.Agents[id]
		if e.Bankrupt && r.BankruptOn < 0 {
			r.BankruptOn = i
		}
		r.Balance, r.Score, r.Stock = e.Balance, e.Score, e.Stock
		r.Productivity += e.Productivity / float64(len(w.Played))
		r.Missing += e.Missing
		r.Penalties += e.Penalty
		r.StorageCost += e.StorageCost
	}
	return r
}

// Print writes it as tables.
func (s *Summary) Print(out io.Writer) error {
	fmt.Fprintf(out, "%d levels, %d of %d days, %d contracts\n\n", s.Levels, s.Played, s.Days, s.Contracts)
	w := printable.NewNumbers(out)
	fmt.Fprintln(w, "agent\ttype\tcost\tbalance\tscore\tin\tat\tout\tat\tlines used\tshort\tpenalties\tstorage\tstock\tbankrupt\t")
	for _, a := range s.Agents {
		bankrupt := ""
		if a.BankruptOn >= 0 {
			bankrupt = fmt.Sprintf("day %d", a.BankruptOn)
		}
		fmt.Fprintf(w, "%s\t%s\t%d\t%.0f\t%.3f\t%d\t%.2f\t%d\t%.2f\t%.0f%%\t%d\t%.0f\t%.0f\t%d\t%s\t\n", a.ID, a.Type, a.Cost, a.Balance, a.Score, a.In, a.PriceIn, a.Out, a.PriceOut, 100*a.Productivity, a.Missing, a.Penalties, a.StorageCost, a.Stock, bankrupt)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	w = printable.NewNumbers(out)
	fmt.Fprintln(w, "product\tcatalog\ttrading price\tlowest\thighest\tdelivered\tat\tcontracts\t")
	for _, p := range s.Products {
		fmt.Fprintf(w, "%d\t%d\t%.2f\t%.2f\t%.2f\t%d\t%.2f\t%d\t\n", p.Product, p.Catalog, p.Trading, p.Lowest, p.Highest, p.Quantity, p.UnitPrice, p.Contracts)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if err := s.printTalks(out); err != nil {
		return err
	}
	return s.printFlows(out)
}

// printFlows writes one table for each product that was negotiated: sellers in rows, buyers in
// columns.
func (s *Summary) printFlows(out io.Writer) error {
	for p := range s.Products {
		var sellers, buyers []string
		quantity := map[[2]string]int{}
		for _, f := range s.Flows {
			if f.Product != p || f.Seller == world.Seller || f.Buyer == world.Buyer {
				continue
			}
			sellers, buyers = append(sellers, f.Seller), append(buyers, f.Buyer)
			quantity[[2]string{f.Seller, f.Buyer}] = f.Quantity
		}
		slices.Sort(sellers)
		slices.Sort(buyers)
		sellers, buyers = slices.Compact(sellers), slices.Compact(buyers)
		if len(sellers) == 0 {
			continue
		}
		fmt.Fprintf(out, "\nunits of product %d, from rows to columns\n", p)
		w := printable.NewNumbers(out)
		fmt.Fprint(w, "\t")
		for _, b := range buyers {
			fmt.Fprint(w, b, "\t")
		}
		fmt.Fprintln(w)
		for _, seller := range sellers {
			fmt.Fprint(w, seller, "\t")
			for _, b := range buyers {
				fmt.Fprint(w, quantity[[2]string{seller, b}], "\t")
			}
			fmt.Fprintln(w)
		}
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}
