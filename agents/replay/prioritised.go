package replay

import (
	"fmt"
	"math"
	"strconv"

	"github.com/onnxrl/onnxrl/models/checkpoint"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Priorities describe a [Prioritised] replay.
type Priorities struct {
	// Alpha is the exponent of priorities: 0 is uniform.
	Alpha float64
	// Eps is added to an error before it becomes a priority, so that none is 0.
	Eps float64
}

// Prioritised samples transitions in proportion to (|error| + eps)^alpha, the proportional variant
// of prioritised experience replay (Schaul et al. 2016, arXiv 1511.05952, algorithm 1): one sample
// out of each of as many equal ranges of the sum as the batch has rows. New transitions have the
// largest priority that there has been. It is not safe for concurrent use.
type Prioritised struct {
	*Uniform
	p    Priorities
	tree *sumTree
	// highest is the largest priority so far, before the exponent.
	highest float64
	beta    float64
	points  []float64
}

var _ Buffer = (*Prioritised)(nil)

// NewPrioritised returns an empty replay.
func NewPrioritised(l Layout, c Config, p Priorities) (*Prioritised, error) {
	if err := p.check(); err != nil {
		return nil, fmt.Errorf("new replay: %w", err)
	}
	u, err := NewUniform(l, c)
	if err != nil {
		return nil, err
	}
	r := &Prioritised{Uniform: u, p: p, tree: newSumTree(u.rows.n), highest: 1}
	u.added = func(row int) { r.tree.set(row, math.Pow(r.highest, r.p.Alpha)) }
	u.dropped = func(row int) { r.tree.set(row, 0) }
	return r, nil
}

func (p Priorities) check() error {
	if !(p.Alpha >= 0 && p.Eps > 0) || math.IsInf(p.Alpha, 0) || math.IsInf(p.Eps, 0) {
		return fmt.Errorf("priorities with alpha %g and eps %g; expected at least 0, and more than 0", p.Alpha, p.Eps)
	}
	return nil
}

// SetPriorities sets the exponent, also of the transitions that there are, and what is added to
// errors from now on. With an exponent of 0 all priorities are alike: those of before become the
// highest.
func (r *Prioritised) SetPriorities(p Priorities) error {
	if err := p.check(); err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	if p.Alpha != r.p.Alpha {
		for e := range r.streams {
			for k, w := range r.weights(e) {
				switch {
				case w == 0:
				case r.p.Alpha == 0:
					r.weights(e)[k] = math.Pow(r.highest, p.Alpha)
				default:
					r.weights(e)[k] = math.Pow(w, p.Alpha/r.p.Alpha)
				}
			}
		}
		r.tree.sumAll()
	}
	r.p = p
	return nil
}

// SetBeta sets the exponent of importance weights: 0 corrects nothing, 1 all.
func (r *Prioritised) SetBeta(beta float64) { r.beta = beta }

// Sample implements Buffer. Weight is (Len·P)^−beta divided by the largest of the batch, P being
// the probability of a sample.
func (r *Prioritised) Sample(s *rng.Stream, b *Batch) error {
	n, err := r.prepare(b)
	if err != nil {
		return fmt.Errorf("replay: sample: %w", err)
	}
	if cap(r.points) < n {
		r.points = make([]float64, n)
	}
	points := r.points[:n]
	total := r.tree.total()
	for i := range points {
		points[i] = (float64(i) + s.Float64()) / float64(n) * total
	}
	r.tree.find(points, r.at)
	if b.Weight != nil {
		least := math.Inf(1)
		for _, row := range r.at {
			least = min(least, r.tree.weight(row))
		}
		// Of (N·p/Σ)^−β over its largest value, which the least likely sample has, only the ratio
		// of the priorities remains.
		for i, row := range r.at {
			b.Weight[i] = float32(math.Pow(least/r.tree.weight(row), r.beta))
		}
	}
	r.fill(b)
	return nil
}

// Update sets the priorities of samples, by Batch.Index, to those of their errors. An error that is
// not finite is an error, and changes nothing.
func (r *Prioritised) Update(index []int64, errors []float32) error {
	if len(index) != len(errors) {
		return fmt.Errorf("replay: update: %d priorities for %d samples", len(errors), len(index))
	}
	for i, e := range errors {
		if x := math.Abs(float64(e)); !(x <= math.MaxFloat32) {
			return fmt.Errorf("replay: update: sample %d has the error %g", i, e)
		}
		if k := index[i]; k < 0 || k >= int64(r.rows.n) {
			return fmt.Errorf("replay: update: sample %d has the index %d of %d", i, k, r.rows.n)
		}
	}
	for i, e := range errors {
		row := int(index[i])
		// A row that has meanwhile been overwritten is no transition, or another one.
		if r.tree.weight(row) == 0 {
			continue
		}
		p := math.Abs(float64(e)) + r.p.Eps
		r.highest = max(r.highest, p)
		r.tree.put(row, math.Pow(p, r.p.Alpha))
	}
	for _, k := range index {
		r.tree.sum(int(k))
	}
	return nil
}

// priorities is what a prioritised replay carries beside its rows.
type priorities struct {
	Alpha   float64 `json:"alpha"`
	Eps     float64 `json:"eps"`
	Highest float64 `json:"highest"`
	Beta    float64 `json:"beta"`
}

// weights returns the weights of the rows of environment e that are filled.
func (r *Prioritised) weights(e int) []float64 {
	from := r.tree.leaves + e*r.size
	return r.tree.node[from : from+r.streams[e].n]
}

// SaveState implements checkpoint.Stater.
func (r *Prioritised) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("priorities", priorities{r.p.Alpha, r.p.Eps, r.highest, r.beta})
	for e := range r.streams {
		w.Scope("priority").PutFloat64s(strconv.Itoa(e), r.weights(e))
	}
	return r.Uniform.SaveState(w)
}

// LoadState implements checkpoint.Stater.
func (r *Prioritised) LoadState(from *checkpoint.Reader) error {
	var s priorities
	if err := from.JSON("priorities", &s); err != nil {
		return err
	}
	if err := r.Uniform.LoadState(from); err != nil {
		return err
	}
	clear(r.tree.node)
	for e := range r.streams {
		if err := from.Scope("priority").Float64sInto(strconv.Itoa(e), r.weights(e)); err != nil {
			return err
		}
	}
	r.tree.sumAll()
	r.highest, r.beta = s.Highest, s.Beta
	// The priorities that were saved have another exponent where that was edited.
	own := r.p
	r.p = Priorities{Alpha: s.Alpha, Eps: s.Eps}
	return r.SetPriorities(own)
}
