package rules

import (
	"time"

	"github.com/onnxrl/onnxrl/envs/market/bars"
)

// Book is the rule book of an exchange. Its methods are pure functions and safe for concurrent use.
type Book interface {
	// Name is what configurations call it.
	Name() string
	// Class tells the kind of an asset, such as its board, by its symbol: a small number. A symbol
	// that the book has no rules for is an error.
	Class(symbol string) (uint8, error)
	// Terms returns how orders for assets of a class are executed on a day. A day before the book
	// begins is an error.
	Terms(class uint8, day bars.Date) (Terms, error)
	// Settlement is the number of days of trading before shares that were bought can be sold.
	Settlement(day bars.Date) int
	// Halted reports whether all trading rests at the time of a bar, which for bars of days, at
	// midnight, is the close.
	Halted(at time.Time) bool
	// Limits returns the lowest and the highest price, in hundredths, at which an asset may be
	// traded, 0 where there is none or not all is known that it depends on.
	Limits(class uint8, s Share) (low, high int64)
}

// Share is what limits depend on of an asset on a day.
type Share struct {
	Day bars.Date
	// Previous is the close before, in hundredths, without what was paid out since; 0 where it is
	// not known.
	Previous int64
	// Listed is the first day of trading, and Since counts the days of trading from it, it being 1.
	// Zero: long ago.
	Listed bars.Date
	Since  int
	// ST says that the exchange gives the asset special treatment.
	ST bool
}
