package trading

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/envs"
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
	random rng.Stream
	// position and cash are the indices of the observation's fields, or -1.
	position, cashField int

	// The running episode: it is at bar t and ends at bar last; first is where it began.
	running, closed bool
	first, t, last  int
	value           float64
	account         *Account
	bar             Bar // of the last fills
}

var (
	_ envs.Env   = (*Env)(nil)
	_ envs.Saver = (*Env)(nil)
)

func newEnv(s *Source, spec envs.Spec, bars Range) *Env {
	return &Env{
		source: s, market: s.market, spec: spec, bars: bars, position: spec.Observation.Index(PositionField), cashField: spec.Observation.Index(CashField),
		account: newAccount(&s.config, len(s.market.Assets)),
	}
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
		e.first += e.random.IntN(e.last - e.first - c.Length + 1)
		e.last = e.first + c.Length
	}
	e.t, e.running = e.first, true
	e.account.Reset()
	e.value = e.account.cash
	e.observe(ts)
	ts.Restart()
	return nil
}

// Step implements envs.Env. The action has Buy, Sell or Hold for each asset.
func (e *Env) Step(action *tensor.Tensor, ts *envs.TimeStep) error {
	switch {
	case e.closed:
		return fmt.Errorf("step trading: %w", envs.ErrClosed)
	case !e.running:
		return fmt.Errorf("step trading: %w", envs.ErrNoEpisode)
	}
	if err := envs.CheckAction(&e.spec, action); err != nil {
		return err
	}
	e.trade(action.Int64s())
	e.t++
	before := e.value
	e.value = e.account.Value(e.row(e.market.Close, e.t))
	e.observe(ts)
	reward := e.value/before - 1
	if e.source.config.Reward == Log {
		reward = math.Log(e.value / before)
	}
	switch {
	case e.t < e.last:
		ts.Continue(reward)
		return nil
	case e.source.config.Episode.End == Terminate:
		ts.Terminate(reward)
	default:
		ts.Truncate(reward)
	}
	e.running = false
	return nil
}

// row is that of a bar in a table of the market.
func (e *Env) row(table []float64, bar int) []float64 {
	n := len(e.market.Assets)
	return table[bar*n : (bar+1)*n]
}

// trade executes the orders decided at bar t.
func (e *Env) trade(orders []int64) {
	m := e.market
	m.Bar(&e.bar, &e.source.config, e.t)
	if e.bar.Number > e.t {
		m.Reinvest(e.account.pos, e.bar.Number)
	}
	e.account.Trade(orders, &e.bar)
	if e.bar.Number == e.t {
		m.Reinvest(e.account.pos, e.t+1)
	}
}

// observe writes observation, mask and diagnostics of the current bar.
func (e *Env) observe(ts *envs.TimeStep) {
	ts.SetWindow(0, e.source.window, e.t)
	if e.position >= 0 {
		e.account.ObservePosition(ts.Obs[e.position].Float32s(), e.row(e.market.Close, e.t), e.value)
	}
	if e.cashField >= 0 {
		ts.Obs[e.cashField].Float32s()[0] = e.account.ObserveCash(e.value)
	}
	n := len(e.market.Assets)
	e.account.WriteMask(ts.Mask.Bools(), e.market.Tradable[e.t*n:(e.t+1)*n], e.market.Dates[e.t])
	info := ts.Info[:infos]
	a := e.account
	info[InfoValue], info[InfoCash], info[InfoFees], info[InfoTurnover] = e.value, a.cash, a.step.fees, a.step.turnover
	info[InfoBuys], info[InfoSells], info[InfoSkipped], info[InfoBar] = float64(a.step.buys), float64(a.step.sells), float64(a.step.skipped), float64(e.t)
}

// Bar returns the current bar, a row of the market.
func (e *Env) Bar() int { return e.t }

// Value returns the portfolio's value at the close of the current bar.
func (e *Env) Value() float64 { return e.value }

// Cash returns the cash.
func (e *Env) Cash() float64 { return e.account.cash }

// Positions returns the number of shares of each asset. The slice is the environment's own: read
// it, and copy it to keep it.
func (e *Env) Positions() []float64 { return e.account.pos }

// Fills returns the trades of the last step, sells first, each side in the order of the assets. The
// slice is overwritten by the next step.
func (e *Env) Fills() []Fill { return e.account.fills }

// Source returns what the environment was made from.
func (e *Env) Source() *Source { return e.source }

// Close implements envs.Env.
func (e *Env) Close() error {
	e.closed, e.running = true, false
	return nil
}
