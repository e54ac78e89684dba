package trading

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Actions of a head: what is done with one asset.
const (
	Buy = iota
	Sell
	Hold
	actions
)

// The fields of an observation.
const (
	WindowField   = "window"
	PositionField = "position"
	CashField     = "cash"
	AccountField  = "account"
	// TradableField is there where actions have no mask, uint8 [N]: 1 where an asset can be bought
	// or sold.
	TradableField = "tradable"
)

// The diagnostics of a step, in the order of [envs.Spec.Info].
const (
	InfoValue    = iota // P, the portfolio's value at the close of the bar
	InfoCash            // cash
	InfoFees            // fees of this step
	InfoTurnover        // amounts bought and sold in this step
	InfoBuys            // executed buys
	InfoSells           // executed sells
	InfoSkipped         // orders that could not be executed
	InfoBar             // the number of the bar, a row of the market
	infos
)

var infoNames = []string{"value", "cash", "fees", "turnover", "buys", "sells", "skipped", "bar"}

// Source is a market prepared for a configuration. It is safe for concurrent use.
type Source struct {
	market *Market
	config Config
	spec   envs.Spec
	window *envs.Window
}

// NewSource checks the market and the configuration and prepares the windows, without copying the
// features.
func NewSource(m *Market, c Config) (*Source, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("trading: %w", err)
	}
	if !m.Checked {
		if err := m.Validate(); err != nil {
			return nil, fmt.Errorf("trading: %w", err)
		}
	}
	if c.Window > m.Len()-1 {
		return nil, fmt.Errorf("trading: the window of %d bars does not leave a step in a market of %d bars", c.Window, m.Len())
	}
	c, err := c.Under(m.Rules)
	if err != nil {
		return nil, fmt.Errorf("trading: %w", err)
	}
	if m = m.traded(&c); m.Factor != nil || m.Rules != nil || c.Account.Delisting != nil && m.Gone != nil {
		own := *m
		own.delist(c.Account.Delisting)
		own.calmed()
		if own.Rules != nil {
			if own.ruled, err = NewRuled(m.Rules, m.Assets); err == nil {
				err = own.ruled.read(m)
			}
			if err != nil {
				return nil, fmt.Errorf("trading: %w", err)
			}
		}
		m = &own
	}
	if c.Costs.UsesVolume() && m.Volume == nil {
		return nil, errors.New("trading: costs.participation, costs.min_volume and costs.slippage.impact need the volume of bars, which the data do not have")
	}
	if c.Costs.UsesBook() && (m.Spread == nil || m.Depth == nil) {
		return nil, errors.New("trading: costs.slippage.impact: depth needs the spread and the depth of bars, which the data do not have: make them of ticks with quotes (source.bars), or name their columns (source.columns.spread and depth)")
	}
	if _, err := newRewarder(&c, m); err != nil {
		return nil, err
	}
	s := &Source{market: m}
	if c.Slots == 0 {
		// The windows of slots change with who is there and cannot be views.
		w, err := envs.NewWindow(tensor.Of(m.X, m.Len(), len(m.Assets), len(m.Features)), c.Window)
		if err != nil {
			return nil, fmt.Errorf("trading: %w", err)
		}
		s.window = w
	}
	return s.with(c), nil
}

// describe returns what environments show and take.
func (s *Source) describe() envs.Spec {
	m, c := s.market, &s.config
	n := s.places()
	spec := envs.Spec{
		Name:        "trading",
		Observation: envs.Dict{{Name: WindowField, Space: envs.Unbounded(c.Window, n, len(m.Features)), Window: s.window}},
		Reward:      c.rewards(),
		Info:        infoNames,
	}
	if c.Actions == Weights {
		bound := c.Weights.bound()
		spec.Action = envs.NewBox(-bound, bound, n+1)
	} else {
		spec.Action, spec.Masked = envs.MultiDiscrete{N: slices.Repeat([]int{actions}, n)}, true
	}
	most := 1.0
	if c.State.Scale == Raw {
		most = math.Inf(1)
	}
	if c.State.IncludePos {
		spec.Observation = append(spec.Observation, envs.Field{Name: PositionField, Space: envs.NewBox(0, most, n)})
	}
	if c.State.IncludeCash {
		spec.Observation = append(spec.Observation, envs.Field{Name: CashField, Space: envs.NewBox(0, most, 1)})
	}
	if c.State.IncludeAccount {
		spec.Observation = append(spec.Observation, envs.Field{Name: AccountField, Space: envs.NewBox(0, math.Inf(1), 2)})
	}
	if !spec.Masked {
		spec.Observation = append(spec.Observation, envs.Field{Name: TradableField, Space: envs.Box{Of: tensor.Uint8, Dims: []int{n}, Low: []float64{0}, High: []float64{1}}})
	}
	return spec
}

// with returns a source for the same market and windows, and a configuration with the same prices.
func (s *Source) with(c Config) *Source {
	o := &Source{market: s.market, window: s.window, config: c}
	o.spec = o.describe()
	return o
}

// places is the number of assets that an environment has in its observation and its actions.
func (s *Source) places() int {
	if s.config.Slots > 0 {
		return s.config.Slots
	}
	return len(s.market.Assets)
}

// Market returns the market, in the prices that accounts trade.
func (s *Source) Market() *Market { return s.market }

// Config returns the configuration.
func (s *Source) Config() Config { return s.config }

// Env returns an environment over a range of bars. The first decision is taken at the range's first
// bar, or at the first bar that has a whole window behind it; windows may reach back before the
// range.
func (s *Source) Env(r Range) (*Env, error) {
	if r.First < 0 || r.Last >= s.market.Len() || r.First >= r.Last {
		return nil, fmt.Errorf("trading: bars %d to %d of %d", r.First, r.Last, s.market.Len())
	}
	first := max(r.First, s.config.Window-1)
	steps := r.Last - first
	if steps < 1 {
		return nil, fmt.Errorf("trading: bars %d to %d do not leave a step after a window of %d bars", r.First, r.Last, s.config.Window)
	}
	spec := s.spec
	spec.MaxSteps = steps
	spec.Costs = s.config.SafetySignals
	if e := s.config.Episode; e.Kind == Random {
		if e.Length > steps {
			return nil, fmt.Errorf("trading: episodes of %d steps do not fit into bars %d to %d, which have %d", e.Length, first, r.Last, steps)
		}
		spec.MaxSteps = e.Length
		spec.Random = e.Length < steps
	}
	return newEnv(s, spec, Range{first, r.Last})
}

// Parts returns an environment whose episodes are each in one of several ranges of bars: they must
// be random, and every bar at which one may begin is as likely. Ranges too short for an episode are
// left out.
func (s *Source) Parts(list []Range) (*Env, error) {
	c := s.config.Episode
	if c.Kind != Random {
		return nil, errors.New("trading: a training range in parts needs random episodes: set episode.kind: random and episode.length")
	}
	var kept []Range
	for _, r := range list {
		if r.Last-max(r.First, s.config.Window-1) >= c.Length {
			kept = append(kept, r)
		}
	}
	if len(kept) == 0 {
		return nil, fmt.Errorf("trading: episodes of %d steps fit into none of the %d parts of the training range", c.Length, len(list))
	}
	e, err := s.Env(kept[0])
	if err != nil {
		return nil, err
	}
	for _, r := range kept[1:] {
		e.parts = append(e.parts, Range{max(r.First, s.config.Window-1), r.Last})
	}
	e.spec.Random = e.spec.Random || len(e.parts) > 0
	return e, nil
}
