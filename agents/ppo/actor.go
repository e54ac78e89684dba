package ppo

import (
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/envs"
	"github.com/onnxrl/onnxrl/envs/vector"
)

// states are those of a recurrent policy in the environments that one actor acts in.
type states struct {
	// now has the states for the next decision, [n, size] each, unless an episode begins with it.
	// before has those that the last decision was taken with: the inputs of the actor's program,
	// nil when there is none.
	now, before [][]float32
	g           *graphs
}

func newStates(g *graphs, n int) *states {
	if len(g.states) == 0 {
		return nil
	}
	s := &states{g: g}
	for _, x := range g.states {
		s.now = append(s.now, x.Tensor(n).Float32s())
	}
	return s
}

// stateInputs give a program the states, and have its new ones.
type stateInputs struct {
	*states
	in, out [][]float32
}

// feed makes the states inputs of f.
func (s *states) feed(f *onpolicy.Forward) *stateInputs {
	m := &stateInputs{states: s}
	for _, x := range s.g.states {
		m.in, m.out = append(m.in, f.Program.Input(x.Input).Float32s()), append(m.out, f.Program.Output(x.Output).Float32s())
	}
	f.Inputs = m
	return m
}

// Current implements onpolicy.Inputs. It forgets what was before in the environments that begin an
// episode.
func (m *stateInputs) Current(b *vector.Batch) error {
	for e, t := range b.Type {
		if t == envs.Mid {
			continue
		}
		for i, x := range m.now {
			s := m.g.states[i]
			s.Fill(x[e*s.Len():][:s.Len()])
		}
	}
	return m.Final(b)
}

// Final implements onpolicy.Inputs, with the states after the last decisions.
func (m *stateInputs) Final(*vector.Batch) error {
	for i, x := range m.in {
		copy(x, m.now[i])
	}
	return nil
}

// keep keeps the program's new states for the next decision.
func (m *stateInputs) keep() {
	for i, x := range m.out {
		copy(m.now[i], x)
	}
}
