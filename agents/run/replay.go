package run

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
)

// replay returns the store that the run is given. What the run would put into it must mean the same
// to others.
func (r *Run) replay() (agents.Replay, error) {
	if n := r.cfg.Wrappers.Normalize; n.Obs || n.Reward {
		return nil, errors.New("wrappers.normalize: members of a replay that is shared would each have statistics of their own, and record what others cannot read")
	}
	if r.cfg.Dataset != nil {
		return nil, errors.New("dataset: the run is given a replay that members share, and learns from that")
	}
	given, err := r.plan.o.Replay(r)
	if err != nil {
		return nil, fmt.Errorf("the replay of seed %d: %w", r.seed, err)
	}
	return given, nil
}
