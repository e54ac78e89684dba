package feature

import "github.com/onnxrl/onnxrl/envs/market/state"

// State saves what the stream carries from bar to bar, or restores it into a stream of the same
// features before its first bar.
func (s *Stream) State(c *state.Codec) {
	for _, i := range s.states {
		i.State(c)
	}
	c.Float(&s.close)
	if s.factors != nil {
		s.factors.save(c)
	}
}
