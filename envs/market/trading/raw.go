package trading

// RawPrices are the prices of a market before adjustment, all [T,N].
type RawPrices struct {
	Open, Close []float64
	// Factor multiplies these into the adjusted prices. What it changes by is what dividends,
	// splits and rights gave on that date to those who held the asset at the close before.
	Factor []float64
	// Volume, LimitUp and LimitDown are as in [Market].
	Volume, LimitUp, LimitDown []float64
}

// traded is the market as accounts see it: in adjusted prices, where nothing ever happens to a
// position, or in raw ones.
func (m *Market) traded(c *Config) *Market {
	r, out := m.Raw, *m
	switch {
	case r != nil && c.Account.Prices == Raw:
		out.Open, out.Close, out.Factor, out.Raw = r.Open, r.Close, r.Factor, nil
		out.Volume, out.LimitUp, out.LimitDown = r.Volume, r.LimitUp, r.LimitDown
	case r != nil && c.Costs.UsesBars():
		out.Volume, out.LimitUp, out.LimitDown = r.adjusted(r.Volume, true), r.adjusted(r.LimitUp, false), r.adjusted(r.LimitDown, false)
	default:
		return m
	}
	return &out
}

// adjusted is a column of prices, or of shares, in adjusted units.
func (r *RawPrices) adjusted(column []float64, shares bool) []float64 {
	if column == nil {
		return nil
	}
	out := make([]float64, len(column))
	for i, v := range column {
		if out[i] = v * r.Factor[i]; shares {
			out[i] = v / r.Factor[i]
		}
	}
	return out
}

// VolumeAt returns the volume of a bar in the shares that accounts trade; 0 where it is not known.
func (m *Market) VolumeAt(bar, asset int) float64 {
	switch i, r := bar*len(m.Assets)+asset, m.Raw; {
	case m.Volume != nil:
		return m.Volume[i]
	case r != nil && r.Volume != nil:
		return r.Volume[i] / r.Factor[i]
	}
	return 0
}

// Reinvest books what happens overnight before bar t to positions [N] in shares. Of dividends,
// splits and rights only the change of a factor is known, and it is booked as shares that are
// reinvested at once, at the price that the change implies, without costs: q becomes
// q·Factor[t]/Factor[t−1]. A market without factors changes nothing.
func (m *Market) Reinvest(positions []float64, t int) {
	if m.Factor != nil && t > 0 {
		n := len(positions)
		Reinvest(positions, m.Factor[(t-1)*n:t*n], m.Factor[t*n:(t+1)*n])
	}
}

// Reinvest is [Market.Reinvest] with the factors [N] of two bars.
func Reinvest(positions, before, now []float64) {
	for i, q := range positions {
		if q != 0 {
			positions[i] = q * (now[i] / before[i])
		}
	}
}

// AdjustedClose is the close of an asset without the jumps of dividends and splits, up to a factor
// that is the same for all bars.
func (m *Market) AdjustedClose(bar, asset int) float64 {
	i := bar*len(m.Assets) + asset
	if m.Factor == nil {
		return m.Close[i]
	}
	return m.Close[i] * m.Factor[i]
}
