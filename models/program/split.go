package program

import "github.com/onnxrl/onnxrl/models"

// SplitFLOPs is the arithmetic of one run from which splitting it over cores pays: about 300 µs on
// one core.
const SplitFLOPs = 30e6

// Split is the rule by which batches are split over cores: into one shard for each thread, where
// the arithmetic of a run pays for it. Sums over the batch depend on the number of shards in their
// last digits, so Threads is a value of the document and not of the machine.
type Split struct {
	Threads int
	// FLOPs is the arithmetic of a run from which it is split, such as [SplitFLOPs].
	FLOPs float64
}

// Shards returns the number of shards for a network whose first extents are symbol, on a batch of
// so many rows. cost is the arithmetic of a run as a multiple of a forward one: 3 with gradients.
func (s Split) Shards(net *models.Network, symbol string, batch int, cost float64) int {
	if s.Threads < 2 || batch < 2 || cost*FLOPs(net.Model, map[string]int{symbol: batch}) < s.FLOPs {
		return 1
	}
	return min(s.Threads, batch)
}

// Dividing returns the rule for programs whose batch cannot be filled up, because other programs
// read it or because no weights tell its rows apart: for the most threads that divide it.
func (s Split) Dividing(batch int) Split {
	for s.Threads = min(s.Threads, batch); s.Threads > 1 && batch%s.Threads != 0; {
		s.Threads--
	}
	return s
}
