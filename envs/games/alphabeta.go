package games

import (
	"fmt"
	"math/bits"

	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// AlphaBetaConfig describes a player of connect four that searches.
type AlphaBetaConfig struct {
	// Depth is how many moves it looks ahead, its own next one included.
	Depth int `yaml:"depth"`
	// Random is the probability with which a move is drawn from all that are legal instead.
	Random float64 `yaml:"random,omitempty"`
	// Noise blurs the value of every move by a whole number that is drawn between −Noise and Noise:
	// three in a line that are open are worth 5. Wins and losses that are seen stay what they are.
	Noise int `yaml:"noise,omitempty"`
}

// Validate reports all problems.
func (c AlphaBetaConfig) Validate() error {
	var p configs.Problems
	p.AtLeast("depth", c.Depth, 1)
	p.InRange("random", c.Random, 0, 1)
	p.AtLeast("noise", c.Noise, 0)
	p.Check(c.Noise < won/2, "noise", "is %d, and would blur wins of %d", c.Noise, won)
	p.Check(c.Depth <= Rows*Columns, "depth", "%d, and a game has no more than %d moves", c.Depth, Rows*Columns)
	return p.Err()
}

// The worth of a position, see the package comment.
const (
	won         = 1_000_000
	worthThree  = 5
	worthTwo    = 2
	worthCentre = 3
)

// order are the columns as they are searched, from the middle on.
var order = [Columns]int{3, 2, 4, 1, 5, 0, 6}

// middle has the cells of the middle column.
const middle = uint64(1<<Rows-1) << (stride * (Columns / 2))

// worth is the heuristic value of a position for the player whose turn it is.
func (b *board) worth() int {
	x, y := b.discs[b.turn()], b.discs[1-b.turn()]
	two, three := lines(x, y)
	lost2, lost3 := lines(y, x)
	return worthThree*(three-lost3) + worthTwo*(two-lost2) + worthCentre*(bits.OnesCount64(x&middle)-bits.OnesCount64(y&middle))
}

// value searches depth moves and returns the value for the player whose turn it is, exact between
// alpha and beta and else a bound. The last move was the other player's. A win is worth the more
// the sooner it comes.
func (b *board) value(depth, alpha, beta int) int {
	switch {
	case four(b.discs[1-b.turn()]):
		return -(won - b.plies)
	case b.full():
		return 0
	case depth == 0:
		return b.worth()
	}
	best := -won
	for _, c := range order {
		if !b.legal(c) {
			continue
		}
		b.drop(c)
		v := -b.value(depth-1, -beta, -alpha)
		b.undo(c)
		if v > best {
			best = v
		}
		if alpha = max(alpha, v); alpha >= beta {
			break
		}
	}
	return best
}

// best returns the columns of equal value that a search of so many moves prefers to all others,
// as a set of bits.
func (b *board) best(depth int) (columns uint) {
	top := -won
	for _, c := range order {
		if !b.legal(c) {
			continue
		}
		b.drop(c)
		// Values are whole numbers: whatever reaches the best one so far is exact.
		v := -b.value(depth-1, -won, -(top - 1))
		b.undo(c)
		switch {
		case v > top:
			top, columns = v, 1<<c
		case v == top:
			columns |= 1 << c
		}
	}
	return columns
}

// blurred is best where the value of every move is blurred.
func (b *board) blurred(depth, noise int, random *rng.Stream) (columns uint) {
	top := -2 * won
	for _, c := range order {
		if !b.legal(c) {
			continue
		}
		b.drop(c)
		v := -b.value(depth-1, -won, won)
		b.undo(c)
		v += random.IntN(2*noise+1) - noise
		switch {
		case v > top:
			top, columns = v, 1<<c
		case v == top:
			columns |= 1 << c
		}
	}
	return columns
}

// alphaBeta implements envs.Player.
type alphaBeta struct{ c AlphaBetaConfig }

// Act implements envs.Player.
func (p alphaBeta) Act(w envs.Multi, agent int, _ *envs.TimeStep, random *rng.Stream, action *tensor.Tensor) error {
	g, ok := w.(*ConnectFour)
	if !ok || !g.running || g.board.turn() != agent {
		return fmt.Errorf("alpha_beta plays %s when it is its turn, which this world is not at", connectFour)
	}
	b := g.board
	var set uint
	switch {
	case p.c.Random > 0 && random.Bernoulli(p.c.Random):
		for c := range Columns {
			if b.legal(c) {
				set |= 1 << c
			}
		}
	case p.c.Noise > 0:
		set = b.blurred(p.c.Depth, p.c.Noise, random)
	default:
		set = b.best(p.c.Depth)
	}
	for range random.IntN(bits.OnesCount(set)) {
		set &= set - 1
	}
	action.Int64s()[0] = int64(bits.TrailingZeros(set))
	return nil
}
