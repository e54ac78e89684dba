package trading

import (
	"fmt"
	"math"

	"onnxrl/envs"
	"onnxrl/runtime/rng"
	"onnxrl/runtime/tensor"
)

// Env is a portfolio that trades one range of a market. Besides the interface it gives a back-test what diagnostics cannot hold: [Env.Positions] and [Env.Fills].
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
	cash, value     float64
	pos             []float64
	fills           []Fill
	step            tally
}

// Fill is an executed order.
type Fill struct {
	// Asset is the column and Bar the row of the market at whose price it was executed.
	Asset, Bar int
	// Shares are bought when positive and sold when negative.
	Shares float64
	Price  float64
	// Fee was paid on top of, or taken from, the amount |Shares|·Price.
	Fee float64
}

// tally sums up the orders of one step.
type tally struct {
	fees, turnover       float64
	buys, sells, skipped int
}

var (
	_ envs.Env   = (*Env)(nil)
	_ envs.Saver = (*Env)(nil)
)

func newEnv(s *Source, spec envs.Spec, bars Range) *Env {
	n := len(s.market.Assets)
	return &Env{
		source: s, market: s.market, spec: spec, bars: bars, position: spec.Observation.Index(PositionField), cashField: spec.Observation.Index(CashField),
		pos: make([]float64, n), fills: make([]Fill, 0, n),
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
	clear(e.pos)
	e.cash, e.value = e.source.config.InitialCash, e.source.config.InitialCash
	e.fills, e.step = e.fills[:0], tally{}
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
	e.fills, e.step = e.fills[:0], tally{}
	e.trade(action.Int64s())
	e.t++
	before := e.value
	e.value = e.worth()
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

// worth is cash + Σ position · close at the current bar.
func (e *Env) worth() float64 {
	n := len(e.pos)
	p, v := e.market.Close[e.t*n:(e.t+1)*n], e.cash
	for i, q := range e.pos {
		// Before its first bar an asset has no price that could be multiplied by its position of 0.
		if q != 0 {
			v += q * p[i]
		}
	}
	return v
}

// observe writes observation, mask and diagnostics of the current bar.
func (e *Env) observe(ts *envs.TimeStep) {
	n := len(e.pos)
	ts.SetWindow(0, e.source.window, e.t)
	weight := e.source.config.State.Scale == Weight
	if e.position >= 0 {
		dst, p := ts.Obs[e.position].Float32s(), e.market.Close[e.t*n:(e.t+1)*n]
		for i, q := range e.pos {
			if q != 0 && weight {
				q *= p[i] / e.value
			}
			dst[i] = float32(q)
		}
	}
	if e.cashField >= 0 {
		c := e.cash
		if weight {
			c /= e.value
		}
		ts.Obs[e.cashField].Float32s()[0] = float32(c)
	}
	mask := ts.Mask.Bools()
	for _, ok := range e.market.Tradable[e.t*n : (e.t+1)*n] {
		mask[Buy], mask[Sell], mask[Hold] = ok, ok, true
		mask = mask[actions:]
	}
	info := ts.Info[:infos]
	info[InfoValue], info[InfoCash], info[InfoFees], info[InfoTurnover] = e.value, e.cash, e.step.fees, e.step.turnover
	info[InfoBuys], info[InfoSells], info[InfoSkipped], info[InfoBar] = float64(e.step.buys), float64(e.step.sells), float64(e.step.skipped), float64(e.t)
}

// Bar returns the current bar, a row of the market.
func (e *Env) Bar() int { return e.t }

// Value returns the portfolio's value at the close of the current bar.
func (e *Env) Value() float64 { return e.value }

// Cash returns the cash.
func (e *Env) Cash() float64 { return e.cash }

// Positions returns the number of shares of each asset. The slice is the environment's own: read it, and copy it to keep it.
func (e *Env) Positions() []float64 { return e.pos }

// Fills returns the trades of the last step, sells first, each side in the order of the assets. The slice is overwritten by the next step.
func (e *Env) Fills() []Fill { return e.fills }

// Source returns what the environment was made from.
func (e *Env) Source() *Source { return e.source }

// Close implements envs.Env.
func (e *Env) Close() error {
	e.closed, e.running = true, false
	return nil
}
