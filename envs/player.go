package envs

import (
	"github.com/onnxrl/onnxrl/configs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Player is a scripted agent of worlds with several agents, such as an opponent that learners are
// measured by. It is not safe for concurrent use.
type Player interface {
	// Act writes what an agent of a world does next, of whom ts is the newest step. It sees all of
	// the world, which it does not change, remembers nothing but what the world keeps, and draws
	// from random alone, so that what it does depends on nothing else. It does not allocate.
	Act(w Multi, agent int, ts *TimeStep, random *rng.Stream, action *tensor.Tensor) error
}

// PlayerKind is one row of a list of players: the name that a configuration gives as kind, and how
// the other keys become a player.
type PlayerKind struct {
	Name    string
	Summary string
	New     func(params configs.Section) (Player, error)
}

// Scripted is implemented by a [MultiFactory] whose worlds have scripted players of their own.
type Scripted interface{ Players() []PlayerKind }

// NewPlayer finds the kind that a configuration names among those of a factory, whose worlds all
// have random, which draws among the valid actions.
func NewPlayer(f MultiFactory, c configs.Kinded) (Player, error) {
	kinds := []PlayerKind{{Name: "random", Summary: "draws among the valid actions", New: func(params configs.Section) (Player, error) {
		return &randomPlayer{}, params.Decode(&struct{}{})
	}}}
	if s, ok := f.(Scripted); ok {
		kinds = append(kinds, s.Players()...)
	}
	names := make([]string, len(kinds))
	for i, k := range kinds {
		if names[i] = k.Name; k.Name == c.Kind {
			return k.New(c.Section)
		}
	}
	return nil, c.Unknown(names)
}

// randomPlayer implements Player.
type randomPlayer struct{ space Space }

// Act implements Player.
func (p *randomPlayer) Act(w Multi, _ int, ts *TimeStep, random *rng.Stream, action *tensor.Tensor) error {
	if p.space == nil {
		p.space = w.Spec().Action
	}
	var mask []bool
	if ts.Mask != nil {
		mask = ts.Mask.Bools()
	}
	p.space.Sample(random, mask, action)
	return nil
}
