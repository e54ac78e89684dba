package ashare

import "github.com/onnxrl/onnxrl/envs/market/rules"

// Lot says how many shares one order may have.
type Lot = rules.Lot

// lots, section 4.5 of the reference: SSE's page on its trading mechanism (multiples of 100, at
// most 1,000,000; Shenzhen alike), STAR's 200 and single shares above, BSE's 100 and single shares
// above (wodefinance.com). The largest orders of STAR and of ChiNext since 2020 are those of limit
// orders and from memory.
var lots = [boards][]dated[Lot]{
	MainSH:  {{begin, Lot{Min: 100, Step: 100, Max: 1_000_000}}},
	MainSZ:  {{begin, Lot{Min: 100, Step: 100, Max: 1_000_000}}},
	ChiNext: {{chiNextOpened, Lot{Min: 100, Step: 100, Max: 1_000_000}}, {chiNextReform, Lot{Min: 100, Step: 100, Max: 300_000}}},
	STAR:    {{starOpened, Lot{Min: 200, Step: 1, Max: 100_000}}},
	BSE:     {{bseOpened, Lot{Min: 100, Step: 1, Max: 1_000_000}}},
}

// Lot returns the lots of a board.
func (r Rules) Lot(b Board) Lot { return at(lots[b], r.date) }

// Settlement says after how many days of trading something can be used: shares that were bought can
// be sold, the cash of a sale can buy again, and it can be withdrawn.
type Settlement struct{ Shares, Cash, Withdrawal int }

// settlements, section 4.5 of the reference (SSE): T+1 for shares; cash buys at once.
var settlements = []dated[Settlement]{{begin, Settlement{1, 0, 1}}}

// Settlement returns when shares and cash can be used again; it is the same on all boards.
func (r Rules) Settlement() Settlement { return at(settlements, r.date) }
