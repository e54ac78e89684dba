package vector

import "github.com/onnxrl/onnxrl/envs"

// CostSum adds up the costs of the episodes of a vector, as Episode.Return is the sum of rewards.
type CostSum struct {
	// Values are the sums of the episodes that go on, [B, costs] row by row, and of those that the
	// newest step has ended.
	Values []float64
	ended  []bool
}

// NewCostSum returns sums for n environments of a spec, whose episodes begin.
func NewCostSum(spec envs.Spec, n int) *CostSum {
	return &CostSum{make([]float64, n*len(spec.Costs)), make([]bool, n)}
}

// Add takes in the step that was just taken.
func (c *CostSum) Add(b *Batch) {
	for i, t := range b.Type {
		row := c.Episode(i)
		if c.ended[i] {
			clear(row)
		}
		for k, x := range b.Costs[i] {
			row[k] += x
		}
		c.ended[i] = t == envs.Last
	}
}

// Episode returns the sums of environment i's episode: the one that the newest step has ended, or
// the one that goes on.
func (c *CostSum) Episode(i int) []float64 {
	k := len(c.Values) / len(c.ended)
	return c.Values[i*k : (i+1)*k]
}

// Restart begins new episodes after a Reset.
func (c *CostSum) Restart() {
	clear(c.Values)
	clear(c.ended)
}

// Settle forgets the episodes that have ended, so that Values are all that later steps depend on.
func (c *CostSum) Settle() {
	for i, ended := range c.ended {
		if ended {
			clear(c.Episode(i))
		}
	}
	clear(c.ended)
}

// CostTag is the name of a metric about one of so many costs: prefix itself where there is but one,
// and followed by the name of the cost otherwise.
func CostTag(prefix, name string, costs int) string {
	if costs == 1 {
		return prefix
	}
	return prefix + "/" + name
}
