package risk

// Bounds are the limits that have changed what is traded at a fill, a bit for each.
type Bounds uint8

// The limits of a Config by the names of their keys, and Unsold: something that a limit demands to
// be sold could not be. It is tried again at the next fill.
const (
	BoundDrawdown Bounds = 1 << iota
	BoundCVaR
	BoundExposure
	BoundWeight
	BoundTurnover
	Unsold
)

// BoundNames are what the bits are called, from the lowest.
var BoundNames = [...]string{"drawdown", "cvar", "max_exposure", "max_weight", "max_turnover", "unsold"}

// Names returns the names of the limits, nil where there are none.
func (b Bounds) Names() (names []string) {
	for i, name := range BoundNames {
		if b>>i&1 != 0 {
			names = append(names, name)
		}
	}
	return names
}
