package vector

import (
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Env is a batch of environments that step together. It is not safe for concurrent use.
type Env interface {
	// Spec describes one environment of the batch.
	Spec() envs.Spec
	// Len returns the number of environments.
	Len() int
	// Batch returns the buffers. They are the same for the life of the Env, and every Reset and
	// Step overwrites them.
	Batch() *Batch
	// Reset begins a new episode in every environment. All randomness until the next Reset descends
	// from key.
	Reset(key rng.Key) error
	// Step takes one action per environment, [B, …]. Actions that are not Batch().Actions itself
	// are copied there. After an error the environments need a Reset.
	Step(actions *tensor.Tensor) error
	// Close closes the environments and frees the buffers. It fails, and can be repeated, while a
	// binding still holds the buffers.
	Close() error
}

// Saver is implemented by vectors that can be saved in the middle of episodes. An error that wraps
// envs.ErrCannotSave says that this one cannot.
type Saver interface {
	// SaveState returns everything that later steps depend on.
	SaveState() ([]byte, error)
	// LoadState continues where SaveState was called, in an equal vector. Observations, masks and
	// diagnostics of the batch are restored; of the step before, types are envs.First or envs.Mid,
	// rewards 0, and no episode has ended.
	LoadState(state []byte) error
}

// Batch holds the current state of B environments. Row i of everything belongs to environment i, or
// to an agent of a world that has several.
// All of it is overwritten by the next step; only Actions may be written by the caller.
type Batch struct {
	// Actions [B, …] is where the next actions may be written.
	Actions *tensor.Tensor
	// Obs has a tensor [B, …] for each field of the observation: what the next actions are decided
	// on. It is nil for a window, unless Options.Windows is set.
	Obs []*tensor.Tensor
	// Rows has, for each field that is a window, the B numbers of the windows' last rows; nil for
	// other fields.
	Rows [][]int64
	// Mask [B, envs.MaskLen] says which of the next actions are valid; nil unless the spec is
	// masked.
	Mask *tensor.Tensor

	// Type, Reward, Discount, Costs and Info describe the step that was just taken. Costs[i] and
	// Info[i] have a value for each name of the spec. Where Type is envs.Last, Obs, Rows and Mask
	// already belong to the next episode.
	Type     []envs.StepType
	Reward   []float64
	Discount []float64
	Costs    [][]float64
	Info     [][]float64

	// Final and FinalRows are like Obs and Rows. Row i is the final observation of environment i
	// when Type[i] is envs.Last, and otherwise without meaning.
	Final     []*tensor.Tensor
	FinalRows [][]int64
	// FinalMask is like Mask: row i says which actions would be valid after the final observation
	// of environment i when Type[i] is envs.Last, for values that are a maximum or a mean over
	// actions, and otherwise without meaning. After a termination, where nothing follows and
	// environments need not say anything, all actions count as valid. It is nil unless the spec is
	// masked.
	FinalMask *tensor.Tensor

	// Ended lists the episodes that ended in this step, in the order of the environments.
	Ended []Episode

	// Present says of worlds with several agents ([Multi]) which of them Obs, Rows and Mask are of,
	// and so take the next actions; nil where all rows are present at all times. The observation of
	// a row that is absent is zeros (of windows, the first one of their table), its mask has every
	// action, and its action is ignored. Its step is of type envs.First, with reward 0, discount 1
	// and costs of 0, unless it is the one that ended its episode. A row that comes back begins an
	// episode. So a row has type envs.First after a step exactly where it did not take one.
	Present []bool
	// Agents has the name of each row's agent; nil where rows have no names.
	Agents []string

	spec envs.Spec
	// earned are the rewards of the environments where Reward shows others.
	earned []float64
}

// Earned returns the rewards as the environments gave them, which Reward holds too unless a wrapper
// has scaled those. Learners use Reward; reports use this.
func (b *Batch) Earned() []float64 {
	if b.earned != nil {
		return b.earned
	}
	return b.Reward
}

// Episode is the summary of one that has ended.
type Episode struct {
	// Env is the environment's row and Number counts its episodes since Reset, from 0. Of worlds
	// with several agents it counts those of the world, in which an agent may have several.
	Env, Number int
	// Return is the sum of the rewards, undiscounted.
	Return float64
	// Length is the number of steps after the first one.
	Length int
	// Truncated says that the episode was cut off and has not come to its end.
	Truncated bool
	// WorldGoesOn says that other agents go on in the same episode of their world.
	WorldGoesOn bool
}

// Gather copies the current observation of field i into dst [B, …], which may be a learner's bound
// input. Windows are copied from their table.
func (b *Batch) Gather(i int, dst *tensor.Tensor) error { return b.gather(i, dst, b.Obs, b.Rows) }

// Window returns what field i is windows of; nil where it is none.
func (b *Batch) Window(i int) *envs.Window {
	if i >= len(b.spec.Observation) {
		return nil
	}
	return b.spec.Observation[i].Window
}

// GatherFinal copies the final observations of field i into the rows of dst [B, …] whose episodes
// ended, and leaves the other rows alone.
func (b *Batch) GatherFinal(i int, dst *tensor.Tensor) error {
	if len(b.Ended) == 0 {
		return nil
	}
	return b.gatherEnded(i, dst)
}

// GatherFinalMask copies FinalMask into the rows of dst [B, envs.MaskLen] whose episodes ended, and
// leaves the other rows alone. An error says that the actions are not masked, or that dst has
// another form.
func (b *Batch) GatherFinalMask(dst *tensor.Tensor) error { return b.gatherFinalMask(dst) }
