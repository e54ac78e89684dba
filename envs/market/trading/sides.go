package trading

// Sides says which orders for an asset can be executed: a bit for each side, at the place of the
// action.
type Sides uint8

// The sides.
const (
	CanBuy  Sides = 1 << Buy
	CanSell Sides = 1 << Sell
	// Both is what an asset has that trades between its limits.
	Both = CanBuy | CanSell
)

// Allows reports whether an order of Buy or Sell can be executed.
func (s Sides) Allows(order int64) bool { return s>>order&1 != 0 }

// SidesAt is what can be traded at a price: nothing unless the asset is traded, no purchase at the
// upper limit or above it, no sale at the lower one or below it. A limit that is not a positive
// number is none. Whatever asks what can be traded asks here: masks, fills, back-tests, baselines
// and live portfolios.
func SidesAt(traded bool, price, down, up float64) Sides {
	if !traded {
		return 0
	}
	s := Both
	if up > 0 && price >= up*(1-limitSlack) {
		s &^= CanBuy
	}
	if down > 0 && price <= down*(1+limitSlack) {
		s &^= CanSell
	}
	return s
}

// limitSlack is what a price may be off its limit by rounding, as a part of it; a tick is more.
const limitSlack = 1e-6

// WriteTradable writes 1 for each asset that has a side, and else 0.
func WriteTradable(tradable []uint8, sides []Sides) {
	for i, s := range sides {
		tradable[i] = 0
		if s != 0 {
			tradable[i] = 1
		}
	}
}

// WriteMask writes which of its actions each asset has: holding always, buying and selling as its
// sides allow.
func WriteMask(mask []bool, sides []Sides) {
	for _, s := range sides {
		mask[Buy], mask[Sell], mask[Hold] = s&CanBuy != 0, s&CanSell != 0, true
		mask = mask[actions:]
	}
}
