package games

import (
	"math/bits"
	"testing"

	"github.com/onnxrl/onnxrl/runtime/rng"
)

// lineSets lists the cells of every window of four, written down cell by cell.
func lineSets() (list [][4][2]int) {
	for c := range Columns {
		for r := range Rows {
			for _, d := range [4][2]int{{0, 1}, {1, 0}, {1, 1}, {1, -1}} {
				var w [4][2]int
				inside := true
				for k := range 4 {
					w[k] = [2]int{c + k*d[0], r + k*d[1]}
					inside = inside && w[k][0] < Columns && w[k][1] >= 0 && w[k][1] < Rows
				}
				if inside {
					list = append(list, w)
				}
			}
		}
	}
	return list
}

// plain is a position as cells: 0 empty, 1 and 2 the players.
type plain struct {
	cells [Columns][Rows]int
	plies int
}

func (p *plain) top(c int) int {
	for r, x := range p.cells[c] {
		if x == 0 {
			return r
		}
	}
	return Rows
}

func (p *plain) wins(who int, windows [][4][2]int) bool {
	for _, w := range windows {
		n := 0
		for _, at := range w {
			if p.cells[at[0]][at[1]] == who {
				n++
			}
		}
		if n == 4 {
			return true
		}
	}
	return false
}

func (p *plain) worth(windows [][4][2]int) int {
	own, sum := p.plies%2+1, 0
	for _, w := range windows {
		n := [3]int{}
		for _, at := range w {
			n[p.cells[at[0]][at[1]]]++
		}
		switch {
		case n[own] == 3 && n[0] == 1:
			sum += 5
		case n[own] == 2 && n[0] == 2:
			sum += 2
		case n[3-own] == 3 && n[0] == 1:
			sum -= 5
		case n[3-own] == 2 && n[0] == 2:
			sum -= 2
		}
	}
	for r := range Rows {
		switch p.cells[3][r] {
		case own:
			sum += 3
		case 3 - own:
			sum -= 3
		}
	}
	return sum
}

// minimax searches everything.
func (p *plain) minimax(depth int, windows [][4][2]int) int {
	switch {
	case p.wins(2-p.plies%2, windows):
		return -(won - p.plies)
	case p.plies == Rows*Columns:
		return 0
	case depth == 0:
		return p.worth(windows)
	}
	best := -won
	for c := range Columns {
		if r := p.top(c); r < Rows {
			p.cells[c][r] = p.plies%2 + 1
			p.plies++
			best = max(best, -p.minimax(depth-1, windows))
			p.plies--
			p.cells[c][r] = 0
		}
	}
	return best
}

// TestEqualsMinimax compares the moves of a search, all that are equally good, with those of a
// search of everything on a board of cells, in random positions.
func TestEqualsMinimax(t *testing.T) {
	windows := lineSets()
	if len(windows) != 69 {
		t.Fatalf("%d windows, expected 69", len(windows))
	}
	s := rng.New(1).Stream()
	checked, won := 0, 0
	for checked < 400 {
		var b board
		var p plain
		for range s.IntN(Rows * Columns) {
			c := s.IntN(Columns)
			if !b.legal(c) || four(b.discs[0]) || four(b.discs[1]) {
				continue
			}
			p.cells[c][b.height[c]] = b.turn() + 1
			b.drop(c)
			p.plies++
		}
		for who := range 2 {
			if got, want := four(b.discs[who]), p.wins(who+1, windows); got != want {
				t.Fatalf("%+v: four of player %d is %v", p, who, got)
			} else if got {
				won++
			}
		}
		if b.full() || four(b.discs[0]) || four(b.discs[1]) {
			continue
		}
		if got, want := b.worth(), p.worth(windows); got != want {
			t.Fatalf("%+v is worth %d, expected %d", p, got, want)
		}
		depth := 1 + checked%4
		top, want := -1<<30, uint(0)
		for c := range Columns {
			if r := p.top(c); r < Rows {
				p.cells[c][r] = p.plies%2 + 1
				p.plies++
				v := -p.minimax(depth-1, windows)
				p.plies--
				p.cells[c][r] = 0
				if v > top {
					top, want = v, 0
				}
				if v == top {
					want |= 1 << c
				}
			}
		}
		before := b
		if got := b.best(depth); got != want || b != before {
			t.Fatalf("depth %d, %+v: columns %07b, expected %07b", depth, p, got, want)
		}
		checked++
	}
	if won < 20 {
		t.Errorf("%d won positions", won)
	}
}

// TestMates finds wins in one and in two moves, blocks, and prefers the sooner of two wins.
func TestMates(t *testing.T) {
	n := 0
	for _, c := range []struct {
		name  string
		moves []int
		depth int
		want  uint
	}{
		{"a win at once", []int{0, 6, 0, 6, 0, 6}, 1, 1 << 0},
		{"a win at once is sooner than others", []int{0, 6, 0, 6, 0, 6}, 5, 1 << 0},
		{"a block", []int{0, 6, 0, 6, 3, 6}, 2, 1 << 6},
		{"two open ends", []int{2, 2, 3, 3}, 3, 1<<1 | 1<<4},
	} {
		var b board
		for _, m := range c.moves {
			b.drop(m)
		}
		if got := b.best(c.depth); got != c.want {
			t.Errorf("%s: columns %07b, expected %07b", c.name, got, c.want)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d positions", n)
	}
}

// BenchmarkAlphaBeta times a move of depth 4 after some opening moves.
func BenchmarkAlphaBeta(b *testing.B) {
	var x board
	for _, m := range []int{3, 3, 2, 4, 3} {
		x.drop(m)
	}
	b.ReportAllocs()
	for b.Loop() {
		if bits.OnesCount(x.best(4)) == 0 {
			b.Fatal("no move")
		}
	}
}
