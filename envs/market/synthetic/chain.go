package synthetic

import (
	"fmt"
	"math"
)

// Known is a market of which the best policy can be computed, for one asset or a pair, see [Solve].
type Known interface {
	Market
	// Chain is all that the future depends on, as far as it can be known.
	Chain() *Chain
	// States returns the chain's state at the close of each bar [T] of an asset, for a pair of the
	// first one. A belief between two states is a number between theirs.
	States(s Seen) ([]float64, error)
}

// Chain is a Markov chain of S states, each known at the close of a bar.
type Chain struct {
	// Moves are what a bar may do to the prices.
	Moves []Move
	// Next [S] says what may come after each state. Probabilities sum to 1.
	Next [][]Branch
	// Closed [S], unless nil, says which orders cannot be given in each state.
	Closed []Closed
}

// Move is what a bar does to the price of each asset [N], of which there are one or two.
type Move []Change

// Change is what a bar does to a price, as fractions: Night from the close before to the open,
// where orders are filled unless they are Closed, and Day from the open to the close.
type Change struct {
	Night, Day float64
	Closed     Closed
}

// Closed says which orders cannot be given, or are not filled.
type Closed struct{ Buy, Sell bool }

// moves are those of one asset that opens where it has closed.
func moves(days ...float64) []Move {
	list := make([]Move, len(days))
	for i, day := range days {
		list[i] = Move{{Day: day}}
	}
	return list
}

// Branch is one way on.
type Branch struct {
	Probability float64
	// Move indexes Chain.Moves, State is the next one.
	Move, State int
}

// Seen is what an agent sees of an asset: prices and volumes [T], of which Volume may be nil, and
// other columns by their names, nil where there is none.
type Seen struct {
	Open, Close, Volume []float64
	Column              func(name string) []float64
}

// column returns a column that must be there.
func (s Seen) column(name string) ([]float64, error) {
	if s.Column != nil {
		if c := s.Column(name); c != nil {
			return c, nil
		}
	}
	return nil, fmt.Errorf("%s is not among the features", name)
}

// belief is a hidden state, 0 or 1, that stays from bar to bar with probability 1 − change, and
// shows itself in something that is seen with probability accuracy in 1, and 1 − accuracy in 0.
type belief struct{ change, accuracy float64 }

// levels is the number of beliefs of a chain; between them probabilities are split.
const levels = 101

// seen is the probability that it is seen at the next bar by whoever believes with probability b
// that the state will be 1.
func (h belief) seen(b float64) float64 { return float64(b*h.accuracy) + float64((1-b)*(1-h.accuracy)) }

// after is the belief about the bar after the next, once that has been seen or not (Bayes' rule,
// then the hidden state's change).
func (h belief) after(b float64, seen bool) float64 {
	p, of := h.accuracy, h.seen(b)
	if !seen {
		p, of = 1-p, 1-of
	}
	if of > 0 {
		b = b * p / of
	}
	return b + float64(h.change*(1-float64(2*b)))
}

// split adds branches to the two levels beside a belief.
func split(to []Branch, probability, b float64, move, first int) []Branch {
	at := b * (levels - 1)
	i := min(int(at), levels-2)
	f := at - float64(i)
	for k, p := range []float64{probability * (1 - f), probability * f} {
		if p > 0 {
			to = append(to, Branch{p, move, first + i + k})
		}
	}
	return to
}

// rises says whether a bar closed above its open.
func (s Seen) rises(t int) bool { return s.Close[t] > s.Open[t] }

// nearest is the state of a number between two.
func nearest(state float64) (i int, f float64) {
	i = int(math.Floor(state))
	return i, state - float64(i)
}
