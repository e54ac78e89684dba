package es

import (
	"fmt"

	"github.com/onnxrl/onnxrl/agents/network"
	"github.com/onnxrl/onnxrl/models/checkpoint"
)

var _ checkpoint.Stater = (*learner)(nil)

// state is what a learner carries beside arrays. Members are not saved: they follow from the centre
// and from keys.
type state struct {
	Updates int64 `json:"updates"`
	Rounds  int64 `json:"rounds"`
	Members int   `json:"members"`
	Next    int64 `json:"next"`
	Done    int64 `json:"done"`
}

// arrays lists what is known of the generation.
func (l *learner) arrays() network.Arrays {
	return network.Arrays{"episode": l.episode, "begun": l.begun, "sums": l.sums}
}

// SaveState implements checkpoint.Stater.
func (l *learner) SaveState(w *checkpoint.Writer) error {
	w.PutJSON("state", state{l.updates, l.rounds, l.strategy.members(), l.next, l.done})
	network.SaveParams(w.Scope("params"), l.params)
	l.arrays().Save(w.Scope("generation"))
	return l.strategy.save(w.Scope("strategy"))
}

// LoadState implements checkpoint.Stater.
func (l *learner) LoadState(r *checkpoint.Reader) error {
	var s state
	if err := r.JSON("state", &s); err != nil {
		return err
	}
	if s.Members != l.strategy.members() {
		return fmt.Errorf("%s: restore: a generation of %d members, expected %d", l.name, s.Members, l.strategy.members())
	}
	if s.Done < 0 || s.Next < s.Done || s.Next > l.planned() {
		return fmt.Errorf("%s: restore: %d of %d episodes have ended, and %d have begun", l.name, s.Done, l.planned(), s.Next)
	}
	if err := network.LoadParams(r.Scope("params"), l.params); err != nil {
		return err
	}
	if err := l.arrays().Load(r.Scope("generation")); err != nil {
		return err
	}
	for e, u := range l.episode {
		if u < -1 || u >= s.Next {
			return fmt.Errorf("%s: restore: environment %d has episode %d of %d", l.name, e, u, s.Next)
		}
	}
	if err := l.strategy.load(r.Scope("strategy")); err != nil {
		return err
	}
	l.updates, l.rounds, l.next, l.done, l.recording = s.Updates, s.Rounds, s.Next, s.Done, false
	l.replaced++
	clear(l.metrics)
	return nil
}
