package ashare

import (
	"fmt"
	"math"
)

// Fen is an amount of money in hundredths of a yuan, which are also the tick of prices.
type Fen int64

// String returns yuan with two decimals.
func (f Fen) String() string {
	if f < 0 {
		return "-" + (-f).String()
	}
	return fmt.Sprintf("%d.%02d", f/100, f%100)
}

// MarshalJSON writes yuan as a number with two decimals.
func (f Fen) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// offTick is how far, in fen, a price may lie off the tick and still be meant to be on it: vendors
// store prices in float32.
const offTick = 0.05

// FenOf returns the fen nearest to a price in yuan, and whether that is the price. What is no
// number or too large for one is neither.
func FenOf(price float64) (f Fen, exact bool) {
	p := math.Round(price * 100)
	if !(math.Abs(p) < 1<<53) {
		return 0, false
	}
	return Fen(p), math.Abs(price*100-p) < offTick
}

// grain is what, in fen, prices that are averages or carry slippage may miss a tick by without
// being taken for the next one: 1e-7 yuan.
const grain = 1e-5

// roundHalfUp returns a/b for b > 0, halves rounded away from zero for a ≥ 0 as exchanges do.
func roundHalfUp(a, b int64) int64 { return (2*a + b) / (2 * b) }
