package stream

import (
	"time"

	"github.com/onnxrl/onnxrl/configs"
)

// Rules say what happens to messages that do not come as they should. Whatever is chosen, they are
// counted.
type Rules struct {
	// OutOfOrder is how much earlier than the newest row of its partition a row may be and still be
	// waited for. 0: a later row of its partition says that a row does not come.
	OutOfOrder time.Duration `yaml:"out_of_order,omitzero"`
	// Grace is how long, by the clock, the rows of a time are waited for after the first of them; 0
	// waits until they come or their partitions go on.
	Grace time.Duration `yaml:"grace,omitzero"`
	// Revised rows differ from one that is there for the same time, which is not complete yet:
	// last, first, or error. Equal ones are dropped.
	Revised string `yaml:"revised"`
	// Late rows are of a time that was complete already: drop or error.
	Late string `yaml:"late"`
	// Unknown symbols are none of the agent's: drop or error.
	Unknown string `yaml:"unknown"`
	// Ahead is how far the time of a row may be ahead of the clock; 0 does not look. Rows that are
	// further ahead are dropped: they would say that the rows before them do not come any more. A
	// day, the default, leaves room for bars that are named by the end of a day, and for times
	// without a zone.
	Ahead time.Duration `yaml:"ahead"`
	// Closed says what becomes of rows outside the trading days of the data's source.exchange: drop
	// or keep.
	Closed string `yaml:"closed"`
	// Pending is the most times that are open at once; with one more the earliest is complete as it
	// is, unless a partition has messages of before the start that are to come.
	Pending int `yaml:"pending"`
}

// The words of Rules.
const (
	Drop  = "drop"
	Keep  = "keep"
	First = "first"
	Last  = "last"
	Fail  = "error"
)

// DefaultRules returns the defaults.
func DefaultRules() Rules {
	return Rules{Revised: Last, Late: Drop, Unknown: Drop, Ahead: 24 * time.Hour, Closed: Keep, Pending: 64}
}

// Validate reports what is wrong with the fields.
func (r Rules) Validate() error {
	var p configs.Problems
	p.OneOf("revised", r.Revised, Last, First, Fail)
	p.OneOf("late", r.Late, Drop, Fail)
	p.OneOf("unknown", r.Unknown, Drop, Fail)
	p.OneOf("closed", r.Closed, Drop, Keep)
	p.NonNegative("out_of_order", r.OutOfOrder)
	p.NonNegative("grace", r.Grace)
	p.NonNegative("ahead", r.Ahead)
	p.Check(r.Pending >= 1 && r.Pending <= 100_000, "pending", "%d, expected 1 to 100000", r.Pending)
	return p.Err()
}

// Counters count messages, or rows of symbols, by what became of them. The JSON keys are stable.
type Counters struct {
	// Messages came in all, and Times were complete.
	Messages int64 `json:"messages"`
	Times    int64 `json:"times"`
	// Malformed messages could not be read.
	Malformed int64 `json:"malformed"`
	Duplicate int64 `json:"duplicate"`
	Revised   int64 `json:"revised"`
	Late      int64 `json:"late"`
	// OutOfOrder rows came after a later one of their symbol, in time.
	OutOfOrder int64 `json:"out_of_order"`
	Unknown    int64 `json:"unknown"`
	Ahead      int64 `json:"ahead"`
	Closed     int64 `json:"closed"`
	// Missing counts symbols without a row at a time that was complete, after their first; Unpriced
	// those whose row has no valid prices.
	Missing  int64 `json:"missing"`
	Unpriced int64 `json:"unpriced"`
	// Expired times were not waited for any longer, by the clock or for there were too many.
	Expired int64 `json:"expired"`
	// Outside ticks are of no session, and Impossible ones have a tenth of the price before or ten
	// times as much. They are left out.
	Outside    int64 `json:"outside"`
	Impossible int64 `json:"impossible"`
}

// list are the counters in the order of the state.
func (c *Counters) list() []*int64 {
	return []*int64{
		&c.Messages, &c.Times, &c.Malformed, &c.Duplicate, &c.Revised, &c.Late, &c.OutOfOrder, &c.Unknown, &c.Ahead, &c.Closed, &c.Missing, &c.Unpriced, &c.Expired, &c.Outside, &c.Impossible,
	}
}
