package ashare

import (
	"fmt"
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
	"github.com/onnxrl/onnxrl/envs/market/rules"
)

// Book is the rule book as accounts and data use it (data.rules: ashare). The broker's commission
// is not in it, and the fees of the exchange and of the CSRC are taken to be inside that. Delisting
// periods are announced and in no column: only limits of the data tell them.
type Book struct{}

var _ rules.Book = Book{}

// Name implements rules.Book.
func (Book) Name() string { return "ashare" }

// Class implements rules.Book: classes are boards.
func (Book) Class(symbol string) (uint8, error) {
	b, err := BoardOf(symbol)
	return uint8(b), err
}

// Terms implements rules.Book. Before a board was opened they are those of its first day.
func (Book) Terms(class uint8, day bars.Date) (rules.Terms, error) {
	r, err := On(day)
	if err != nil {
		return rules.Terms{}, err
	}
	b := Board(class)
	if b >= boards {
		return rules.Terms{}, fmt.Errorf("there is no board %d", class)
	}
	if !r.Open(b) {
		r.date = opened[b]
	}
	stamp, fee := at(stampDuty, r.date), at(transferFees[b], r.date)
	t := rules.Terms{Lot: r.Lot(b)}
	for side := range t.Levies {
		t.Levies[side] = [2]rules.Levy{{OfAmount: stamp[side]}, {OfAmount: fee.ofAmount, OfPar: fee.ofPar, Least: int64(fee.least)}}
	}
	return t, nil
}

// Settlement implements rules.Book.
func (Book) Settlement(day bars.Date) int { return Rules{day}.Settlement().Shares }

// Halted implements rules.Book: [Halted].
func (Book) Halted(at time.Time) bool { return Halted(at) }

// Limits implements rules.Book. There are none before the book or the board begins.
func (Book) Limits(class uint8, s rules.Share) (low, high int64) {
	r, err := On(s.Day)
	if b := Board(class); err == nil && r.Open(b) {
		l := r.Limits(Listing{Board: b, Listed: s.Listed, Day: s.Since, ST: s.ST}, Fen(s.Previous))
		low, high = int64(l.Low), int64(l.High)
	}
	return low, high
}
