package pettingzoo

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/gymnasium"
	"github.com/onnxrl/onnxrl/envs/vector"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// split says how what a whole world observes and does is divided among its agents.
type split struct {
	spec   envs.Spec
	agents []string
	// own is the number of fields of each agent, which come agent by agent; present is the field
	// that says who has any, state that of the state, or -1.
	own, present, state int
	// roles are those of the agents; show are the fields that say who an agent is.
	roles []int
	show  []string
	// central says that what all agents observe is central.
	central bool
	// infos and costs are how many of each an agent has.
	infos, costs int
}

// The fields that are no agent's.
const (
	presentField = ":present"
	stateField   = ":state"
)

// newSplit finds out what the parts of a whole are.
func newSplit(c Config, whole envs.Spec) (*split, error) {
	s := &split{state: -1, show: c.Show, central: c.Central == Observations, infos: len(c.Info), costs: len(c.Costs)}
	s.spec = envs.Spec{
		Name: c.ID, Masked: whole.Masked, Reward: envs.Range{Low: math.Inf(-1), High: math.Inf(1)}, Costs: slices.Clone(c.Costs), Info: slices.Clone(c.Info), MaxSteps: whole.MaxSteps, Random: true,
	}
	for i, f := range whole.Observation {
		agent, name, nested := strings.Cut(f.Name, "/")
		switch {
		case f.Name == presentField:
			s.present = i
			continue
		case agent == stateField:
			s.state = i
			continue
		case !nested:
			name = gymnasium.Observation
		}
		if !slices.Contains(s.agents, agent) {
			s.agents = append(s.agents, agent)
		}
		if len(s.agents) == 1 {
			s.own++
			s.spec.Observation = append(s.spec.Observation, envs.Field{Name: name, Space: f.Space})
		}
	}
	if err := envs.CheckAgents(s.agents); err != nil {
		return nil, err
	}
	s.identify()
	switch {
	case s.central:
		for i, f := range whole.Observation[:s.own*len(s.agents)] {
			_, name, _ := strings.Cut(f.Name, "/")
			s.spec.Observation = append(s.spec.Observation, envs.Field{Name: strings.TrimSuffix("all/"+s.agents[i/s.own]+"/"+name, "/"), Space: f.Space, Central: true})
		}
	case s.state >= 0:
		s.spec.Observation = append(s.spec.Observation, envs.Field{Name: State, Space: whole.Observation[s.state].Space, Central: true})
	}
	k := len(s.agents)
	switch a := whole.Action.(type) {
	case envs.MultiDiscrete:
		own := envs.MultiDiscrete{N: a.N[:len(a.N)/k]}
		if a.Start != nil {
			own.Start = a.Start[:len(own.N)]
		}
		s.spec.Action = own
		if len(a.N) == k {
			one := envs.Discrete{N: a.N[0]}
			if a.Start != nil {
				one.Start = a.Start[0]
			}
			s.spec.Action = one
		}
	case envs.MultiBinary:
		s.spec.Action = envs.MultiBinary{N: a.N / k}
	case envs.Box:
		n := a.Dims[0] / k
		first := func(x []float64) []float64 { return x[:min(n, len(x))] }
		s.spec.Action = envs.Box{Of: a.Of, Dims: []int{n}, Low: first(a.Low), High: first(a.High)}
	default:
		return nil, fmt.Errorf("the actions of all agents are %v", whole.Action)
	}
	return s, s.spec.Validate()
}

// identify adds the fields that say who an agent is.
func (s *split) identify() {
	var names []string
	for _, a := range s.agents {
		role := a
		if i := strings.LastIndexByte(a, '_'); i > 0 {
			role = a[:i]
		}
		i := slices.Index(names, role)
		if i < 0 {
			i, names = len(names), append(names, role)
		}
		s.roles = append(s.roles, i)
	}
	for _, name := range s.show {
		n := len(s.agents)
		if name == Role {
			n = len(names)
		}
		s.spec.Observation = append(s.spec.Observation, envs.Field{Name: name, Space: envs.Discrete{N: n}})
	}
}

// observe writes what agent i of world w observes, and which actions are valid, from the buffers of
// a batch of worlds.
func (s *split) observe(i, w int, obs []*tensor.Tensor, mask *tensor.Tensor, worlds int, ts *envs.TimeStep) {
	part := func(from *tensor.Tensor, to []byte) {
		copy(to, from.Bytes()[w*len(to):])
	}
	for f := range s.own {
		part(obs[i*s.own+f], ts.Obs[f].Bytes())
	}
	at := s.own
	for _, name := range s.show {
		who := i
		if name == Role {
			who = s.roles[i]
		}
		ts.Obs[at].Int64s()[0] = int64(who)
		at++
	}
	if s.central {
		present := s.there(w, obs, worlds)
		for f := range s.own * len(s.agents) {
			to := ts.Obs[at+f].Bytes()
			if clear(to); present[f/s.own] {
				part(obs[f], to)
			}
		}
	} else if s.state >= 0 {
		part(obs[s.state], ts.Obs[at].Bytes())
	}
	if mask != nil {
		n := envs.MaskLen(s.spec.Action)
		copy(ts.Mask.Bytes(), mask.Bytes()[(w*len(s.agents)+i)*n:][:n])
	}
}

// there says which agents of world w observe something.
func (s *split) there(w int, obs []*tensor.Tensor, worlds int) []bool {
	all := obs[s.present].Bools()
	n := len(all) / worlds
	return all[w*n : (w+1)*n]
}

// told returns what a step has been for agent i of a world whose diagnostics are given: what has
// become of it, and its reward.
func (s *split) told(i int, info []float64) (end, reward float64, rest []float64) {
	n := 2 + s.infos + s.costs
	own := info[i*n : (i+1)*n]
	return own[0], own[1], own[2:]
}

// fill writes the action of agent i of world w to those of a batch of worlds, or for one that is
// not there the valid one that is nearest to zeros.
func (s *split) fill(b *vector.Batch, i, w int, action *tensor.Tensor, there bool) {
	size := len(action.Bytes())
	row := w*len(s.agents) + i
	to := b.Actions.Bytes()[row*size : (row+1)*size]
	if there {
		copy(to, action.Bytes())
		return
	}
	clear(to)
	if box, ok := s.spec.Action.(envs.Box); ok {
		n := box.Dims[0]
		for k, numbers := 0, b.Actions.Float32s()[row*n:]; k < n; k++ {
			r := box.Bounds(k)
			numbers[k] = float32(min(max(0, r.Low), r.High))
		}
	}
}
