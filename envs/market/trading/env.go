package trading

import (
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/risk"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Env is a portfolio that trades one range of a market. Besides the interface it gives a back-test
// what diagnostics cannot hold: [Env.Positions] and [Env.Fills].
type Env struct {
	source *Source
	market *Market
	spec   envs.Spec
	bars   Range
	parts  []Range // further ones, of random episodes
	random rng.Stream
	// position and cash are the indices of the observation's fields, or -1.
	position, cashField, accountField int
	// signals are what steps cost beside the reward.
	signals signals

	// The running episode: it is at bar t and ends at bar last; first is where it began.
	running, closed bool
	first, t, last  int
	value           float64
	account         *Account
	bar             Bar    // of the last fills
	slots           *slots // nil where every asset has its place
	rewarder        rewarder
	// target [N+1] are the weights that an action means, scratch [N+1] is of their making; nil
	// where actions are orders.
	target, scratch []float64
	// held [N] are the assets that may be held, and restricted says that these are not all.
	held       []bool
	restricted bool
	orders     []int64 // without what may not be bought
}

// releaseEvery is the number of bars after which the memory of a market that can be read again is
// released.
const releaseEvery = 1 << 12

var (
	_ envs.Env   = (*Env)(nil)
	_ envs.Saver = (*Env)(nil)
)

func newEnv(s *Source, spec envs.Spec, bars Range) (*Env, error) {
	n := s.places()
	e := &Env{
		source: s, market: s.market, spec: spec, bars: bars, position: spec.Observation.Index(PositionField), cashField: spec.Observation.Index(CashField), accountField: spec.Observation.Index(AccountField),
		account: newAccount(&s.config, n), held: make([]bool, n),
	}
	if s.config.Slots > 0 {
		e.slots = newSlots(s.market, &s.config)
	}
	if s.config.Actions == Weights {
		e.target, e.scratch = make([]float64, n+1), make([]float64, n+1)
	}
	var err error
	e.rewarder, err = newRewarder(&s.config, s.market)
	return e, err
}

// Spec implements envs.Env.
func (e *Env) Spec() envs.Spec { return e.spec }

// Reset implements envs.Env. The portfolio is all cash.
func (e *Env) Reset(key rng.Key, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("reset trading: %w", envs.ErrClosed)
	}
	e.first, e.last = e.bars.First, e.bars.Last
	if c := e.source.config.Episode; c.Kind == Random {
		e.random.Seed(key)
		n := e.last - e.first - c.Length + 1
		for _, r := range e.parts {
			n += r.Last - r.First - c.Length + 1
		}
		e.first = e.begin(e.random.IntN(n), c.Length)
		e.last = e.first + c.Length
	}
	e.signals.reset(&e.source.config)
	e.t, e.running, e.restricted = e.first, true, false
	e.account.Reset()
	e.value = e.account.cash
	e.rewarder.rewardMemory = rewardMemory{}
	e.fillSlots()
	e.observe(ts)
	ts.Restart()
	return nil
}

// begin is the bar at place i of those at which an episode of a length may begin.
func (e *Env) begin(i, length int) int {
	r := e.bars
	for k := 0; i > r.Last-r.First-length; k++ {
		i -= r.Last - r.First - length + 1
		r = e.parts[k]
	}
	return r.First + i
}

// Step implements envs.Env. The action has Buy, Sell or Hold for each asset, or what target weights
// are made of.
func (e *Env) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	if err := e.ready(); err != nil {
		return err
	}
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	if e.target == nil {
		e.next(e.allowed(action.Int64s()), ts)
		return nil
	}
	e.source.config.Weights.Of(e.target, action.Float32s(), e.scratch)
	e.next(nil, ts)
	return nil
}

// Rebalance is Step with the target weights [N+1] themselves, of the assets or the slots and, last,
// of the cash.
// Only an environment whose actions are weights has it. Weights that are not numbers, are negative
// or do not sum to 1 are an error that changes nothing.
func (e *Env) Rebalance(weights []float64, ts *envs.TimeStep) error {
	if err := e.ready(); err != nil {
		return err
	}
	if e.target == nil {
		return errors.New("step trading: the environment takes orders and no weights")
	}
	names := e.market.Assets
	if e.slots != nil {
		names = e.slots.names
	}
	if err := CheckWeights(names, weights); err != nil {
		return fmt.Errorf("step trading: %w", err)
	}
	copy(e.target, weights)
	e.next(nil, ts)
	return nil
}

func (e *Env) ready() error {
	switch {
	case e.closed:
		return fmt.Errorf("step trading: %w", envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step trading: %w", envs.ErrNoEpisode)
	}
	return nil
}

// next goes to the next bar with orders, or towards the target.
func (e *Env) next(orders []int64, ts *envs.TimeStep) {
	e.trade(orders)
	e.t++
	before := e.value
	e.value = e.account.Value(e.row(e.market.Close, e.t))
	e.signals.step(ts.Costs, before, e.value)
	e.rotate()
	if m := e.market; m.Release != nil && e.t%releaseEvery == 0 {
		m.Release()
	}
	e.observe(ts)
	reward := e.rewarder.of(e.market, e.t-1, before, e.value, e.account.step.turnover)
	switch {
	case e.t < e.last:
		ts.Continue(reward)
		return
	case e.source.config.Episode.End == Terminate:
		ts.Terminate(reward)
	default:
		ts.Truncate(reward)
	}
	e.running = false
}

// row is that of a bar in a table of the market, or what the slots have of it until the next call.
func (e *Env) row(table []float64, bar int) []float64 {
	n := len(e.market.Assets)
	row := table[bar*n : (bar+1)*n]
	if e.slots != nil {
		row = gather(e.slots, e.slots.first, row)
	}
	return row
}

// trade executes what was decided at bar t.
func (e *Env) trade(orders []int64) {
	m := e.market
	m.Bar(&e.bar, &e.source.config, e.t)
	if e.slots != nil {
		e.slots.bar(&e.bar)
	}
	if e.bar.Number > e.t {
		e.overnight(e.bar.Number)
	}
	if e.target != nil {
		if e.restricted {
			RestrictWeights(e.target, e.held, e.scratch)
		}
		exitWeights(e.target, e.bar.Members)
		e.account.Rebalance(e.target, &e.bar)
	} else {
		e.account.Trade(orders, &e.bar)
	}
	if e.bar.Number == e.t {
		e.overnight(e.t + 1)
	}
	if e.slots != nil {
		e.slots.settle(e.account.Fills())
	}
}

// observe writes observation, mask and diagnostics of the current bar.
func (e *Env) observe(ts *envs.TimeStep) {
	e.window(ts)
	closes := e.row(e.market.Close, e.t)
	if e.position >= 0 {
		e.account.ObservePosition(ts.Obs[e.position].Float32s(), closes, e.value)
	}
	if e.accountField >= 0 {
		e.account.ObserveAccount(ts.Obs[e.accountField].Float32s(), e.value, e.market.Dates[e.t])
	}
	if e.cashField >= 0 {
		ts.Obs[e.cashField].Float32s()[0] = e.account.ObserveCash(e.value)
	}
	e.account.Mark(e.market.Dates[e.t], closes)
	e.sides(ts)
	info := ts.Info[:infos]
	a := e.account
	info[InfoValue], info[InfoCash], info[InfoFees], info[InfoTurnover] = e.value, a.cash, a.step.fees, a.step.turnover
	info[InfoBuys], info[InfoSells], info[InfoSkipped], info[InfoBar] = float64(a.step.buys), float64(a.step.sells), float64(a.step.skipped), float64(e.t)
}

// Bar returns the current bar, a row of the market.
func (e *Env) Bar() int { return e.t }

// Now returns the time of the current bar.
func (e *Env) Now() time.Time { return e.market.Dates[e.t] }

// Value returns the portfolio's value at the close of the current bar.
func (e *Env) Value() float64 { return e.value }

// Cash returns the cash.
func (e *Env) Cash() float64 { return e.account.cash }

// Positions returns the number of shares of each asset. The slice is the environment's own: read
// it, and copy it to keep it.
func (e *Env) Positions() []float64 {
	if e.slots != nil {
		return e.slots.held(e.account.pos)
	}
	return e.account.pos
}

// Fills returns the trades of the last step, sells first, each side in the order of the assets. The
// slice is overwritten by the next step.
func (e *Env) Fills() []Fill {
	if e.slots != nil {
		return e.slots.fills
	}
	return e.account.Fills()
}

// Risk returns what watches the portfolio's value, nil where the configuration has no limits on
// risk. Set its OnAlert to be told.
func (e *Env) Risk() *risk.Monitor { return e.account.Risk() }

// Bound returns which limits on risk have changed what the last step traded.
func (e *Env) Bound() risk.Bounds { return e.account.Bound() }

// Source returns what the environment was made from.
func (e *Env) Source() *Source { return e.source }

// Close implements envs.Env.
func (e *Env) Close() error {
	e.closed, e.running = true, false
	return nil
}
