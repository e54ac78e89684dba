package rules

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// State moves what the limiter remembers of the last rows: whoever loads it goes on with the same
// limits. What was found is no part of it.
func (l *Limiter) State(c *state.Codec) {
	l.first.State(c)
	for i := range l.symbols {
		s := &l.symbols[i]
		s.share.Day.State(c)
		s.share.Listed.State(c)
		c.Int(&s.share.Since, 0, math.MaxInt32)
		c.Bool(&s.share.ST)
		c.Int64(&s.share.Previous, 0, math.MaxInt64)
		c.Bool(&s.own)
		c.Float(&s.close)
		c.Float(&s.factor)
		c.Int64(&s.low, 0, math.MaxInt64)
		c.Int64(&s.high, 0, math.MaxInt64)
	}
}
