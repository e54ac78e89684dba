package livetrade

import "time"

// Gains are what a portfolio has gained since its first decision and on the day of its last one,
// costs included. A loss is negative.
type Gains struct {
	Begun bool `json:"begun"`
	// First is the value at the first decision, Before that at the last one of the day before, and
	// Last that at the last one, whose time is At.
	First  float64   `json:"first"`
	Before float64   `json:"before"`
	Last   float64   `json:"last"`
	At     time.Time `json:"at"`
}

// Add notes the value at a decision. Days are those of the bars' own calendar.
func (g *Gains) Add(at time.Time, value float64) {
	switch {
	case !g.Begun:
		g.Begun, g.First, g.Before = true, value, value
	case at.YearDay() != g.At.YearDay() || at.Year() != g.At.Year():
		g.Before = g.Last
	}
	g.Last, g.At = value, at
}

// PnL is the gain since the first decision.
func (g *Gains) PnL() float64 { return g.Last - g.First }

// Day is that on the day of the last one.
func (g *Gains) Day() float64 { return g.Last - g.Before }
