package trading

import (
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs/market/rules"
	"github.com/onnxrl/onnxrl/envs/risk"
)

// Config says how a market is traded. [Defaults] returns the specification's values.
type Config struct {
	// Window is the number of bars in an observation.
	Window int `yaml:"window"`
	// InitialCash is what an episode begins with.
	InitialCash float64 `yaml:"initial_cash"`
	// FeeRate is the commission of a trade as a fraction of its amount, for buys and sells alike.
	FeeRate float64 `yaml:"fee_rate"`
	// Actions are orders (the default), to buy, sell or hold each asset, or weights, target weights
	// of the assets and the cash.
	Actions string `yaml:"actions,omitzero"`
	// Mask is market (the default), which masks the orders that the market does not take, or
	// account, which masks those that the account cannot pay or deliver, too.
	Mask string `yaml:"mask,omitzero"`
	// Weights says how target weights are made and traded towards.
	Weights WeightRules `yaml:"weights,omitzero"`
	// BuyPct is the fraction of the cash that a buy spends, SellPct the fraction of the position
	// that a sell gives.
	BuyPct  float64 `yaml:"buy_pct"`
	SellPct float64 `yaml:"sell_pct"`

	// Slots is the number of assets that an environment sees and trades at a time: an asset of the
	// universe takes the first slot that is empty, and keeps it until it has left and nothing of it
	// is held. 0 gives every asset of the market its own.
	Slots int `yaml:"slots,omitzero"`

	// Costs are those besides FeeRate.
	Costs Costs `yaml:"costs,omitzero"`

	// Risk limits what the account may hold and lose, whatever the agent does.
	Risk risk.Config `yaml:"risk,omitzero"`

	// SafetySignals list what the environment tells of each step beside the reward, for constraints
	// of agents (envs.Spec.Costs); none of it is paid. drawdown is by how much the episode's
	// maximum drawdown has grown, so that the sum over an episode is the maximum drawdown; loss is
	// the fall of the value as a share of what the episode began with, negative where it rises, so
	// that the sum is the episode's loss; step_loss is the fall as a share of the value before the
	// step, for limits on single steps (constraints with over: step), of daily bars the daily loss.
	SafetySignals []string `yaml:"safety_signals,flow,omitzero"`

	Execution Execution `yaml:"execution"`
	// Account says how accounts are kept.
	Account AccountRules `yaml:"account,omitzero"`
	// Reward is simple, P(t+1)/P(t) − 1, log, its logarithm log P(t+1)/P(t), or excess,
	// differential_sharpe, drawdown or mean_cvar, which have parameters.
	Reward string `yaml:"reward"`
	// RewardParams are the parameters of rewards. They have a section of their own, so that reward
	// stays a word that can be set, and studied, by itself.
	RewardParams RewardParams `yaml:"reward_params,omitzero"`
	State        State        `yaml:"state"`
	Episode      Episode      `yaml:"episode"`

	// book is that of the market, see Under; freed says that its taxes and fees are not charged.
	book  rules.Book
	freed bool
}

// Execution says how orders become trades.
type Execution struct {
	// Fill is next_open, next_close or same_close.
	Fill string `yaml:"fill"`
	// CashSplit is fair or owner.
	CashSplit string `yaml:"cash_split"`
	// Lot is the number of shares that orders are rounded to; 0 trades fractions.
	Lot float64 `yaml:"lot"`
}

// AccountRules say how accounts are kept.
type AccountRules struct {
	// Prices are those that an account trades: adjusted (the default), in which nothing happens to
	// a position, or raw, as they were quoted, in which changes of the factor of adjustment are
	// booked as reinvested shares. Features are of adjusted prices either way, and so are the raw
	// prices of data that are not adjusted.
	Prices string `yaml:"prices,omitzero"`
	// Settlement is the number of days, 0 or 1, before shares that were bought can be sold.
	Settlement int `yaml:"settlement,omitzero"`
	// Delisting ends what is held of an asset that has no row any more; absent, it keeps the last
	// price, which nobody pays.
	Delisting *Delisting `yaml:"delisting,omitzero"`
}

// Delisting says what is paid for shares of an asset that is gone: that had no row for more than
// data.calendar.gone_after bars. It is booked once, at the bar at which that is known. An asset that
// comes back later was suspended: its shares were paid for all the same, because nobody knew.
type Delisting struct {
	// Recovery is the part of the last close that is paid. The default, 0.7, is for the mean
	// delisting return of −30 % of stocks that the NYSE and the AMEX delisted for their performance
	// (Shumway 1997, "The Delisting Bias in CRSP Data", Journal of Finance 52). Those of the NASDAQ
	// lost 55 % (Shumway and Warther 1999). Who was merged or taken over was paid all: 1.
	Recovery float64 `yaml:"recovery"`
}

// DefaultRecovery is that of [Delisting].
const DefaultRecovery = 0.7

// SetDefaults implements configs.Defaulter.
func (d *Delisting) SetDefaults() { d.Recovery = DefaultRecovery }

// State says what is observed besides the window of features.
type State struct {
	// IncludePos observes what is held of each asset, IncludeCash the cash.
	IncludePos  bool `yaml:"include_pos"`
	IncludeCash bool `yaml:"include_cash"`
	// IncludeAccount observes account, the value as a multiple of the cash that an episode begins
	// with, and the number of the day since 1970: for policies that keep books of their own, such
	// as a router with its experts.
	IncludeAccount bool `yaml:"include_account,omitzero"`
	// Scale is weight, each position and the cash as a share of the portfolio's value, or raw,
	// numbers of shares and currency.
	Scale string `yaml:"scale"`
}

// Episode says what part of the range an episode runs through.
type Episode struct {
	// Kind is full, the whole range, or random, Length steps from a bar drawn from the episode's
	// key.
	Kind   string `yaml:"kind"`
	Length int    `yaml:"length,omitempty"`
	// End is truncate or terminate: whether the value of the last state counts.
	End string `yaml:"end"`
}

// The words of a Config.
const (
	NextOpen  = "next_open"
	NextClose = "next_close"
	// SameClose is a look-ahead: [Config.LookAhead].
	SameClose = "same_close"

	// MaskMarket and MaskAccount say what the mask of orders knows.
	MaskMarket  = "market"
	MaskAccount = "account"

	Fair  = "fair"
	Owner = "owner"

	Adjusted = "adjusted"
	// Raw are prices before adjustment, or numbers that are not weights.
	Raw    = "raw"
	Weight = "weight"

	Full   = "full"
	Random = "random"

	Truncate  = "truncate"
	Terminate = "terminate"
)

// Defaults returns the shipped configuration of the specification.
func Defaults() Config {
	return Config{
		Window: 20, InitialCash: 10_000, FeeRate: 0.0005, BuyPct: 0.20, SellPct: 0.50,
		Execution: Execution{Fill: NextOpen, CashSplit: Fair},
		Reward:    Simple,
		State:     State{IncludePos: true, IncludeCash: true, Scale: Weight},
		Episode:   Episode{Kind: Full, End: Truncate},
	}
}

// LookAhead reports whether trades are filled at a price that the decision has already seen.
// Results must then be marked.
func (c Config) LookAhead() bool { return c.Execution.Fill == SameClose }

// Validate reports all problems of the configuration; whether it fits the data is found out by
// [NewSource].
func (c Config) Validate() error {
	var p configs.Problems
	p.AtLeast("window", c.Window, 1)
	p.NonNegative("slots", c.Slots)
	p.Positive("initial_cash", c.InitialCash)
	p.Check(c.FeeRate >= 0 && c.FeeRate < 1, "fee_rate", "%g, expected a fraction in [0, 1)", c.FeeRate)
	p.Check(c.BuyPct > 0 && c.BuyPct <= 1, "buy_pct", "%g, expected a fraction in (0, 1]", c.BuyPct)
	p.Check(c.SellPct > 0 && c.SellPct <= 1, "sell_pct", "%g, expected a fraction in (0, 1]", c.SellPct)
	c.Weights.check(&p, c.Actions)
	p.OneOf("mask", c.Mask, "", MaskMarket, MaskAccount)
	p.Check(c.Mask != MaskAccount || c.Actions != Weights, "mask", "account is for orders: target weights have no mask")
	c.RewardParams.check(&p, c.Reward)
	p.OneOf("execution.fill", c.Execution.Fill, NextOpen, NextClose, SameClose)
	p.OneOf("execution.cash_split", c.Execution.CashSplit, Fair, Owner)
	p.NonNegative("execution.lot", c.Execution.Lot)
	c.Costs.check(&p)
	p.Check(c.Costs.Rest != Carry || c.Actions != Weights && c.Slots == 0, "costs.rest", "is for orders of assets that have their place: the next target is another in any case, and slots change their assets")
	c.Risk.Check(&p, "risk.")
	checkSignals(&p, c.SafetySignals)
	p.Check(c.Account.Settlement == 0 || c.Account.Settlement == 1, "account.settlement", "%d days, expected 0 or 1", c.Account.Settlement)
	if d := c.Account.Delisting; d != nil {
		p.InRange("account.delisting.recovery", d.Recovery, 0, 1)
	}
	p.OneOf("account.prices", c.Account.Prices, "", Adjusted, Raw)
	p.OneOf("state.scale", c.State.Scale, Weight, Raw)
	p.OneOf("episode.kind", c.Episode.Kind, Full, Random)
	p.OneOf("episode.end", c.Episode.End, Truncate, Terminate)
	switch c.Episode.Kind {
	case Random:
		p.AtLeast("episode.length", c.Episode.Length, 1)
	case Full:
		p.Check(c.Episode.Length == 0, "episode.length", "%d, but full episodes run through the whole range", c.Episode.Length)
	}
	return p.Err()
}
