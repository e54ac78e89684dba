package live

import (
	"errors"
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/trading"
)

// Elsewhere makes the portfolio one whose decisions somebody else executes, such as a broker: none
// is executed here any more. [Portfolio.Intended] says what a decision comes to, and
// [Portfolio.Executed] receives what was done. The broker also says what dividends and splits mean
// for positions and cash, see [Portfolio.Own]. A configuration whose prices or orders cannot be a
// broker's is an error.
func (p *Portfolio) Elsewhere() error {
	switch {
	case p.config.Costs.Rest == trading.Carry:
		return errors.New("env.costs.rest: carry is not possible beside a broker, who carries orders over by itself")
	case p.config.Account.Prices != trading.Raw && (p.feed.factors || p.feed.p.Adjusted != "" && p.feed.p.Adjusted != "none"):
		return fmt.Errorf("env.account.prices: a broker trades at prices as they are quoted, and the policy's account at prices adjusted by %s: expected raw, set when it was trained", p.feed.p.Adjusted)
	}
	p.elsewhere = true
	p.account.Elsewhere()
	return nil
}

// Intended returns what the decision that was taken at the present bar comes to if it is executed
// at its close, by the account's rules. The fills are valid until the next call.
func (p *Portfolio) Intended() []trading.Fill {
	_, close := p.prices()
	var b trading.Bar
	p.bar(&b, false)
	return p.account.Intend(p.orders, p.weights, &b, close)
}

// Executed books what somebody else has executed of an asset at a time: shares are negative where
// they were sold. It reports whether so many were held.
func (p *Portfolio) Executed(asset int, shares, price, fee float64, at time.Time) bool {
	held := p.account.Executed(trading.Fill{Asset: asset, Shares: shares, Price: price, Fee: fee}, p.feed.wall(at))
	p.observe()
	return held
}

// Own replaces positions [N] and cash by those that a broker reports. Unlike after [Portfolio.Hold]
// the limits on risk go on.
func (p *Portfolio) Own(positions []float64, cash float64) error {
	if err := p.account.Own(positions, cash); err != nil {
		return err
	}
	p.observe()
	return nil
}

// Lot is what quantities are multiples of, 0 where they need not be.
func (p *Portfolio) Lot() float64 { return p.config.Execution.Lot }
