package run

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/agents"
)

// replay returns the store that the run is given.
func (r *Run) replay() (agents.Replay, error) {
	if r.cfg.Dataset != nil {
		return nil, errors.New("dataset: the run is given a replay that members share, and learns from that")
	}
	given, err := r.plan.o.Replay(r)
	if err != nil {
		return nil, fmt.Errorf("the replay of seed %d: %w", r.seed, err)
	}
	return given, nil
}
