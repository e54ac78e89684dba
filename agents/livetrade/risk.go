package livetrade

import (
	"math"
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Risk are limits on a service, beside those on the portfolio (env.risk), which the policy was
// trained under and which hold here as well. Each that is passed does what its key Then says.
type Risk struct {
	// Stale is how long, by the clock, no message may come.
	Stale Stale `yaml:"stale,omitzero"`
	// Orders limits the number of orders of a minute.
	Orders OrderRate `yaml:"orders,omitzero"`
	// PriceLimits is what becomes of an asset whose close lies beyond the limits of its day: note
	// (the default), or hold, which leaves it as it is until its prices are within again.
	PriceLimits string `yaml:"price_limits,omitzero"`
	// Invalid is what becomes of a decision that is none: target weights that are no numbers, are
	// negative or do not sum to 1. hold (the default) leaves it out, kill ends trading.
	Invalid string `yaml:"invalid,omitzero"`
	// Drift compares features with those that the policy was trained on.
	Drift Drift `yaml:"drift,omitzero"`
	// Cut is what exposure is multiplied by where something says cut; 0 is 0.5. Of an agent that
	// gives orders nothing is bought.
	Cut float64 `yaml:"cut,omitzero"`
	// Kill is what the kill switch does with positions: hold (the default) or flatten.
	Kill string `yaml:"kill,omitzero"`
}

// Stale is a limit on how old the last message is.
type Stale struct {
	// After is that age; 0 does not look.
	After time.Duration `yaml:"after,omitzero"`
	// Then is what follows: note (the default) or kill. Where no bars come nothing is decided, so
	// that there is nothing else to do.
	Then string `yaml:"then,omitzero"`
}

// OrderRate is a limit on orders.
type OrderRate struct {
	// PerMinute is the number of orders of the last minute, by the clock, from which on no more are
	// given; 0 does not count.
	PerMinute int `yaml:"per_minute,omitzero"`
	// Then is what follows: note, cut, hold (the default), flatten or kill.
	Then string `yaml:"then,omitzero"`
}

// Drift is a limit on how far features are from those of training. Of each feature that is scaled
// by the mean μ and the deviation σ of its training the mean z = (x − μ)/σ of the assets is
// averaged exponentially over Window times.
type Drift struct {
	// Limit is the largest |z| of a feature; 0 does not look.
	Limit float64 `yaml:"limit,omitzero"`
	// Window is the number of times, of which as many come before the first verdict; 0 is 100.
	Window int `yaml:"window,omitzero"`
	// Then is what follows: note (the default), cut, hold, flatten or kill.
	Then string `yaml:"then,omitzero"`
}

// The consequences that a limit can have. Cut multiplies exposure, Hold leaves positions as they
// are, Flatten sells them, and Kill is the kill switch.
const (
	Note    = "note"
	Cut     = "cut"
	Hold    = "hold"
	Flatten = "flatten"
	Kill    = "kill"
)

// Validate reports what is wrong with the fields.
func (r Risk) Validate() error {
	var p configs.Problems
	then := func(key, word string) { p.OneOf(key, word, "", Note, Cut, Hold, Flatten, Kill) }
	p.NonNegative("stale.after", r.Stale.After)
	p.OneOf("stale.then", r.Stale.Then, "", Note, Kill)
	p.Check(r.Stale.After > 0 || r.Stale.Then == "", "stale.after", "is missing")
	p.NonNegative("orders.per_minute", r.Orders.PerMinute)
	then("orders.then", r.Orders.Then)
	p.Check(r.Orders.PerMinute > 0 || r.Orders.Then == "", "orders.per_minute", "is missing")
	p.OneOf("price_limits", r.PriceLimits, "", Note, Hold)
	p.OneOf("invalid", r.Invalid, "", Hold, Kill)
	p.Check(r.Drift.Limit >= 0 && !math.IsInf(r.Drift.Limit, 0), "drift.limit", "%g, expected deviations of training, or 0", r.Drift.Limit)
	p.Check(r.Drift.Window >= 0 && r.Drift.Window <= 1_000_000, "drift.window", "%d, expected a number of times", r.Drift.Window)
	then("drift.then", r.Drift.Then)
	p.Check(r.Drift.Limit > 0 || r.Drift.Then == "" && r.Drift.Window == 0, "drift.limit", "is missing")
	p.Check(r.Cut >= 0 && r.Cut < 1, "cut", "%g, expected a fraction in (0, 1), or 0", r.Cut)
	p.OneOf("kill", r.Kill, "", Hold, Flatten)
	return p.Err()
}

// complete returns the limits with what zeros stand for.
func (r Risk) complete() Risk {
	or := func(word *string, otherwise string) {
		if *word == "" {
			*word = otherwise
		}
	}
	or(&r.Stale.Then, Note)
	or(&r.Orders.Then, Hold)
	or(&r.PriceLimits, Note)
	or(&r.Invalid, Hold)
	or(&r.Drift.Then, Note)
	or(&r.Kill, Hold)
	if r.Drift.Window == 0 {
		r.Drift.Window = 100
	}
	if r.Cut == 0 {
		r.Cut = 0.5
	}
	return r
}

// level is how much of a decision is allowed, the least last.
type level int

const (
	flattened level = iota
	holding
	cutting
	free
)

var levelNames = [...]string{Flatten, Hold, Cut, "free"}

func (l level) String() string { return levelNames[l] }
