package drift

import (
	"fmt"
	"math"
	"sync"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// blocks is the number of parts of a window, after each of which it moves.
const blocks = 8

// DefaultWindow is the number of rows of a window where nothing else is said.
const DefaultWindow = 2000

// Drift is the largest index of a window.
type Drift struct {
	// PSI is the population stability index of the feature that has moved most.
	PSI float64
	// Feature is its number over the features of all inputs, in their order.
	Feature int
	// Rows is the number of rows of the window, 0 before there was a whole one: nothing is known
	// then.
	Rows int
}

// Monitor counts observations in a sliding window. It is safe for concurrent use, and allocates
// nothing after it was made.
type Monitor struct {
	inputs []Input
	// block is the number of rows of a part of the window.
	block int

	mu sync.Mutex
	// counts are those of each part, feature after feature; sum is those of the whole window.
	counts [blocks][]uint32
	sum    []uint32
	// part is filled with rows of it, and full counts whole parts, up to all of them.
	part, rows, full int
	last             Drift
}

// NewMonitor returns a monitor for a window of about so many rows, at least 8.
func (r *Reference) NewMonitor(window int) *Monitor {
	m := &Monitor{inputs: r.Inputs, block: max(1, window/blocks)}
	n := 0
	for _, in := range r.Inputs {
		for _, f := range in.Features {
			n += len(f.Shares)
		}
	}
	for i := range m.counts {
		m.counts[i] = make([]uint32, n)
	}
	m.sum = make([]uint32, n)
	return m
}

// Inputs is the number of inputs that have statistics, and Input the name of one.
func (m *Monitor) Inputs() int { return len(m.inputs) }

// Input is the name of input i.
func (m *Monitor) Input(i int) string { return m.inputs[i].Name }

// Fits reports an input whose rows do not have the features of the reference. width is that of a
// row.
func (m *Monitor) Fits(i, width int, d tensor.DType) error {
	if n := len(m.inputs[i].Features); n != width {
		return fmt.Errorf("metadata %s: input %q has %d features, and a row of the model's %d", Key, m.inputs[i].Name, n, width)
	}
	if !counted(tensor.New(d, 1)) {
		return fmt.Errorf("metadata %s: input %q is %v, of which there are no statistics", Key, m.inputs[i].Name, d)
	}
	return nil
}

// Observe counts rows: list has a tensor for each input of the monitor, with the rows as its first
// axis, or nil, which counts nothing. It returns the drift of the last whole window; moved says
// that it has changed with these rows.
func (m *Monitor) Observe(list []*tensor.Tensor, rows int) (d Drift, moved bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for row := range rows {
		base, counts := 0, m.counts[m.part]
		for i := range m.inputs {
			features := m.inputs[i].Features
			t := list[i]
			if t != nil && t.DType() == tensor.Float32 {
				x := t.Float32s()[row*len(features) : (row+1)*len(features)]
				for k := range features {
					counts[base+bin(features[k].Edges, x[k])]++
					base += len(features[k].Shares)
				}
				continue
			}
			for k := range features {
				if t != nil {
					counts[base+bin(features[k].Edges, at(t, row*len(features)+k))]++
				}
				base += len(features[k].Shares)
			}
		}
		if m.rows++; m.rows == m.block {
			m.move()
			moved = moved || m.last.Rows > 0
		}
	}
	return m.last, moved
}

// move ends a part of the window.
func (m *Monitor) move() {
	for i, n := range m.counts[m.part] {
		m.sum[i] += n
	}
	m.rows = 0
	m.full = min(m.full+1, blocks)
	m.part = (m.part + 1) % blocks
	if m.full == blocks {
		m.last = m.psi()
		// The oldest part makes room.
		for i, n := range m.counts[m.part] {
			m.sum[i] -= n
		}
	}
	clear(m.counts[m.part])
}

// least is the smallest share that counts.
const least = 1e-4

// psi is the largest index of the window.
func (m *Monitor) psi() Drift {
	d := Drift{Rows: m.block * blocks}
	base, number := 0, 0
	for i := range m.inputs {
		for k := range m.inputs[i].Features {
			shares := m.inputs[i].Features[k].Shares
			total := uint32(0)
			for _, n := range m.sum[base : base+len(shares)] {
				total += n
			}
			sum := 0.0
			for b, e := range shares {
				e, a := max(float64(e), least), max(float64(m.sum[base+b])/float64(max(total, 1)), least)
				sum += (a - e) * math.Log(a/e)
			}
			if total > 0 && sum > d.PSI {
				d.PSI, d.Feature = sum, number
			}
			base += len(shares)
			number++
		}
	}
	return d
}

// Last is the drift of the last whole window.
func (m *Monitor) Last() Drift {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.last
}

// Name is what a feature is called: its input, and its place in a row where there are several.
func (m *Monitor) Name(feature int) string {
	for _, in := range m.inputs {
		if feature < len(in.Features) {
			if len(in.Features) == 1 {
				return in.Name
			}
			return fmt.Sprintf("%s[%d]", in.Name, feature)
		}
		feature -= len(in.Features)
	}
	return ""
}

// Feature is the distribution of a feature in the reference.
func (m *Monitor) Feature(feature int) Feature {
	for _, in := range m.inputs {
		if feature < len(in.Features) {
			return in.Features[feature]
		}
		feature -= len(in.Features)
	}
	return Feature{}
}
