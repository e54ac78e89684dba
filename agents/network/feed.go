package network

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Feed copies the observations and masks of n environments into the inputs of a program.
type Feed struct {
	n     int
	obs   []*tensor.Tensor
	mask  *tensor.Tensor
	heads []int
}

// NewFeed returns a feed of the inputs, of n rows each, that [Torso.Inputs] declared with a prefix;
// in returns them by name, or nil for fields that the program does not read.
func NewFeed(f *Frame, n int, prefix string, in func(name string) *tensor.Tensor) *Feed {
	x := &Feed{n: n, heads: f.Heads, mask: in(prefix + agents.MaskInput)}
	for _, field := range f.Spec.Observation {
		x.obs = append(x.obs, in(prefix+field.Name))
	}
	return x
}

// Current copies what the environments show. A mask that leaves a head no valid action is an error:
// nobody could tell what to draw.
func (x *Feed) Current(b *vector.Batch) error {
	if len(b.Type) != x.n {
		return fmt.Errorf("a batch of %d environments, expected %d", len(b.Type), x.n)
	}
	for i, t := range x.obs {
		if t == nil {
			continue
		}
		// Rows that are in the batch already need none of Gather's checks, which cost more than
		// the copy.
		if o := b.Obs[i]; o != nil && len(o.Bytes()) == len(t.Bytes()) {
			copy(t.Bytes(), o.Bytes())
		} else if err := b.Gather(i, t); err != nil {
			return err
		}
	}
	if x.mask != nil {
		if b.Mask == nil {
			return errors.New("the batch has no mask")
		}
		copy(x.mask.Bytes(), b.Mask.Bytes())
		return x.check()
	}
	return nil
}

// check looks for a valid action of each head.
func (x *Feed) check() error {
	mask := x.mask.Bools()
	for i := range x.n {
		for h, k := range x.heads {
			if !slices.Contains(mask[:k], true) {
				return fmt.Errorf("the mask of environment %d leaves no valid action of head %d, which has %d", i, h, k)
			}
			mask = mask[k:]
		}
	}
	return nil
}

// Final copies the final observations of the episodes that ended, and their masks; the rows of the
// others keep what they have.
func (x *Feed) Final(b *vector.Batch) error {
	for i, t := range x.obs {
		if t == nil {
			continue
		}
		if err := b.GatherFinal(i, t); err != nil {
			return err
		}
	}
	if x.mask != nil {
		return b.GatherFinalMask(x.mask)
	}
	return nil
}
