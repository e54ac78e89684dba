package cover

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/runtime/rng"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The actions.
const (
	Stay = iota
	Left
	Right
	Up
	Down
)

// moves has how far right and down an action goes.
var moves = [5][2]int{Left: {-1, 0}, Right: {1, 0}, Up: {0, -1}, Down: {0, 1}}

// gone is the cell of an agent that has broken down.
const gone = -1

// World is one world. It implements envs.Multi.
type World struct {
	c       Config
	spec    envs.Spec
	names   []string
	s       state
	running bool
	closed  bool
	random  rng.Stream
	// perm draws cells.
	perm []int
}

// state is where a world is, and the form of a saved one.
type state struct {
	Steps     int         `json:"steps"`
	Agents    []int       `json:"agents"`
	Landmarks []int       `json:"landmarks"`
	Random    *rng.Stream `json:"random"`
}

var (
	_ envs.Multi      = (*World)(nil)
	_ envs.MultiSaver = (*World)(nil)
)

// New returns a world.
func New(c Config) (*World, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("cover: %w", err)
	}
	k := c.Agents
	w := &World{c: c, perm: make([]int, c.Size*c.Size), spec: envs.Spec{
		Name: "cover", Observation: envs.Dict{{Name: "agent", Space: envs.Discrete{N: k}}, {Name: "landmarks", Space: envs.NewBox(-1, 1, 2*k)}},
		Action: envs.Discrete{N: len(moves)}, Masked: true, Reward: envs.Range{Low: 0, High: 1}, MaxSteps: c.Steps, Random: true,
	}}
	if k > 1 {
		w.spec.Observation = append(w.spec.Observation, envs.Field{Name: "others", Space: envs.NewBox(-1, 1, 3*(k-1))})
	}
	w.spec.Observation = append(w.spec.Observation, envs.Field{Name: "state", Space: envs.NewBox(0, 1, 5*k+1), Central: true})
	for i := range k {
		w.names = append(w.names, fmt.Sprintf("agent_%d", i))
	}
	w.s = state{Agents: make([]int, k), Landmarks: make([]int, k), Random: &w.random}
	return w, nil
}

// Spec implements envs.Multi.
func (w *World) Spec() envs.Spec { return w.spec }

// Agents implements envs.Multi.
func (w *World) Agents() []string { return w.names }

// Reset implements envs.Multi.
func (w *World) Reset(key rng.Key, steps []*envs.TimeStep, present []bool) error {
	if w.closed {
		return fmt.Errorf("reset cover: %w", envs.ErrClosed)
	}
	w.random.Seed(key)
	w.random.Perm(w.perm)
	copy(w.s.Agents, w.perm)
	w.random.Perm(w.perm)
	copy(w.s.Landmarks, w.perm)
	w.s.Steps, w.running = 0, true
	for i := range w.s.Agents {
		present[i] = true
		steps[i].Restart()
	}
	w.observe(steps)
	return nil
}

// Step implements envs.Multi.
func (w *World) Step(actions []*tensor.Tensor, steps []*envs.TimeStep, present []bool) error {
	switch {
	case w.closed:
		return fmt.Errorf("step cover: %w", envs.ErrClosed)
	case !w.running:
		return fmt.Errorf("step cover: %w", envs.ErrNoEpisode)
	}
	for i, at := range w.s.Agents {
		if present[i] = at != gone; present[i] {
			if err := envs.CheckAction(&w.spec, actions[i]); err != nil {
				return err
			}
		}
	}
	w.s.Steps++
	for i, at := range w.s.Agents {
		if present[i] {
			w.s.Agents[i] = w.moved(at, int(actions[i].Int64s()[0]))
		}
	}
	reward, end, left := w.covered(), w.s.Steps == w.c.Steps, 0
	for i := range w.s.Agents {
		switch {
		case !present[i]:
		case w.c.Failure > 0 && w.random.Float64() < w.c.Failure:
			w.s.Agents[i] = gone
			steps[i].Terminate(reward)
		case end:
			// The time is part of the task: nothing follows.
			steps[i].Terminate(reward)
		default:
			steps[i].Continue(reward)
			left++
		}
	}
	w.running = left > 0
	w.observe(steps)
	return nil
}

// moved returns the cell that an action leads to; one off the grid leads nowhere.
func (w *World) moved(at, action int) int {
	x, y := at%w.c.Size+moves[action][0], at/w.c.Size+moves[action][1]
	if x < 0 || y < 0 || x >= w.c.Size || y >= w.c.Size {
		return at
	}
	return y*w.c.Size + x
}

// covered is the share of landmarks with an agent.
func (w *World) covered() float64 {
	n := 0
	for _, l := range w.s.Landmarks {
		if slices.Contains(w.s.Agents, l) {
			n++
		}
	}
	return float64(n) / float64(len(w.s.Landmarks))
}

// observe writes what each agent sees. Of one that has just broken down, which is nowhere, what it
// sees has no meaning, and is zeros.
func (w *World) observe(steps []*envs.TimeStep) {
	width := float32(w.c.Size - 1)
	for i, ts := range steps {
		at := w.s.Agents[i]
		for _, o := range ts.Obs {
			clear(o.Bytes())
		}
		ts.Obs[0].Int64s()[0] = int64(i)
		central := ts.Obs[len(ts.Obs)-1].Float32s()
		for k, cell := range w.s.Agents {
			if cell != gone {
				central[3*k], central[3*k+1], central[3*k+2] = float32(cell%w.c.Size)/width, float32(cell/w.c.Size)/width, 1
			}
		}
		for k, cell := range w.s.Landmarks {
			at := 3*len(w.s.Agents) + 2*k
			central[at], central[at+1] = float32(cell%w.c.Size)/width, float32(cell/w.c.Size)/width
		}
		central[len(central)-1] = 1 - float32(w.s.Steps)/float32(w.c.Steps)
		mask := ts.Mask.Bools()
		for a := range mask {
			mask[a] = a == Stay || at != gone && w.moved(at, a) != at
		}
		if at == gone {
			continue
		}
		put := func(to []float32, cell int) {
			to[0], to[1] = float32(cell%w.c.Size-at%w.c.Size)/width, float32(cell/w.c.Size-at/w.c.Size)/width
		}
		for k, cell := range w.s.Landmarks {
			put(ts.Obs[1].Float32s()[2*k:], cell)
		}
		k := 0
		for j, cell := range w.s.Agents {
			if j == i {
				continue
			}
			if cell != gone {
				to := ts.Obs[2].Float32s()[3*k:]
				put(to, cell)
				to[2] = 1
			}
			k++
		}
	}
}

// Close implements envs.Multi.
func (w *World) Close() error {
	w.closed, w.running = true, false
	return nil
}

// SaveState implements envs.MultiSaver.
func (w *World) SaveState() ([]byte, error) {
	if !w.running {
		return nil, fmt.Errorf("save cover: %w", envs.ErrNoEpisode)
	}
	return json.Marshal(w.s)
}

// LoadState implements envs.MultiSaver.
func (w *World) LoadState(data []byte, steps []*envs.TimeStep, present []bool) error {
	s := state{Random: &rng.Stream{}}
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("load cover: %w", err)
	}
	if w.closed {
		return fmt.Errorf("load cover: %w", envs.ErrClosed)
	}
	cells := w.c.Size * w.c.Size
	off := func(cell int) bool { return cell < gone || cell >= cells }
	if len(s.Agents) != w.c.Agents || len(s.Landmarks) != w.c.Agents || s.Steps < 0 || s.Steps >= w.c.Steps || slices.ContainsFunc(s.Agents, off) || slices.ContainsFunc(s.Landmarks, off) || slices.Contains(s.Landmarks, gone) {
		return fmt.Errorf("load cover: step %d of %d, agents in the cells %v and landmarks in %v, expected %d of each in %d cells", s.Steps, w.c.Steps, s.Agents, s.Landmarks, w.c.Agents, cells)
	}
	w.random, w.running = *s.Random, true
	s.Random = &w.random
	w.s = s
	for i, at := range s.Agents {
		if present[i] = at != gone; s.Steps == 0 {
			steps[i].Restart()
		} else {
			steps[i].Continue(0)
		}
	}
	w.observe(steps)
	return nil
}
