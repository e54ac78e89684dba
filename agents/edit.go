package agents

import (
	"fmt"
	"strings"

	"github.com/onnxrl/onnxrl/configs"
)

// Editor is implemented by a [Learner] that takes new hyper-parameters between two steps.
type Editor interface {
	// Edit makes the learner one of config, what Maker.Config of the same algorithm returns, in a
	// run of totalEnvSteps as in Setup. Afterwards it equals, bit for bit, one that was made so and
	// has loaded this one's state. A [*RebuildError] says that this takes a new agent. After an
	// error nothing has changed. The caller replaces actors that were made before.
	Edit(config any, totalEnvSteps int64) error
}

// RebuildError says that a learner cannot take a change of its configuration, because what it was
// built with depends on it: graphs, the shapes of parameters, the replay. A new agent of the edited
// configuration may be able to load the state.
type RebuildError struct {
	// Path is the key below the agent's section.
	Path string
}

func (e *RebuildError) Error() string {
	return fmt.Sprintf("agent.%s cannot change while a learner lives: it takes a new agent", e.Path)
}

// Editable is nil where two configurations of an algorithm differ only in the keys at and below
// paths, and else a [*RebuildError] for the first other one.
func Editable(from, to any, paths ...string) error {
	changes, err := configs.Diff(from, to)
	if err != nil {
		return err
	}
	for _, c := range changes {
		editable := false
		for _, p := range paths {
			rest, ok := strings.CutPrefix(c.Path, p)
			editable = editable || ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
		}
		if !editable {
			return &RebuildError{Path: c.Path}
		}
	}
	return nil
}
