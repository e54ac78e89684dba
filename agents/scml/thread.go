package scml

import "github.com/onnxrl/onnxrl/envs/scml/negotiation"

// The lengths of the vectors of a negotiation.
const (
	ThreadFeatures = 18
	// Moves is how many offers a history has, MoveFeatures the numbers of each.
	Moves        = 20
	MoveFeatures = 6
)

// Move is an offer that was made in a negotiation.
type Move struct {
	// Own says that the factory made it.
	Own   bool
	Round int
	Offer negotiation.Offer
}

// ThreadView is a negotiation in which an answer is due.
type ThreadView struct {
	Buying        bool
	Round, Rounds int
	Today, Lines  int
	Low, High     int
	// Heard says that there is an offer to answer.
	Heard bool
	Offer negotiation.Offer
	// Base is what the first layer would answer, and Counter what it would offer if it did not
	// accept.
	Base, Counter negotiation.Reply
	// Safe is how much of the offer may be accepted.
	Safe int
	// Open and Later are the units of the day's goal that are not agreed yet, for today and for
	// later days; Limit is the goal's price for the delivery that is offered, as of [PriceInRange].
	Open, Later int
	Limit       float64
	// Partners is how many negotiations of the side still run, this one included.
	Partners int
	// Agreed of Met negotiations with the partner ended with a contract.
	Agreed, Met int
	History     []Move
}

// PriceInRange is where a price lies in the range from low to high, between −1 and 1; 0 where the range is
// a single price.
func PriceInRange(price float64, low, high int) float64 {
	if high <= low {
		return 0
	}
	return (2*price - float64(low) - float64(high)) / float64(high-low)
}

// Write writes the vectors of the negotiation: thread [ThreadFeatures] and history [Moves·MoveFeatures].
func (t *ThreadView) Write(thread, history []float32) {
	lines := float64(t.Lines)
	offer := func(o negotiation.Offer, given bool) (q, days, price float64) {
		if !given {
			return 0, 0, 0
		}
		return float64(o.Quantity) / lines, float64(o.Time-t.Today) / DaysAhead, PriceInRange(float64(o.Price), t.Low, t.High)
	}
	heardQ, heardT, heardP := offer(t.Offer, t.Heard)
	baseQ, baseT, baseP := offer(t.Counter.Offer, t.Counter.Offered)
	accepts := t.Base.Given && t.Base.Response == negotiation.Accept
	for i, x := range [ThreadFeatures]float64{
		bit(t.Buying),
		float64(t.Round+1) / float64(t.Rounds+1),
		bit(t.Heard), heardQ, heardT, heardP,
		bit(accepts), bit(!accepts && !t.Base.Offered), bit(t.Counter.Offered), baseQ, baseT, baseP,
		float64(t.Open) / lines, float64(t.Later) / lines, float64(t.Safe) / lines, t.Limit,
		float64(t.Partners) / 6,
		(float64(t.Agreed) + 1) / (float64(t.Met) + 2),
	} {
		thread[i] = float32(x)
	}
	clear(history)
	moves := t.History[max(0, len(t.History)-Moves):]
	for i, m := range moves {
		q, days, price := offer(m.Offer, true)
		row := history[(Moves-len(moves)+i)*MoveFeatures:]
		for j, x := range [MoveFeatures]float64{1, bit(m.Own), q, days, price, float64(m.Round+1) / float64(t.Rounds+1)} {
			row[j] = float32(x)
		}
	}
}
