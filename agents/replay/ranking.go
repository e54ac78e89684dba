package replay

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// ranking has the priorities of a Shared store's transitions. It is safe for concurrent use.
type ranking struct {
	p Priorities
	// mu protects what follows. It is taken after the store's.
	mu      sync.Mutex
	tree    *sumTree
	highest float64
}

// Prioritise gives an empty store priorities, which samplers with SamplerConfig.Ranked draw by, as
// [Prioritised] does. New transitions have the largest priority that there has been.
func (s *Shared) Prioritise(p Priorities) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if s.clock.Load() > 0 {
		return fmt.Errorf("replay: priorities for a store that has recorded %d transitions, expected an empty one", s.clock.Load())
	}
	s.ranked = &ranking{p: p, tree: newSumTree(s.rows.n), highest: 1}
	return nil
}

// add gives a new transition its priority.
func (r *ranking) add(row int) {
	r.mu.Lock()
	r.tree.set(row, math.Pow(r.highest, r.p.Alpha))
	r.mu.Unlock()
}

// drop takes the priorities of rows away.
func (r *ranking) drop(from, to int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for row := from; row < to; row++ {
		if r.tree.weight(row) != 0 {
			r.tree.set(row, 0)
		}
	}
}

// draw draws rows in proportion to their priorities, one out of each of as many equal ranges, with
// the importance weights that beta makes of them, unless dst is nil.
func (r *ranking) draw(s *rng.Stream, points []float64, at []int, dst []float32, beta float64) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	total := r.tree.total()
	if !(total > 0) {
		return ErrEmpty
	}
	for i := range points {
		points[i] = (float64(i) + s.Float64()) / float64(len(points)) * total
	}
	r.tree.find(points, at)
	if dst == nil {
		return nil
	}
	least := math.Inf(1)
	for _, row := range at {
		least = min(least, r.tree.weight(row))
	}
	for i, row := range at {
		dst[i] = float32(math.Pow(least/r.tree.weight(row), beta))
	}
	return nil
}

// Key names a transition for [Shared.Update], by its row and the lower half of its time, so that
// it differs from another transition that has taken its place.
func Key(row, time int64) int64 { return row<<32 | time&math.MaxUint32 }

// Update sets the priorities of transitions, by [Key], to those of their errors, as
// [Prioritised.Update] does. Transitions that the store does not have any more are left out; it
// returns how many it had. An error that is not finite is an error, and changes nothing.
func (s *Shared) Update(keys []int64, errors []float32) (known int, err error) {
	r := s.ranked
	if r == nil {
		return 0, fmt.Errorf("replay: update: the store has no priorities")
	}
	if len(keys) != len(errors) {
		return 0, fmt.Errorf("replay: update: %d priorities for %d samples", len(errors), len(keys))
	}
	for i, e := range errors {
		if x := math.Abs(float64(e)); !(x <= math.MaxFloat32) {
			return 0, fmt.Errorf("replay: update: sample %d has the error %g", i, e)
		}
		if row := int64(uint64(keys[i]) >> 32); row >= int64(s.rows.n) {
			return 0, fmt.Errorf("replay: update: sample %d has the key %d, of row %d of %d", i, keys[i], row, s.rows.n)
		}
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, e := range errors {
		row := int(uint64(keys[i]) >> 32)
		if r.tree.weight(row) == 0 || uint32(s.timeOf(row)) != uint32(keys[i]) {
			continue
		}
		p := math.Abs(float64(e)) + r.p.Eps
		r.highest = max(r.highest, p)
		r.tree.set(row, math.Pow(p, r.p.Alpha))
		known++
	}
	return known, nil
}

// savedRanking is what a ranking has at a moment.
type savedRanking struct {
	priorities
	priority []float64
}

// copied returns what there is now; without a copy nobody may change it before it is saved.
func (r *ranking) copied(copy bool) *savedRanking {
	r.mu.Lock()
	defer r.mu.Unlock()
	x := &savedRanking{priorities{Alpha: r.p.Alpha, Eps: r.p.Eps, Highest: r.highest}, r.tree.node[r.tree.leaves:]}
	if copy {
		x.priority = slices.Clone(x.priority)
	}
	return x
}

func (x *savedRanking) save(w *checkpoint.Writer) {
	w.PutJSON("priorities", x.priorities)
	w.PutFloat64s("priority", x.priority)
}

// LoadState implements checkpoint.Stater.
func (r *ranking) LoadState(from *checkpoint.Reader) error {
	var s priorities
	if err := from.JSON("priorities", &s); err != nil {
		return err
	}
	if s.Alpha != r.p.Alpha || s.Eps != r.p.Eps {
		return fmt.Errorf("replay: restore: the checkpoint's priorities have alpha %g and eps %g, expected %g and %g", s.Alpha, s.Eps, r.p.Alpha, r.p.Eps)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := from.Float64sInto("priority", r.tree.node[r.tree.leaves:]); err != nil {
		return err
	}
	r.tree.sumAll()
	r.highest = s.Highest
	return nil
}
