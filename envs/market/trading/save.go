package trading

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/onnxrl/onnxrl/envs"
)

// state is the form of a saved episode.
type state struct {
	Signals signalMemory `json:"signals,omitzero"`

	First     int       `json:"first"`
	Bar       int       `json:"bar"`
	Last      int       `json:"last"`
	Cash      float64   `json:"cash"`
	Value     float64   `json:"value"`
	Positions []float64 `json:"positions"`
	Fees      float64   `json:"fees"`
	Turnover  float64   `json:"turnover"`
	Buys      int       `json:"buys"`
	Sells     int       `json:"sells"`
	Skipped   int       `json:"skipped"`
	// Unsettled are shares that were bought on Day.
	Unsettled []float64    `json:"unsettled,omitempty"`
	Day       time.Time    `json:"day,omitzero"`
	Rewards   rewardMemory `json:"rewards,omitzero"`
	// Slots are the assets that Positions stand for, where these are not all.
	Slots []int       `json:"slots,omitempty"`
	Risk  *RiskMemory `json:"risk,omitempty"`
	// Sales and Purchases are the rests of orders, in shares and in currency.
	Sales     []float64 `json:"sales,omitempty"`
	Purchases []float64 `json:"purchases,omitempty"`
}

// SaveState implements envs.Saver.
func (e *Env) SaveState() ([]byte, error) {
	if !e.running {
		return nil, fmt.Errorf("save trading: %w", envs.ErrNoEpisode)
	}
	a := e.account
	unsettled, day := a.Unsettled()
	sales, purchases := a.Rests()
	return json.Marshal(state{
		Sales: sales, Purchases: purchases,
		Unsettled: unsettled, Day: day, Rewards: e.rewarder.rewardMemory, Slots: e.Slots(),
		First: e.first, Bar: e.t, Last: e.last, Cash: a.cash, Value: e.value, Positions: a.pos,
		Fees: a.step.fees, Turnover: a.step.turnover, Buys: a.step.buys, Sells: a.step.sells, Skipped: a.step.skipped,
		Signals: e.signals.signalMemory, Risk: a.RiskMemory(),
	})
}

// LoadState implements envs.Saver. The fills of the step before are not restored.
func (e *Env) LoadState(data []byte, ts *envs.TimeStep) error {
	if e.closed {
		return fmt.Errorf("load trading: %w", envs.ErrClosed)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load trading: %w", err)
	}
	end := e.bars.Last
	if n := len(e.parts); n > 0 {
		end = e.parts[n-1].Last
	}
	if s.First < e.bars.First || s.Bar < s.First || s.Last <= s.Bar || s.Last > end || len(s.Positions) != len(e.account.pos) {
		return fmt.Errorf("load trading: an episode from bar %d to %d, at bar %d, with %d assets, expected bars %d to %d and %d assets",
			s.First, s.Last, s.Bar, len(s.Positions), e.bars.First, end, len(e.account.pos))
	}
	if err := e.signals.load(&e.source.config, s.Signals, s.Value); err != nil {
		return fmt.Errorf("load trading: %w", err)
	}
	for i, q := range s.Positions {
		if !(q >= 0) || math.IsInf(q, 0) {
			return fmt.Errorf("load trading: a position of %g in %s", q, e.market.Assets[i])
		}
	}
	if !(s.Cash >= 0) || !(s.Value > 0) {
		return fmt.Errorf("load trading: cash of %g and a value of %g", s.Cash, s.Value)
	}
	if e.slots != nil {
		if err := e.slots.check(s.Slots); err != nil {
			return fmt.Errorf("load trading: %w", err)
		}
	}
	// The closes that this notes are noted again when the bar is shown.
	if err := e.account.RestoreRisk(s.Risk, e.row(e.market.Close, s.Bar)); err != nil {
		return fmt.Errorf("load trading: %w", err)
	}
	if e.slots != nil {
		e.slots.put(s.Slots)
		e.slots.fill(s.Bar)
	}
	a := e.account
	copy(a.pos, s.Positions)
	e.first, e.t, e.last, e.running, e.restricted = s.First, s.Bar, s.Last, true, false
	a.cash, e.value = s.Cash, s.Value
	a.forget()
	a.HoldUnsettled(s.Unsettled, s.Day)
	a.HoldRests(s.Sales, s.Purchases)
	e.rewarder.rewardMemory = s.Rewards
	a.step = tally{fees: s.Fees, turnover: s.Turnover, buys: s.Buys, sells: s.Sells, skipped: s.Skipped}
	e.observe(ts)
	if ts.Restart(); e.t > e.first {
		ts.Continue(0)
	}
	return nil
}
