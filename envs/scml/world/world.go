package world

import (
	"fmt"
	"iter"
	"slices"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// World is one run. Make one with [New]; it is not safe for concurrent use.
type World struct{ *run }

// run is all that a world has. A world whose agent does not return goes on with a copy, so that
// what the agent reads does not change under it.
type run struct {
	c       *Config
	levels  [][]int
	profile []profile
	engine  *negotiation.Engine
	views   []View
	s       state

	question Question
	closer   Closer
	boxes    []negotiation.Box
	inForce  []float64
	// lots are scratch, buysOf and sellsOf the contracts of an agent that are due.
	buys, sells      []Lot
	buysOf, sellsOf  [][]int
	able             [][]int
	outcomes         []Outcome
	delivered        []int
	statistics       Statistics
	supplyOf, demand []Total
}

// profile is what never changes of an agent.
type profile struct {
	suppliers, consumers []int
}

// state is what a run has come to, and the form of a saved one.
type state struct {
	Day      int       `json:"day"`
	Phase    phase     `json:"phase"`
	Agent    int       `json:"agent"`
	Prices   []Price   `json:"prices"`
	Accounts []account `json:"accounts"`
	// Contracts are all that were agreed, in order, and Due their indices by day of delivery.
	Contracts []Contract `json:"contracts"`
	Due       [][]int    `json:"due"`
	// Exogenous is the index of the first exogenous contract of a later day.
	Exogenous int      `json:"exogenous"`
	Reports   []Report `json:"reports"`
	// Signed is the number of contracts before the day.
	Signed int `json:"signed"`
}

// account is what a run keeps of an agent.
type account struct {
	Balance  float64 `json:"balance"`
	Stock    int     `json:"stock"`
	Bankrupt bool    `json:"bankrupt,omitempty"`
	// Supplies and Sales are what was negotiated, by day of delivery.
	Supplies []int `json:"supplies"`
	Sales    []int `json:"sales"`
	// Breaches is on how many days less was made than owed, and Breach the sum of the shares.
	Breaches int     `json:"breaches"`
	Breach   float64 `json:"breach"`
}

// Report is what is published of an agent every few days.
type Report struct {
	Day      int     `json:"day"`
	Cash     float64 `json:"cash"`
	Bankrupt bool    `json:"bankrupt"`
	// BreachProb is the share of days on which the agent could not make what it owed, BreachLevel
	// the mean share that was missing.
	BreachProb  float64 `json:"breach_prob"`
	BreachLevel float64 `json:"breach_level"`
}

// Statistics counts what happened on a day.
type Statistics struct {
	// Negotiations were made, those included that never begin; Agreements were reached.
	Negotiations int `json:"negotiations"`
	Agreements   int `json:"agreements"`
	// Concluded counts contracts as the league does, exogenous ones of day 0 twice.
	Concluded int `json:"concluded"`
	Executed  int `json:"executed"`
	Dropped   int `json:"dropped"`
	// Quantity and Money are what was delivered of each product.
	Quantity []int     `json:"quantity"`
	Money    []float64 `json:"money"`
}

// New returns a world at its beginning. sync says of each factory whether a synchronous agent
// decides for it. The world keeps c, which must not change.
func New(c *Config, sync []bool) (*World, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("new world: %w", err)
	}
	n := len(c.Factories)
	if len(sync) != n {
		return nil, fmt.Errorf("new world: %d agents for %d factories", len(sync), n)
	}
	products := c.Levels() + 1
	w := &World{&run{
		c: c, levels: make([][]int, c.Levels()), able: make([][]int, c.Levels()), profile: make([]profile, n), views: make([]View, n),
		engine: negotiation.New(sync, negotiation.Options{Rounds: c.Rules.Rounds, Passes: c.Rules.PassLimit, Finish: c.Rules.FinishAll}), boxes: make([]negotiation.Box, products), inForce: make([]float64, products),
		buysOf: make([][]int, n), sellsOf: make([][]int, n), outcomes: make([]Outcome, n), supplyOf: make([]Total, n), demand: make([]Total, n),
		s: state{Accounts: make([]account, n), Due: make([][]int, c.Days), Prices: make([]Price, products), Reports: make([]Report, n)},
	}}
	for p := range w.s.Prices {
		w.s.Prices[p] = Price{Trading: float64(c.Catalog[p]), Weight: c.Rules.PriceWeight}
		w.boxes[p] = w.box(p, 0)
	}
	for i := range c.Factories {
		f := &c.Factories[i]
		w.levels[f.Level] = append(w.levels[f.Level], i)
		w.s.Accounts[i] = account{Balance: f.Balance, Supplies: make([]int, c.Days), Sales: make([]int, c.Days)}
		w.views[i] = View{w: w.run, agent: i}
	}
	for i := range c.Factories {
		if level := c.Factories[i].Level; level > 0 {
			w.profile[i].suppliers = w.levels[level-1]
		}
		if level := c.Factories[i].Level; level+1 < len(w.levels) {
			w.profile[i].consumers = w.levels[level+1]
		}
	}
	w.statistics.Quantity, w.statistics.Money = make([]int, products), make([]float64, products)
	return w, nil
}

// fork makes the world go on with a copy of what it has. Views of it follow; others keep what they
// read as it is.
func (w *World) fork() {
	r := *w.run
	r.engine = r.engine.Fork()
	r.boxes, r.inForce, r.outcomes, r.delivered = slices.Clone(r.boxes), slices.Clone(r.inForce), slices.Clone(r.outcomes), slices.Clone(r.delivered)
	r.supplyOf, r.demand = slices.Clone(r.supplyOf), slices.Clone(r.demand)
	r.statistics.Quantity, r.statistics.Money = slices.Clone(r.statistics.Quantity), slices.Clone(r.statistics.Money)
	r.buys, r.sells = nil, nil
	r.able, r.buysOf, r.sellsOf = make([][]int, len(r.able)), make([][]int, len(r.buysOf)), make([][]int, len(r.sellsOf))
	s := &r.s
	s.Prices, s.Accounts, s.Contracts, s.Reports, s.Due = slices.Clone(s.Prices), slices.Clone(s.Accounts), slices.Clone(s.Contracts), slices.Clone(s.Reports), slices.Clone(s.Due)
	for i := range s.Accounts {
		a := &s.Accounts[i]
		a.Supplies, a.Sales = slices.Clone(a.Supplies), slices.Clone(a.Sales)
	}
	for day := range s.Due {
		s.Due[day] = slices.Clone(s.Due[day])
	}
	w.run = &r
	for i := range r.views {
		r.views[i].w = w.run
	}
	r.ask(r.question.Event, r.question.Agent)
}

// box returns the box of a product on a day.
func (w *run) box(product, day int) negotiation.Box {
	low, high := w.c.Rules.Prices(w.s.Prices[product].Trading)
	first, last := w.c.Rules.Times(day, w.c.Days)
	return negotiation.Box{Low: negotiation.Offer{Quantity: 1, Time: first, Price: low}, High: negotiation.Offer{Quantity: w.c.Rules.MaxQuantity, Time: last, Price: high}}
}

// Config returns what the world was made with.
func (w *World) Config() *Config { return w.c }

// Follow makes the negotiations of a world whose agents are all synchronous go on round by round,
// without a limit of passes: those of a log can be answered again one after the other, whatever
// agents have made them wait for. It comes before the first day.
func (w *World) Follow() { w.engine.Patient, w.engine.Passes = true, 0 }

// Watch lets a witness see the negotiations from now on. It may read the world's views, whose books
// do not have a negotiation's contract yet when the witness learns that it has ended. A [Closer]
// also learns when a day's are over.
func (w *World) Watch(n negotiation.Witness) {
	w.engine.Watch(n)
	w.closer, _ = n.(Closer)
}

// Closer is a witness that also learns when all has been negotiated on a day, and nothing was
// delivered, made or paid.
type Closer interface {
	negotiation.Witness
	Closing()
}

// View returns what an agent may know, which stays up to date.
func (w *World) View(agent int) *View { return &w.views[agent] }

// Today returns the day that is being played, or that was last.
func (w *World) Today() int { return w.s.Day }

// TradingPrice returns the trading price of a product: the one in force, and after a day's
// settlement that of the next day.
func (w *World) TradingPrice(product int) float64 { return w.s.Prices[product].Trading }

// Balance, Stock and Bankrupt are an agent's.
func (w *World) Balance(agent int) float64 { return w.s.Accounts[agent].Balance }

// Stock returns the input units that an agent keeps.
func (w *World) Stock(agent int) int { return w.s.Accounts[agent].Stock }

// Bankrupt reports whether an agent's balance has been below 0 at the end of a day.
func (w *World) Bankrupt(agent int) bool { return w.s.Accounts[agent].Bankrupt }

// Score returns an agent's balance relative to that before the first day.
func (w *World) Score(agent int) float64 {
	return w.s.Accounts[agent].Balance / w.c.Factories[agent].Balance
}

// Outcome returns what the last day brought an agent.
func (w *World) Outcome(agent int) Outcome { return w.outcomes[agent] }

// Box returns the box of a product in the last negotiations.
func (w *World) Box(product int) negotiation.Box { return w.boxes[product] }

// Contracts returns all that were agreed so far, in order. They are not to be changed.
func (w *World) Contracts() []Contract { return w.s.Contracts }

// SignedToday returns the contracts agreed on the day, in order.
func (w *World) SignedToday() []Contract { return w.s.Contracts[w.s.Signed:] }

// Reports returns what was published of each agent today, and nil on days without reports.
func (w *World) Reports() []Report {
	if w.s.Day%w.c.Rules.ReportPeriod != 0 {
		return nil
	}
	return w.s.Reports
}

// Statistics returns what happened on the last day. It is valid until the next one.
func (w *World) Statistics() *Statistics { return &w.statistics }

// PriceInForce returns the trading price that the day was negotiated and penalised at.
func (w *World) PriceInForce(product int) float64 { return w.inForce[product] }

// Due is a contract whose day of delivery has come: the Rank-th of those agreed on day Signed.
type Due struct {
	Contract
	Rank int
}

// DueToday iterates over the negotiated contracts that were to be delivered on the day.
func (w *World) DueToday() iter.Seq[Due] {
	return func(yield func(Due) bool) {
		for _, k := range w.s.Due[w.s.Day] {
			c, rank := w.s.Contracts[k], 0
			for rank < k && w.s.Contracts[k-rank-1].Signed == c.Signed {
				rank++
			}
			if !yield(Due{c, rank}) {
				return
			}
		}
	}
}
