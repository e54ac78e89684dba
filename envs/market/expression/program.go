package expression

import (
	"fmt"
	"math"
	"slices"

	"github.com/onnxrl/onnxrl/envs/market/state"
)

// Program is a list of expressions that are computed together. It does not change and may be
// shared.
type Program struct {
	fields  []string
	nodes   []node
	outputs []int // nodes
	warmup  []int // of the outputs
	window  int   // bars of the longest
}

// node is an expression whose arguments are nodes before it.
type node struct {
	*Expr
	args  [3]int // nodes
	field int    // position in fields
	keep  int    // values that windows look back to; 0: none
	kept  int    // position of the values in a state
}

// Compile joins expressions. fields are the names that are available; an expression with another
// field is an error.
func Compile(fields []string, list ...*Expr) (*Program, error) {
	p := &Program{fields: slices.Clone(fields)}
	known := map[string]int{}
	var warmups []int // of nodes
	var add func(e *Expr) (int, error)
	add = func(e *Expr) (int, error) {
		text := e.String()
		if i, ok := known[text]; ok {
			return i, nil
		}
		n, warmup := node{Expr: e, field: -1}, 0
		if e.field != "" {
			if n.field = slices.Index(fields, e.field); n.field < 0 {
				return 0, fmt.Errorf("field $%s is not there; the data have %v", e.field, fields)
			}
		}
		for i, a := range e.args {
			at, err := add(a)
			if err != nil {
				return 0, err
			}
			n.args[i] = at
			warmup = max(warmup, warmups[at])
			if e.op.windowed() {
				p.nodes[at].keep = max(p.nodes[at].keep, e.n)
				p.window = max(p.window, e.n)
			}
		}
		if e.op != nil && e.op.windowed() {
			warmup += e.n - 1
		}
		p.nodes = append(p.nodes, n)
		warmups = append(warmups, warmup)
		known[text] = len(p.nodes) - 1
		return len(p.nodes) - 1, nil
	}
	for _, e := range list {
		i, err := add(e)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e, err)
		}
		p.outputs = append(p.outputs, i)
		p.warmup = append(p.warmup, warmups[i])
	}
	at := 0
	for i := range p.nodes {
		p.nodes[i].kept = at
		at += 2 * p.nodes[i].keep
	}
	return p, nil
}

// Outputs is the number of expressions.
func (p *Program) Outputs() int { return len(p.outputs) }

// Warmup is the number of bars before the first on which all windows of an expression are full.
func (p *Program) Warmup(output int) int { return p.warmup[output] }

// State is a program on one asset. It is not safe for concurrent use.
type State struct {
	p      *Program
	values []float64 // of the nodes
	// kept holds, for each node that windows look back to, a ring of its values twice in a row, so
	// that every window is one slice.
	kept    []float64
	scratch []float64
	bars    int // seen, at most the longest window
	next    []int
}

// New returns the state before the first bar.
func (p *Program) New() *State {
	s := &State{p: p, values: make([]float64, len(p.nodes)), scratch: make([]float64, p.window), next: make([]int, len(p.nodes))}
	kept := 0
	for i, n := range p.nodes {
		kept += 2 * n.keep
		if n.constant() {
			s.values[i] = n.value
		}
	}
	s.kept = make([]float64, kept)
	return s
}

// Next takes the fields of the asset's next bar, in the order of Compile, and writes a value per
// expression into out, NaN where there is none.
func (s *State) Next(fields, out []float64) {
	s.bars = min(s.bars+1, max(s.p.window, 1))
	for i := range s.p.nodes {
		n := &s.p.nodes[i]
		switch {
		case n.field >= 0:
			s.values[i] = fields[n.field]
		case n.op == nil:
		case n.op.elementwise != nil:
			s.values[i] = n.op.elementwise(s.values[n.args[0]], s.values[n.args[1]], s.values[n.args[2]])
		case n.op.shift && s.bars < n.n:
			s.values[i] = math.NaN()
		case n.op.pairs != nil:
			s.values[i] = n.op.pairs(s.last(n.args[0], n.n), s.last(n.args[1], n.n))
		default:
			s.values[i] = n.op.over(s.last(n.args[0], n.n), n.param, s.scratch)
		}
		if n.keep > 0 {
			ring := s.kept[n.kept : n.kept+2*n.keep]
			ring[s.next[i]], ring[s.next[i]+n.keep] = s.values[i], s.values[i]
			if s.next[i]++; s.next[i] == n.keep {
				s.next[i] = 0
			}
		}
	}
	for i, n := range s.p.outputs {
		out[i] = s.values[n]
	}
}

// last are the newest values of a node, oldest first: n of them, or as many as there are.
func (s *State) last(at, n int) []float64 {
	node := &s.p.nodes[at]
	end := node.kept + node.keep + s.next[at]
	return s.kept[end-min(n, s.bars) : end]
}

// State saves what changes from bar to bar, or restores it into a state of the same program that
// has been given no bar.
func (s *State) State(c *state.Codec) {
	c.Int(&s.bars, 0, max(s.p.window, 1))
	for i, n := range s.p.nodes {
		if n.keep == 0 {
			continue
		}
		c.Int(&s.next[i], 0, n.keep-1)
		ring := s.kept[n.kept : n.kept+2*n.keep]
		c.Floats(ring[:n.keep])
		copy(ring[n.keep:], ring[:n.keep])
	}
}
