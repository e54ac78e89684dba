package vector

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// View is a batch that shows another one of as many rows with some fields of the observation
// replaced, for wrappers around vectors and for actors that see observations scaled. What is not
// replaced is shared and never copied.
type View struct {
	batch *Batch
	own   []int
	arena *tensor.Arena
	// rewards says that Reward is a buffer of the view's own.
	rewards bool
}

// NewView returns a view of batches of n rows of environments of a spec, with new buffers for the
// named fields of the observation, which must not be windows: they have the space that spec gives
// them, and whoever made the view fills them. With reward, Batch.Reward is a buffer of its own too,
// and Batch.Earned is what the other batch shows.
func NewView(spec envs.Spec, n int, fields []int, reward bool) (*View, error) {
	if n < 1 || len(fields) == 0 && !reward {
		return nil, fmt.Errorf("view: %d rows, %d fields", n, len(fields))
	}
	spec.Observation = slices.Clone(spec.Observation)
	own := envs.Dict{}
	for _, f := range fields {
		if spec.Observation[f].Window != nil {
			return nil, fmt.Errorf("view: observation %q is a window", spec.Observation[f].Name)
		}
		own = append(own, spec.Observation[f])
	}
	v := &View{own: slices.Clone(fields), rewards: reward, batch: &Batch{
		Obs: make([]*tensor.Tensor, len(spec.Observation)), Final: make([]*tensor.Tensor, len(spec.Observation)),
		Rows: make([][]int64, len(spec.Observation)), FinalRows: make([][]int64, len(spec.Observation)), spec: spec,
	}}
	if reward {
		v.batch.Reward = make([]float64, n)
	}
	if len(own) == 0 {
		return v, nil
	}
	// A batch of nothing but the replaced fields lays them out.
	part, arena, err := newBatch(envs.Spec{Observation: own, Action: envs.Discrete{N: 1}}, n, false)
	if err != nil {
		return nil, fmt.Errorf("view: %w", err)
	}
	v.arena = arena
	for k, f := range v.own {
		v.batch.Obs[f], v.batch.Final[f] = part.Obs[k], part.Final[k]
	}
	return v, nil
}

// Batch returns the batch, which is the same for the life of the view.
func (v *View) Batch() *Batch { return v.batch }

// Follow shows b from now on. After a step of b's environments it must be called again. It
// allocates nothing.
func (v *View) Follow(b *Batch) {
	to := v.batch
	to.Actions, to.Mask, to.FinalMask, to.Type, to.Discount, to.Costs, to.Info, to.Ended, to.earned = b.Actions, b.Mask, b.FinalMask, b.Type, b.Discount, b.Costs, b.Info, b.Ended, b.Earned()
	to.Present, to.Agents = b.Present, b.Agents
	if !v.rewards {
		to.Reward = b.Reward
	}
	for f := range to.Obs {
		if !slices.Contains(v.own, f) {
			to.Obs[f], to.Final[f], to.Rows[f], to.FinalRows[f] = b.Obs[f], b.Final[f], b.Rows[f], b.FinalRows[f]
			// Windows of equal shape may be over another table, as those of another split are.
			to.spec.Observation[f].Window = b.spec.Observation[f].Window
		}
	}
}

// Close frees the buffers. It fails, and can be repeated, while a binding still holds them.
func (v *View) Close() error {
	if v.arena == nil {
		return nil
	}
	return v.arena.Close()
}
