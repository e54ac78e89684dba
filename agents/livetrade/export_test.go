package livetrade

import "time"

// NewBatch makes a batch of records as a machine does, each with a number.
func NewBatch(seq uint64, at time.Time, topics ...Topic) *Batch {
	b := new(Batch)
	b.reset(seq, at)
	for i, t := range topics {
		b.begin(t, "demo")
		b.num("n", float64(i)+0.5)
		b.end()
	}
	return b
}
