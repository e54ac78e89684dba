package games

import "math/bits"

// The size of the board.
const (
	Rows    = 6
	Columns = 7
)

// stride is the number of bits of a column: its cells from below, and one that is always 0, so that
// no line goes on in the next column.
const stride = Rows + 1

// board is a position: bit stride·column + row, rows counted from below, of the discs of each
// player, and how many have been played. Player 0 begins.
type board struct {
	discs  [2]uint64
	height [Columns]uint8
	plies  int
}

// steps are the distances of neighbouring bits in the four directions of lines: up, right, right
// and up, right and down.
var steps = [4]uint{1, stride, stride + 1, stride - 1}

// starts has, for each direction, a bit at each cell that a window of four cells begins with.
var starts = func() (list [4]uint64) {
	for d, move := range [4][2]int{{0, 1}, {1, 0}, {1, 1}, {1, -1}} {
		for c := range Columns {
			for r := range Rows {
				if endC, endR := c+3*move[0], r+3*move[1]; endC < Columns && endR >= 0 && endR < Rows {
					list[d] |= cell(c, r)
				}
			}
		}
	}
	return list
}()

func cell(column, row int) uint64 { return 1 << (stride*column + row) }

// turn is the player to move.
func (b *board) turn() int { return b.plies & 1 }

func (b *board) legal(column int) bool { return b.height[column] < Rows }

func (b *board) full() bool { return b.plies == Rows*Columns }

// drop plays a disc of the player whose turn it is.
func (b *board) drop(column int) {
	b.discs[b.turn()] |= cell(column, int(b.height[column]))
	b.height[column]++
	b.plies++
}

// undo takes back the last disc, which was dropped into a column.
func (b *board) undo(column int) {
	b.plies--
	b.height[column]--
	b.discs[b.turn()] &^= cell(column, int(b.height[column]))
}

// four reports whether discs have four in a line.
func four(x uint64) bool {
	for _, d := range steps {
		if y := x & (x >> d); y&(y>>(2*d)) != 0 {
			return true
		}
	}
	return false
}

// lines counts the windows in which x has exactly two and exactly three of the four cells, and y
// none.
func lines(x, y uint64) (two, three int) {
	for i, d := range steps {
		open := starts[i] &^ (y | y>>d | y>>(2*d) | y>>(3*d))
		// A sum of four bits, digit by digit, for all windows at once.
		a, b, c, e := x, x>>d, x>>(2*d), x>>(3*d)
		ab, ce := a^b, c^e
		ones := ab ^ ce
		twos := (a & b) ^ (c & e) ^ (ab & ce)
		three += bits.OnesCount64(open & ones & twos)
		two += bits.OnesCount64(open & twos &^ ones)
	}
	return two, three
}
