package indicator

import (
	"math"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// channel is the highest high and the lowest low of the last n bars.
type channel struct{ high, low extreme }

func newChannel(n int) channel {
	return channel{newExtreme(n, math.Inf(-1)), newExtreme(n, math.Inf(1))}
}

func (c *channel) push(b *bars.Bar) {
	c.high.push(b.High)
	c.low.push(b.Low)
}

// full says whether there were n bars.
func (c *channel) full() bool { return c.high.full }

// middle is that of the range.
func (c *channel) middle() float64 { return (c.high.value() + c.low.value()) / 2 }

// extreme is the greatest or the least of a window's numbers, by two parts that need not be looked
// through again (van Herk 1992; Gil, Werman 1993): what is left of the numbers before the window's
// n-th place, and those from there on.
type extreme struct {
	window
	none float64 // that of no numbers: −∞ of the greatest, ∞ of the least
	// left has the extremes of data[i:n], and recent is that of data[n:end].
	left   []float64
	recent float64
}

func newExtreme(n int, none float64) extreme {
	e := extreme{window: newWindow(n), none: none, left: make([]float64, n+1)}
	e.settle()
	return e
}

func (e *extreme) of(x, y float64) float64 {
	if e.none < 0 {
		return max(x, y)
	}
	return min(x, y)
}

// settle finds the parts of the numbers as they are.
func (e *extreme) settle() {
	x := e.none
	for i := e.n; i > 0; i-- {
		e.left[i] = x
		x = e.of(x, e.data[i-1])
	}
	e.left[0], e.recent = x, e.none
	for _, x := range e.data[e.n:e.end] {
		e.recent = e.of(e.recent, x)
	}
}

func (e *extreme) push(x float64) {
	e.window.push(x)
	if e.end == e.n { // It has gone back to the beginning.
		e.settle()
		return
	}
	e.recent = e.of(e.recent, x)
}

// value is the extreme, of zeros too where the window is not full.
func (e *extreme) value() float64 { return e.of(e.left[e.end-e.n], e.recent) }
