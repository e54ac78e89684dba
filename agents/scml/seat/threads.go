package seat

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/agents/scml"
	"github.com/onnxrl/onnxrl/agents/scml/shield"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/scml/world"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The tasks that an environment of threads can learn.
const (
	Residuals = "residual"
	Weights   = "weights"
)

// positions are the names of the agents, one for each partner that a factory may have.
var positions = func() (list []string) {
	for i := range scml.Threads {
		list = append(list, fmt.Sprintf("partner_%d", i))
	}
	return list
}()

// Situation is how many numbers the critics' observation of the factory has: those of the morning
// that are not of days ahead, what the day's goal lacks by side and bucket, and how many
// negotiations are to be answered.
const Situation = scml.StaticFeatures + scml.RoleFeatures + 2*scml.Buckets + 1

// The fields that are central.
const (
	fieldOfSituation = "situation"
	fieldOfMarket    = "market"
	fieldOfLimits    = "limits"
)

// Situate writes what critics see of a factory [Situation], when so many negotiations are to be
// answered. now is scratch.
func Situate(a *scml.Agent, now *scml.Day, v *world.View, threads int, to []float32) {
	now.Read(v, &a.Ledger)
	now.WriteFactory(to[:scml.StaticFeatures], to[scml.StaticFeatures:scml.StaticFeatures+scml.RoleFeatures])
	rest := to[scml.StaticFeatures+scml.RoleFeatures:]
	g, agreed := a.Goal()
	for side := range 2 {
		for b, t := range g.Targets[side] {
			rest[side*scml.Buckets+b] = float32(float64(t.Quantity-agreed[side][b]) / float64(v.Lines()))
		}
	}
	rest[2*scml.Buckets] = float32(float64(threads) / scml.Threads)
}

// WriteLimits writes [scml.Agent.Limits] of a thread: the least of each component of its
// residual, then the greatest.
func WriteLimits(a *scml.Agent, t *scml.Thread, to []float32) {
	low, high := a.Limits(t)
	copy(to, low[:])
	copy(to[scml.Residual:], high[:])
}

// The terms of the rewards.
const (
	termShared = iota
	termOwn
	termPrice
	termLiquidity
	termUnits
	termPrices
	terms
)

var termNames = []string{"shared", "own", "price", "liquidity", "target_units", "target_prices"}

// Threads is the environment of the executor or the coordinator: a world whose agents are the
// partners of a factory, or rather its own parts that answer them. It implements envs.Multi.
type Threads struct {
	seat
	c     ThreadsConfig
	spec  envs.Spec
	names []string
	// places has the agent of each index of the world's, −1 for who is no partner; count is how
	// many partners there are.
	places []int
	count  int
	// threads are to be answered, row[i] is the agent of the i-th.
	threads []scml.Thread
	row     []int
	// now is the situation at the question.
	now     scml.Day
	s       threadsState
	over    bool
	running bool
	closed  bool
	// earned are the terms of each agent since the question before.
	earned [scml.Threads][terms]float64
	// all are the vectors of the threads, absent ones as zeros.
	all, histories, situation, market, goal []float32
}

// threadsState is what rewards are measured from.
type threadsState struct {
	// Worth is that of the factory at the last question or contract.
	Worth float64 `json:"worth"`
	// Missing is what was missing on the day before.
	Missing int  `json:"missing,omitempty"`
	First   bool `json:"first,omitempty"`
}

var (
	_ envs.Multi      = (*Threads)(nil)
	_ envs.MultiSaver = (*Threads)(nil)
)

// NewThreads returns an environment. The roster is that of NewGoals.
func NewThreads(c ThreadsConfig, r *scml.Roster) (*Threads, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("scml_threads: %w", err)
	}
	var layers scml.Layers
	switch {
	case c.Layers != "":
		var err error
		if layers, err = r.Layers(c.Layers); err != nil {
			return nil, fmt.Errorf("scml_threads: layers: %w", err)
		}
	case c.Action == Weights:
		return nil, fmt.Errorf("scml_threads: %w", &envs.NotGivenError{Key: "layers", Expected: fmt.Sprintf(needsExecutor, Weights)})
	}
	if c.Action == Residuals {
		layers.Executor, layers.Direct = nil, c.Direct
	} else {
		layers.Coordinator = nil
	}
	inf := math.Inf(1)
	e := &Threads{seat: seat{w: c.Worlds, roster: r, agent: scml.NewAgent(layers)}, c: c, names: positions, spec: envs.Spec{
		Name: "scml_threads", Observation: c.observation(), Action: envs.NewBox(-1, 1, c.size()), Joint: true, Reward: envs.Range{Low: -inf, High: inf}, Info: append(append([]string{}, infoNames...), termNames...), Random: true,
	}}
	e.all, e.histories = make([]float32, scml.Threads*scml.ThreadFeatures), make([]float32, scml.Threads*scml.Moves*scml.MoveFeatures)
	e.situation, e.market, e.goal = make([]float32, Situation), make([]float32, Market), make([]float32, scml.FullGoal)
	e.signed = e.deal
	return e, nil
}

// size is how many numbers an action has.
func (c *ThreadsConfig) size() int {
	switch {
	case c.Action == Weights:
		return 1
	case c.Direct:
		return scml.Direct
	}
	return scml.Residual
}

// observation is what the networks of package scml read, by their names, and what is central.
// What the coordinator reads begins with the set of threads, as encoder.kind set expects it.
func (c *ThreadsConfig) observation() envs.Dict {
	of := func(name string, central bool, dims ...int) envs.Field {
		return envs.Field{Name: name, Space: envs.Unbounded(dims...), Central: central}
	}
	const all = scml.Threads * scml.ThreadFeatures
	central := envs.Dict{of(fieldOfSituation, true, Situation), of(fieldOfMarket, true, Market)}
	if c.Action == Weights {
		return append(envs.Dict{
			of(scml.InputThreads, false, all), of(scml.InputPresent, false, scml.Threads), of(scml.InputOneself, false, scml.Threads),
			of(scml.InputHistory, false, scml.Moves*scml.MoveFeatures), of(scml.InputGoal, false, scml.FullGoal),
		}, central...)
	}
	if !c.Direct {
		central = append(central, of(fieldOfLimits, true, 2*scml.Residual))
	}
	return append(envs.Dict{
		of(scml.InputThread, false, scml.ThreadFeatures), of(scml.InputHistory, false, scml.Moves, scml.MoveFeatures), of(scml.InputGoal, false, scml.FullGoal),
	}, central...)
}

// Spec implements envs.Multi.
func (e *Threads) Spec() envs.Spec { return e.spec }

// Agents implements envs.Multi.
func (e *Threads) Agents() []string { return e.names }

// Reset implements envs.Multi.
func (e *Threads) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	if e.closed {
		return fmt.Errorf("reset scml_threads: %w", envs.ErrClosed)
	}
	e.running = false
	if err := e.sit(key, e.w); err != nil {
		return fmt.Errorf("reset scml_threads: %w", err)
	}
	e.s = threadsState{First: true}
	clear(e.earned[:])
	if err := e.advance(); err != nil {
		return fmt.Errorf("reset scml_threads: %w", err)
	}
	e.running, e.s.Worth = true, e.worth()
	clear(e.earned[:])
	e.show(steps, present)
	for i := range e.count {
		steps[i].Restart()
	}
	return nil
}

// sit begins a world, and gives each partner an agent.
func (e *Threads) sit(key rng.Key, w Worlds) error {
	if err := e.begin(key, w); err != nil {
		return err
	}
	e.places, e.count = e.places[:0], 0
	for range e.v.Agents() {
		e.places = append(e.places, -1)
	}
	seatAll := func(list []int) {
		for _, i := range list {
			e.places[i] = e.count
			e.count++
		}
	}
	if e.v.Buys() {
		seatAll(e.v.Suppliers())
	}
	if e.v.Sells() {
		seatAll(e.v.Consumers())
	}
	if e.count < 1 || e.count > scml.Threads {
		return fmt.Errorf("a factory with %d partners, and 1 to %d are possible; fewer competitors make smaller levels", e.count, scml.Threads)
	}
	return nil
}

// advance plays up to the next question with something to answer, or the end of the world.
func (e *Threads) advance() error {
	e.threads, e.row, e.over = nil, e.row[:0], false
	for {
		q := e.next()
		switch q.Event {
		case world.DayBegins:
			if e.v.Today() > 0 {
				e.dayOver()
			}
			g, err := e.agent.Aim(e.agent.Today())
			if err != nil {
				return err
			}
			e.agent.Set(g)
		case world.AskFirst, world.AskCounters:
			threads := e.agent.Prepare(q.Heard, q.Event == world.AskFirst, len(q.Replies))
			if len(threads) > 0 {
				return e.asked(threads)
			}
			e.agent.Finish(q.Replies)
		case world.Over:
			e.dayOver()
			e.over = true
			return nil
		}
	}
}

// asked takes the threads of a question, to which the layers that are not learnt have their say.
func (e *Threads) asked(threads []scml.Thread) error {
	e.threads, e.row = threads, e.row[:0]
	for i := range threads {
		e.row = append(e.row, e.places[e.v.Partner(threads[i].Slot)])
	}
	if e.c.Action == Weights {
		return e.agent.Ask(threads)
	}
	if weigh := e.agent.Layers.Coordinator; weigh != nil && !e.c.Direct {
		if err := weigh(threads); err != nil {
			return fmt.Errorf("the coordinator: %w", err)
		}
	}
	return nil
}

// dayOver measures how far a day has missed its goal, which all agents answer for.
func (e *Threads) dayOver() {
	e.s.Missing = e.table.Outcome(e.place).Missing
	g, agreed := e.agent.Goal()
	off := 0.0
	for side := range 2 {
		for b, t := range g.Targets[side] {
			gap := max(t.Quantity-agreed[side][b], agreed[side][b]-t.Quantity)
			off += float64(gap) * e.table.TradingPrice(e.v.Level()+side)
		}
	}
	for i := range e.count {
		e.earned[i][termUnits] -= off / float64(e.count)
	}
}

// deal measures a contract of the agent's.
func (e *Threads) deal(c *world.Contract) {
	side, partner, sign := shield.Buy, c.Seller, 1.0
	if c.Seller == e.place {
		side, partner, sign = shield.Sell, c.Buyer, -1
	}
	before := e.s.Worth
	e.s.Worth = e.worth()
	at := e.places[partner]
	if at < 0 {
		return
	}
	own, units, trading := &e.earned[at], float64(c.Quantity), e.table.TradingPrice(e.v.Level()+side)
	own[termOwn] += e.s.Worth - before
	own[termPrice] += sign * units * (trading - float64(c.Price))
	own[termLiquidity] += units * trading
	g, _ := e.agent.Goal()
	box := e.table.Box(e.v.Level() + side)
	target := scml.PriceFromRange(g.Targets[side][g.Bucket(c.Time-e.v.Today())].Price, &box)
	own[termPrices] -= units * math.Abs(float64(c.Price-target))
	for i := range e.count {
		e.earned[i][termShared] += e.s.Worth - before
	}
}

// worth is what a factory has: its balance, and what the days ahead come to if nothing else is
// agreed, at today's trading prices, and after the last of them the stock that its lines can use,
// where the factory can sell what is made of it.
func (e *Threads) worth() float64 {
	if e.over {
		return e.table.Balance(e.place)
	}
	d, v := &e.now, e.v
	d.Read(v, &e.agent.Ledger)
	worth, stock := d.Balance, d.Stock
	shortfall, storage := v.MeanPenalties()
	penalty, keep := shortfall*d.Out.Trading, storage*d.In.Trading
	for i := range d.Supplies {
		in, out, price := d.Supplies[i].Quantity, d.Sales[i].Quantity, 0.0
		worth -= d.Supplies[i].Money
		owed := d.Sales[i].Money
		supply, demand := d.Supply, d.Demand
		if i > 0 {
			supply.Quantity, demand.Quantity = e.agent.Expected(shield.Buy), e.agent.Expected(shield.Sell)
			supply.Money, demand.Money = float64(supply.Quantity)*d.In.Trading, float64(demand.Quantity)*d.Out.Trading
		}
		in, out = in+supply.Quantity, out+demand.Quantity
		worth -= supply.Money
		owed += demand.Money
		if out > 0 {
			price = owed / float64(out)
		}
		made := min(stock+in, d.Lines, out)
		worth += float64(made)*(price-float64(d.Cost)) - float64(out-made)*penalty - float64(stock+in-made)*keep
		if d.StockShrinks {
			stock += in - made
		} else {
			stock += max(0, in-made)
		}
	}
	if d.Today+len(d.Supplies) < d.Days && (d.Sells || v.Last()) {
		worth += e.c.Inventory * float64(min(stock, d.Lines)) * d.In.Trading
	}
	return worth
}

// Step implements envs.Multi.
func (e *Threads) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	switch {
	case e.closed:
		return fmt.Errorf("step scml_threads: %w", envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step scml_threads: %w", envs.ErrNoEpisode)
	}
	for i := range e.count {
		if err := envs.CheckAction(&e.spec, actions[i]); err != nil {
			return err
		}
	}
	if !e.over {
		for i := range e.threads {
			t, a := &e.threads[i], actions[e.row[i]].Float32s()
			if e.c.Action == Weights {
				t.Weight = scml.Weight(a[0])
			} else {
				copy(t.Residual[:], a)
			}
		}
		e.agent.Finish(e.table.Question().Replies)
		if err := e.advance(); err != nil {
			e.running = false
			return fmt.Errorf("step scml_threads: %w", err)
		}
	}
	before := e.s.Worth
	e.s.Worth, e.s.First = e.worth(), false
	for i := range e.count {
		e.earned[i][termShared] += e.s.Worth - before
	}
	e.show(steps, present)
	weights := [terms]float64{e.c.Shared, e.c.Own, e.c.Price, e.c.Liquidity, e.c.TargetUnits, e.c.TargetPrices}
	for i := range e.count {
		reward := 0.0
		for k, x := range e.earned[i] {
			x *= e.c.Scale / e.v.InitialBalance()
			steps[i].Info[infos+k] = x
			reward += weights[k] * x
		}
		if e.over {
			steps[i].Info[infoWin] = bit(e.won())
			steps[i].Terminate(reward)
		} else {
			steps[i].Continue(reward)
		}
	}
	clear(e.earned[:])
	e.running = !e.over
	return nil
}

// show writes what each agent sees. Who is not asked sees no thread of its own.
func (e *Threads) show(steps []*envs.TimeStep, present []bool) {
	const history = scml.Moves * scml.MoveFeatures
	clear(e.all)
	clear(e.histories)
	for i := range e.threads {
		e.threads[i].Write(e.all[i*scml.ThreadFeatures:(i+1)*scml.ThreadFeatures], e.histories[i*history:(i+1)*history])
	}
	g, _ := e.agent.Goal()
	scml.WriteGoal(g, e.v.Lines(), e.goal)
	Situate(e.agent, &e.now, e.v, len(e.threads), e.situation)
	Levels(e.table.World, e.market)
	clear(present)
	for i := range e.count {
		present[i] = true
		at := -1
		for k, r := range e.row {
			if r == i {
				at = k
			}
		}
		e.observe(steps[i], at)
		info := steps[i].Info
		clear(info)
		info[infoScore], info[infoBreach], info[infoOverflow] = e.table.Score(e.place), float64(e.s.Missing), e.overflow()
	}
}

// observe writes what the agent of a thread sees, or of none.
func (e *Threads) observe(ts *envs.TimeStep, thread int) {
	const history = scml.Moves * scml.MoveFeatures
	for i, f := range e.spec.Observation {
		to := ts.Obs[i].Float32s()
		switch f.Name {
		case scml.InputGoal:
			copy(to, e.goal)
		case fieldOfSituation:
			copy(to, e.situation)
		case fieldOfMarket:
			copy(to, e.market)
		case scml.InputThreads:
			copy(to, e.all)
		case scml.InputPresent:
			clear(to)
			for k := range e.threads {
				to[k] = 1
			}
		default:
			clear(to)
			switch {
			case thread < 0:
			case f.Name == scml.InputThread:
				copy(to, e.all[thread*scml.ThreadFeatures:(thread+1)*scml.ThreadFeatures])
			case f.Name == scml.InputHistory:
				copy(to, e.histories[thread*history:(thread+1)*history])
			case f.Name == scml.InputOneself:
				to[thread] = 1
			case f.Name == fieldOfLimits:
				WriteLimits(e.agent, &e.threads[thread], to)
			}
		}
	}
}

// Close implements envs.Multi.
func (e *Threads) Close() error {
	e.closed, e.running = true, false
	return nil
}

// savedThreads is the form of a saved episode.
type savedThreads struct {
	Seat  savedSeat    `json:"seat"`
	State threadsState `json:"state"`
	Over  bool         `json:"over,omitempty"`
}

// SaveState implements envs.MultiSaver.
func (e *Threads) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save scml_threads: %w", envs.ErrNoEpisode)
	}
	s, err := e.save()
	if err != nil {
		return nil, err
	}
	return json.Marshal(savedThreads{s, e.s, e.over})
}

// LoadState implements envs.MultiSaver.
func (e *Threads) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	if e.closed {
		return fmt.Errorf("load scml_threads: %w", envs.ErrClosed)
	}
	e.running = false
	if err := e.loadState(data); err != nil {
		return fmt.Errorf("load scml_threads: %w", err)
	}
	e.running = true
	clear(e.earned[:])
	e.show(steps, present)
	for i := range e.count {
		if steps[i].Restart(); !e.s.First {
			steps[i].Continue(0)
		}
	}
	return nil
}

func (e *Threads) loadState(data []byte) error {
	var s savedThreads
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if err := e.sit(s.Seat.Key, s.Seat.Worlds); err != nil {
		return err
	}
	q, err := e.loadSeat(s.Seat)
	if err != nil {
		return err
	}
	e.s, e.over, e.threads, e.row = s.State, s.Over, nil, e.row[:0]
	switch {
	case e.over && q.Event == world.Over:
		return nil
	case q.Agent != e.place || q.Event != world.AskFirst && q.Event != world.AskCounters:
		return fmt.Errorf("the world does not wait for an answer of %s", e.table.Config().Factories[e.place].ID)
	}
	// The histories have what was heard already.
	return e.asked(e.agent.Again(q.Heard, q.Event == world.AskFirst, len(q.Replies)))
}
