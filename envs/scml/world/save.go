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
	Delivered   []int              `json:"delivered,omitempty"`
}

// SaveState returns all that the rest of the run depends on, but for the agents. It may be called
// between any two calls of Next; an answer that was not read yet is asked for again.
func (w *World) SaveState() ([]byte, error) {
	return json.Marshal(saved{len(w.views), w.s, w.engine.State(), w.boxes, w.inForce, w.statistics, w.delivered})
}

// LoadState goes on, in a world made with the same configuration and kinds of agents, where
// SaveState was called: Next asks what it had asked last, or what comes next if that was news. What
// the last day brought each agent is not part of it. After an error the world must not be used.
func (w *World) LoadState(data []byte) error {
	var s saved
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&s); err != nil {
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
	return nil
}
