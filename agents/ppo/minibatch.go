package ppo

import (
	"github.com/onnxrl/onnxrl/agents/onpolicy"
	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/models/layer"
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/autodiff"
)

// minibatch is a program over a fixed number of units with the samples of a rollout as its rows.
type minibatch struct {
	prog *program.Program
	l    *learner
	// units is how many of them fit.
	units int
	// columns and states go into the program; keep is its input of that name, nil without a memory.
	columns []inputColumn
	states  []state
	keep    []float32
	masks   *onpolicy.Masks
	// samples has the sample of each row. Those that valid marks, n of them, are different ones;
	// the others fill up the program with copies, or are steps of a sequence whose row was absent.
	samples []int
	valid   []bool
	n       int
}

// inputColumn is a column and where it goes in the program.
type inputColumn struct {
	*onpolicy.Column
	to []byte
}

// state are the states before every sequence of a rollout, and the program's for those of a
// minibatch.
type state struct{ from, to []float32 }

// newMinibatch compiles a network for so many units of the rollout, with the gradient of its loss
// where it learns.
func (l *learner) newMinibatch(net *models.Network, units int, learns bool) (*minibatch, error) {
	g, s, r := l.g, &l.Setup, l.Rollout
	cfg, cost := program.Config{Engine: s.Engine, Batch: units, BatchSymbol: layer.Batch, Weights: []string{policyWeight, floorInput, valueWeight, entropyWeight, costWeight}}, 1.0
	if learns {
		cost = 3
		cfg.Objectives = []autodiff.Objective{{Losses: []autodiff.Loss{{Value: onpolicy.LossOutput}}, Stop: g.Stops}}
		cfg.Gradients = []*models.Segment{l.Grads}
	}
	cfg.Shards = s.Split(program.SplitFLOPs).Shards(net, layer.Batch, units, cost)
	p, err := program.New(net, l.Params, cfg)
	if err != nil {
		return nil, err
	}
	l.Programs = append(l.Programs, p)
	rows := units * max(1, g.length)
	m := &minibatch{prog: p, l: l, units: units, samples: make([]int, rows), valid: make([]bool, rows), masks: l.NewMasks(p, rows)}
	for _, c := range append([]*onpolicy.Column{r.Actions, r.Mask}, r.Fields...) {
		if c == nil {
			continue
		}
		if t := p.Input(c.Name); t != nil {
			m.columns = append(m.columns, inputColumn{c, t.Bytes()})
		}
	}
	for i, x := range g.states {
		m.states = append(m.states, state{l.initial[i], p.Input(x.Input).Float32s()})
	}
	if g.length > 0 {
		m.keep = p.Input(keepInput).Float32s()
	}
	return m, nil
}

// gather copies the samples of units into the program.
func (m *minibatch) gather(units []int) {
	m.choose(units)
	for _, c := range m.columns {
		to := c.to
		for _, i := range m.samples {
			to = to[copy(to, c.At(i)):]
		}
	}
	if r := m.l.Rollout; m.masks != nil {
		for row, i := range m.samples {
			m.masks.Fill(row, i%r.Envs, r.Seeds[i])
		}
	}
	if m.keep == nil {
		return
	}
	for row, i := range m.samples {
		m.keep[row] = 1
		if m.l.begins[i] {
			m.keep[row] = 0
		}
	}
	for _, s := range m.states {
		width := len(s.from) / m.l.units()
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
	r, length := m.l.Rollout, m.l.g.length
	if length == 0 {
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
		u, t := units[0], row%length
		k := row / length
		if k < len(units) {
			u = units[k]
		}
		// Unit u is chunk u/envs of environment u%envs.
		t += u / r.Envs * length
		i := min(t, r.Rounds-1)*r.Envs + u%r.Envs
		m.valid[row] = k < len(units) && t < r.Rounds && r.Has(i)
		if m.valid[row] {
			m.n++
		}
		m.samples[row] = i
	}
}
