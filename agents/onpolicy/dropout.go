package onpolicy

import (
	"github.com/onnxrl/onnxrl/models/program"
	"github.com/onnxrl/onnxrl/runtime/rng"
)

// Masks are the dropout masks that a program has as inputs. Those of a row follow from a seed, the
// same in every program of the agent: what learns from a sample drops what acted in it. They are
// not safe for concurrent use.
type Masks struct {
	masks []mask
	// seeds are those of the rows as they are, unset before the first.
	seeds []int64
	// drawn are the masks of environments, one after another, and ofs the seeds that they are from.
	drawn [][]float32
	ofs   []int64
	total int
}

// mask is an input of a program: size elements a row.
type mask struct {
	name string
	data []float32
	size int
	drop float64
}

// unset is no seed.
const unset = -1

// NewMasks finds the masks of a program of so many rows; nil where it has none.
func (l *Learner) NewMasks(p *program.Program, rows int) *Masks {
	m := &Masks{}
	for _, x := range l.Networks.Masks {
		if t := p.Input(x.Input); t != nil {
			data := t.Float32s()
			m.masks = append(m.masks, mask{x.Input, data, len(data) / rows, x.Ratio})
			m.total += len(data) / rows
		}
	}
	if m.masks == nil {
		return nil
	}
	m.seeds = make([]int64, rows)
	for i := range m.seeds {
		m.seeds[i] = unset
	}
	return m
}

// Fill makes the masks of a row those of a seed, 0 for none, with which environment env acted: each
// element is 0 with the ratio of its layer, and else 1/(1 − ratio).
func (m *Masks) Fill(row, env int, seed int64) {
	if m == nil || m.seeds[row] == seed {
		return
	}
	m.seeds[row] = seed
	if seed == 0 {
		for _, x := range m.masks {
			for i := range x.data[row*x.size:][:x.size] {
				x.data[row*x.size+i] = 1
			}
		}
		return
	}
	from := m.of(env, seed)
	for _, x := range m.masks {
		from = from[copy(x.data[row*x.size:][:x.size], from):]
	}
}

// of returns the masks of a seed, which are drawn once for all rows of an environment.
func (m *Masks) of(env int, seed int64) []float32 {
	for len(m.drawn) <= env {
		m.drawn, m.ofs = append(m.drawn, nil), append(m.ofs, unset)
	}
	if m.ofs[env] == seed {
		return m.drawn[env]
	}
	if m.drawn[env] == nil {
		m.drawn[env] = make([]float32, m.total)
	}
	m.ofs[env] = seed
	key, to := rng.New(uint64(seed)), m.drawn[env]
	var s rng.Stream
	for _, x := range m.masks {
		s.Seed(key.Split(x.name))
		keep := float32(1 / (1 - x.drop))
		for i := range x.size {
			to[i] = 0
			if s.Float64() >= x.drop {
				to[i] = keep
			}
		}
		to = to[x.size:]
	}
	return m.drawn[env]
}

// FillRollout makes the masks of the program's rows from the first on those of the rollout's samples
// from at on, as far as there are any.
func (m *Masks) FillRollout(r *Rollout, at int) {
	if m == nil {
		return
	}
	for row := range m.seeds {
		if i := at + row; i < len(r.Seeds) {
			m.Fill(row, i%r.Envs, r.Seeds[i])
		}
	}
}

// dropSeed is what environment env draws its masks from in the rollout that version of the
// parameters acts in.
func (l *Learner) dropSeed(version int64, env int) int64 {
	return int64(l.dropKey.Split("rollout", int(version), env).Stream().Uint64()>>1 | 1)
}
