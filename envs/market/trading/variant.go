package trading

import "fmt"

// WithFee returns a source of the same market and windows that charges that rate for all costs: no
// least commission, no taxes and no slippage. How much of a bar can be traded stays.
func (s *Source) WithFee(rate float64) (*Source, error) {
	c := s.config
	k := Costs{Participation: c.Costs.Participation, MinVolume: c.Costs.MinVolume}
	if k.UsesVolume() {
		k.Rest = c.Costs.Rest
	}
	c.FeeRate, c.Costs, c.freed = rate, k, true
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("trading: %w", err)
	}
	return s.with(c), nil
}

// Orders returns a source of the same market and windows whose actions are orders; s itself where
// they are.
func (s *Source) Orders() *Source {
	if s.config.Actions != Weights {
		return s
	}
	c := s.config
	c.Actions, c.Weights = "", WeightRules{}
	return s.with(c)
}
