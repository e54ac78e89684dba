package ppo

import (
	"github.com/onnxrl/onnxrl/agents"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// minibatch is a program over a fixed number of units with the samples of a rollout as its rows.
type minibatch struct {
	prog *program.Program
	r    *rollout
	// units is how many of them fit.
	units int
	// columns and states go into the program; keep is its input of that name, nil without a memory.
	columns []inputColumn
	states  []state
	keep    []float32
	// samples has the sample of each row. Those that valid marks, n of them, are different ones;
	// the others fill up the program with copies.
	samples []int
	valid   []bool
	n       int
}

// inputColumn is a column and where it goes in the program.
type inputColumn struct {
	*column
	to []byte
}

// state are the states before every sequence of a rollout, and the program's for those of a
// minibatch.
type state struct{ from, to []float32 }

// newMinibatch compiles a network for so many units of a rollout. objectives may be nil; grads then
// is, too.
func newMinibatch(g *graphs, net *models.Network, params *models.Params, grads *models.Segment, s *agents.Setup, units int, r *rollout) (*minibatch, error) {
	cfg, cost := program.Config{Engine: s.Engine, Batch: units, BatchSymbol: layer.Batch, Weights: []string{policyWeight, floorInput, valueWeight, entropyWeight}}, 1.0
	if grads != nil {
		cost = 3
		cfg.Objectives = []autodiff.Objective{{Losses: []autodiff.Loss{{Value: lossOutput}}, Stop: g.stops}}
		cfg.Gradients = []*models.Segment{grads}
	}
	cfg.Shards = s.Split(program.SplitFLOPs).Shards(net, layer.Batch, units, cost)
	p, err := program.New(net, params, cfg)
	if err != nil {
		return nil, err
	}
	rows := units * max(1, g.length)
	m := &minibatch{prog: p, r: r, units: units, samples: make([]int, rows), valid: make([]bool, rows)}
	for _, c := range r.columns() {
		if t := p.Input(c.name); t != nil {
			m.columns = append(m.columns, inputColumn{c, t.Bytes()})
		}
	}
	for i, name := range g.states {
		m.states = append(m.states, state{r.initial[i], p.Input(agents.StatePrefix + name).Float32s()})
	}
	if g.length > 0 {
		m.keep = p.Input(keepInput).Float32s()
	}
	return m, nil
}

// floats returns the numbers of the rows of an input or output, nil when the network has none of
// that name.
func (m *minibatch) floats(get func(name string) *tensor.Tensor, name string) []float32 {
	if t := get(name); t != nil {
		return t.Float32s()
	}
	return nil
}

// gather copies the samples of units into the program.
func (m *minibatch) gather(units []int) {
	m.choose(units)
	for _, c := range m.columns {
		to := c.to
		for _, i := range m.samples {
			to = to[copy(to, c.at(i)):]
		}
	}
	if m.keep == nil {
		return
	}
	for row, i := range m.samples {
		m.keep[row] = 1
		if m.r.begins[i] {
			m.keep[row] = 0
		}
	}
	for _, s := range m.states {
		width := len(s.from) / m.r.units()
		for k := range len(s.to) / width {
			u := units[0]
			if k < len(units) {
				u = units[k]
			}
			copy(s.to[k*width:][:width], s.from[u*width:])
		}
	}
}

// choose finds out the sample of each row.
func (m *minibatch) choose(units []int) {
	if m.r.length == 0 {
		m.n = copy(m.samples, units)
		for row := range m.samples {
			m.valid[row] = row < m.n
			if row >= m.n {
				m.samples[row] = units[0]
			}
		}
		return
	}
	m.n = 0
	for row := range m.samples {
		u, t := units[0], row%m.r.length
		k := row / m.r.length
		if k < len(units) {
			u = units[k]
		}
		// Unit u is chunk u/envs of environment u%envs.
		t += u / m.r.envs * m.r.length
		m.valid[row] = k < len(units) && t < m.r.rounds
		if m.valid[row] {
			m.n++
		}
		m.samples[row] = min(t, m.r.rounds-1)*m.r.envs + u%m.r.envs
	}
}
