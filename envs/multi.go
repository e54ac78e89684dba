package envs

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Multi is a world in which several named agents act at the same time, shaped like PettingZoo's
// parallel API (Terry et al. 2021, arXiv 2009.14471). Package vector makes a row of a batch of each
// agent of each world. It is not safe for concurrent use; different worlds are independent.
//
// Agents come and go. Reset and Step write a step for each agent that has one, and present[i] says
// whether agent i does. The step is of type First where the agent begins, Mid where it goes on, and
// Last where its episode ends, by its death (Terminate) or because it is cut off (Truncate). An
// agent that has begun has a step each time up to its last one, and none afterwards until it begins
// again. The episode of the world ends when no agent is left to act; one that is cut off gives all
// of them a last step.
//
// steps has a TimeStep that fits the Spec and present an element for each name of Agents, in their
// order. The world overwrites all of present and, of the steps, those of agents that have one; what
// it leaves in the others has no meaning. It keeps no reference to any of it.
type Multi interface {
	// Spec describes what one agent observes and does, which is the same for all of them. MaxSteps
	// is that of the world's episodes. It is constant for the world's life.
	Spec() Spec
	// Agents lists the names of all agents that may ever be present, in a fixed order.
	Agents() []string
	// Reset begins a new episode of the world, in which at least one agent is present, and writes
	// their first steps. All randomness of the episode comes from key.
	Reset(key rng.Key, steps []*TimeStep, present []bool) error
	// Step takes the actions of the agents that are present, elements of Spec().Action; those of
	// others have no meaning. An action outside the space is an [*ActionError]. Without a running
	// episode it returns [ErrNoEpisode].
	Step(actions []*tensor.Tensor, steps []*TimeStep, present []bool) error
	// Close frees what the world holds. Afterwards Reset and Step return [ErrClosed]; closing again
	// is no error.
	Close() error
}

// MultiSaver is implemented by worlds that can be saved in the middle of an episode.
type MultiSaver interface {
	// SaveState returns everything that the rest of the episode depends on.
	SaveState() ([]byte, error)
	// LoadState continues, in a world made with the same configuration and data, where SaveState
	// was called. It writes the current steps of the agents that are to act next, as
	// [Saver.LoadState] does: present says which these are. After an error the world needs a Reset.
	LoadState(state []byte, steps []*TimeStep, present []bool) error
}

// MultiFactory is a [Factory] of worlds with several agents, which vector.Open steps as a whole:
// its New returns what [AgentOf] makes of a world. Kinds return one where an environment is such a
// world.
type MultiFactory interface {
	Factory
	// Agents are those of every world.
	Agents() []string
	// NewMulti returns the index-th world of a batch. Equal splits and indices give equal worlds.
	NewMulti(split Split, index int) (Multi, error)
}

// CheckAgents returns an error unless names are those of at least one agent, all different.
func CheckAgents(names []string) error {
	if len(names) == 0 {
		return errors.New("a world without agents")
	}
	seen := map[string]bool{}
	for i, name := range names {
		if name == "" || seen[name] {
			return fmt.Errorf("agent %d: name %q is empty or taken", i, name)
		}
		seen[name] = true
	}
	return nil
}
