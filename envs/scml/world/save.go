package world

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/onnxrl/onnxrl/envs/scml/negotiation"
)

// saved is the form of a saved world.
type saved struct {
	Agents      int                `json:"agents"`
	World       state              `json:"world"`
	Negotiation *negotiation.State `json:"negotiation"`
	Boxes       []negotiation.Box  `json:"boxes"`
	InForce     []float64          `json:"in_force"`
	Statistics  Statistics         `json:"statistics"`
	Event       Event              `json:"event"`
	Agent       int                `json:"agent"`
	Delivered   []int              `json:"delivered,omitempty"`
}

// SaveState returns all that the rest of the run depends on, but for the agents
// ([Table.SaveState]). It may be called between any two calls of Next, before a question is
// answered or after.
func (w *World) SaveState() ([]byte, error) {
	return json.Marshal(saved{len(w.views), w.s, w.engine.State(), w.boxes, w.inForce, w.statistics, w.question.Event, w.question.Agent, w.delivered})
}

// LoadState goes on, in a world made with the same configuration and kinds of agents, where
// SaveState was called: Question is what it was, with the answer if there was one. What the last
// day brought each agent is not part of it. After an error the world must not be used.
func (w *World) LoadState(data []byte) error {
	var s saved
	if err := strictly(data, &s); err != nil {
		return fmt.Errorf("load a world: %w", err)
	}
	if s.Agents != len(w.views) || len(s.World.Accounts) != len(w.views) || len(s.World.Reports) != len(w.views) || len(s.World.Due) != w.c.Days || len(s.World.Prices) != len(w.s.Prices) || len(s.Boxes) != len(w.boxes) || len(s.InForce) != len(w.inForce) || s.World.Day < 0 || s.World.Day >= w.c.Days {
		return fmt.Errorf("load a world: the state is of another one: %d agents, %d days and %d products, expected %d, %d and %d", s.Agents, len(s.World.Due), len(s.World.Prices), len(w.views), w.c.Days, len(w.s.Prices))
	}
	if err := w.engine.SetState(s.Negotiation); err != nil {
		return fmt.Errorf("load a world: %w", err)
	}
	w.s, w.boxes, w.inForce, w.statistics, w.delivered = s.World, s.Boxes, s.InForce, s.Statistics, s.Delivered
	// The day's exogenous contracts are collected again.
	if w.s.Phase != starting || w.s.Agent > 0 {
		for w.s.Exogenous > 0 && w.c.Exogenous[w.s.Exogenous-1].Day == w.s.Day {
			w.s.Exogenous--
		}
		w.exogenous()
	}
	if s.Event < 0 || s.Event > Over || s.Event == Agreed && len(w.s.Contracts) == 0 || (s.Event == Failed || s.Event >= AskFirst && s.Event <= AskProposal) && w.engine.Asked().Mechanism == nil {
		return fmt.Errorf("load a world: event %d is none that it could stop for", s.Event)
	}
	w.ask(s.Event, s.Agent)
	return nil
}

// savedTable is the form of a saved table.
type savedTable struct {
	World  json.RawMessage   `json:"world"`
	Agents []json.RawMessage `json:"agents"`
}

// SaveState returns all that the rest of the run depends on, the memories of agents included. It
// fails while an agent has not come back from a call, since it may be changing its memory.
func (t *Table) SaveState() ([]byte, error) {
	s := savedTable{Agents: make([]json.RawMessage, len(t.seats))}
	var err error
	if s.World, err = t.World.SaveState(); err != nil {
		return nil, err
	}
	for i := range t.seats {
		if t.seats[i].absent(t.run) {
			return nil, fmt.Errorf("save the memory of %s: it has not come back from a call", t.c.Factories[i].ID)
		}
		m, ok := t.seats[i].agent.(Remembering)
		if !ok {
			s.Agents[i] = json.RawMessage("null")
		} else if s.Agents[i], err = json.Marshal(m.Memory()); err != nil {
			return nil, fmt.Errorf("save the memory of %s: %w", t.c.Factories[i].ID, err)
		}
	}
	return json.Marshal(s)
}

// LoadState goes on where SaveState was called, in a table of the same configuration with agents of
// the same kinds that has not begun, as [World.LoadState] does. Agents learn that the world starts,
// and then receive their memories. After an error the table must not be used.
func (t *Table) LoadState(data []byte) error {
	var s savedTable
	if err := strictly(data, &s); err != nil {
		return fmt.Errorf("load a table: %w", err)
	}
	if err := t.World.LoadState(s.World); err != nil {
		return err
	}
	if len(s.Agents) != len(t.seats) {
		return fmt.Errorf("load a table: %d agents, expected %d", len(s.Agents), len(t.seats))
	}
	for i := range t.seats {
		t.seats[i].agent.Starts(t.seats[i].v)
		m, ok := t.seats[i].agent.(Remembering)
		if ok == (string(s.Agents[i]) == "null") {
			return fmt.Errorf("load a table: seat %d (%s) had another agent", i, t.c.Factories[i].ID)
		}
		if !ok {
			continue
		}
		if err := strictly(s.Agents[i], m.Memory()); err != nil {
			return fmt.Errorf("load the memory of %s: %w", t.c.Factories[i].ID, err)
		}
	}
	return nil
}

func strictly(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	return dec.Decode(v)
}
