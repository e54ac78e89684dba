package trading

import "fmt"

// WithFee returns a source of the same market and windows that charges another fee rate.
func (s *Source) WithFee(rate float64) (*Source, error) {
	c := s.config
	c.FeeRate = rate
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("trading: %w", err)
	}
	return s.with(c), nil
}
