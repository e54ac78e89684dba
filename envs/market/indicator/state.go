package indicator

import (
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// The methods of this file move what changes in the states of all indicators, parts first to last
// as they are declared. Counters that count up are limited by what they count to, and those that
// count down by where they begin, which is where they are in a fresh indicator.

// State implements Indicator for those that have one window. What is written are n numbers, where
// the next one goes among them, which is where the oldest of a full window is, and whether it is
// full.
func (w *window) State(c *state.Codec) {
	numbers, head := w.all(), 0
	if !w.full {
		head = w.end - w.n
		numbers = w.data[w.n:]
	}
	if !c.Reading() {
		c.Floats(numbers)
		c.Int(&head, 0, w.n-1)
		c.Bool(&w.full)
		return
	}
	numbers = make([]float64, w.n)
	c.Floats(numbers)
	c.Int(&head, 0, w.n-1)
	c.Bool(&w.full)
	if w.end = w.n + head; w.full {
		w.end = len(w.data)
		numbers = slices.Concat(numbers[head:], numbers[:head])
	} else {
		clear(numbers[head:])
	}
	copy(w.data[w.n:], numbers)
}

// State implements Indicator.
func (s *smooth) State(c *state.Codec) {
	c.Int(&s.seen, 0, s.n)
	c.Float(&s.value)
}

// State moves an average.
func (s *wilder) State(c *state.Codec) {
	c.Int(&s.seen, 0, s.n)
	c.Float(&s.value)
}

// State moves a range.
func (t *trueRange) State(c *state.Codec) {
	c.Bool(&t.started)
	c.Float(&t.close)
}

// State moves the numbers; what is known of them follows.
func (e *extreme) State(c *state.Codec) {
	e.window.State(c)
	if c.Reading() {
		e.settle()
	}
}

// State implements Indicator for those that have one channel.
func (c *channel) State(to *state.Codec) {
	c.high.State(to)
	c.low.State(to)
}

// State implements Indicator.
func (s *adxState) State(c *state.Codec) {
	c.Float(&s.seen)
	c.Bool(&s.started)
	c.Float(&s.high)
	c.Float(&s.low)
	s.tr.State(c)
	c.Float(&s.plus)
	c.Float(&s.minus)
	c.Float(&s.sum)
	s.average.State(c)
}

// State implements Indicator.
func (s *atrState) State(c *state.Codec) {
	s.trueRange.State(c)
	s.average.State(c)
}

// State implements Indicator.
func (s *heikinAshiState) State(c *state.Codec) {
	c.Bool(&s.started)
	c.Float(&s.open)
	c.Float(&s.close)
}

// State implements Indicator.
func (s *ichimokuState) State(c *state.Codec) {
	s.tenkan.State(c)
	s.kijun.State(c)
	s.senkou.State(c)
	s.a.State(c)
	s.b.State(c)
	c.Int(&s.warm, 0, max(s.warm, 1))
}

// State implements Indicator.
func (s *keltnerState) State(c *state.Codec) {
	c.Int(&s.skip, 0, s.skip)
	c.Int(&s.skipRanges, 0, s.skipRanges)
	s.average.State(c)
	s.tr.State(c)
	s.ranges.State(c)
}

// State implements Indicator.
func (s *macdState) State(c *state.Codec) {
	c.Int(&s.skip, 0, s.skip)
	s.fast.State(c)
	s.slow.State(c)
	s.signal.State(c)
}

// State implements Indicator.
func (s *mfiState) State(c *state.Codec) {
	s.up.State(c)
	s.down.State(c)
	c.Bool(&s.started)
	c.Float(&s.typical)
}

// State implements Indicator.
func (s *obvState) State(c *state.Codec) {
	s.recent.State(c)
	c.Bool(&s.started)
	c.Float(&s.close)
	c.Float(&s.total)
}

// State implements Indicator.
func (s *rsiState) State(c *state.Codec) {
	s.up.State(c)
	s.down.State(c)
	c.Bool(&s.started)
	c.Float(&s.close)
}

// State implements Indicator.
func (s *stochState) State(c *state.Codec) {
	s.channel.State(c)
	s.k.State(c)
	s.d.State(c)
}

// State implements Indicator.
func (s *supertrendState) State(c *state.Codec) {
	s.atr.State(c)
	c.Bool(&s.started)
	c.Bool(&s.falling)
	c.Float(&s.upper)
	c.Float(&s.lower)
	c.Float(&s.close)
}

// State implements Indicator.
func (s *vwapState) State(c *state.Codec) {
	s.money.State(c)
	s.volume.State(c)
}

// State implements Indicator.
func (s *sessionVWAP) State(c *state.Codec) {
	c.Int(&s.year, math.MinInt32, math.MaxInt32)
	c.Int(&s.day, 0, 366)
	c.Float(&s.money)
	c.Float(&s.volume)
}
