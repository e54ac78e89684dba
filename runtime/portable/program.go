package portable

import (
	"errors"
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// program is a compiled graph: steps in execution order over numbered slots. It is immutable and
// shared by all frames that run it.
type program struct {
	steps    []step
	slots    int
	inputs   []int // slots of the graph's inputs
	outputs  []int // slots of the graph's outputs, distinct
	outIndex []int // per slot: its position in outputs, or -1
	consts   []constant
	register []int // per slot: the register holding its memory, or -1
	regs     int
	captures []capture // slots that a body takes from the graph around it
	scope    *scope
}

// step is one node: its kernel and the slots it reads and writes, -1 for absent ones.
type step struct {
	node    *onnx.Node
	op      *operator
	kernel  kernel
	in, out []int
}

type constant struct {
	slot  int
	value *tensor.Tensor
}

type capture struct{ inner, outer int }

// scope resolves names to slots while a graph is compiled. Sub-graphs see their parent's names, and
// taking one records a capture.
type scope struct {
	parent *scope
	slot   map[string]int
	prog   *program
}

func (s *scope) define(name string) (int, error) {
	if _, ok := s.slot[name]; ok {
		return 0, fmt.Errorf("value %q is defined twice", name)
	}
	id := s.prog.slots
	s.prog.slots++
	s.slot[name] = id
	return id, nil
}

func (s *scope) lookup(name string) (int, bool) {
	if id, ok := s.slot[name]; ok {
		return id, true
	}
	if s.parent == nil {
		return 0, false
	}
	outer, ok := s.parent.lookup(name)
	if !ok {
		return 0, false
	}
	inner, _ := s.define(name)
	s.prog.captures = append(s.prog.captures, capture{inner, outer})
	return inner, true
}

// compileGraph lowers g, sends it through the decoder and turns what comes back into a program.
// parent is nil for a model's own graph. hint may be nil.
func compileGraph(g *onnx.Graph, m *onnx.Model, parent *scope, hint sizeHint) (*program, error) {
	l, err := lowerGraph(g, m, parent != nil)
	if err != nil {
		return nil, err
	}
	nodes, in, out, err := decodeStructure(l)
	if err != nil {
		return nil, err
	}
	p := &program{}
	s := &scope{parent: parent, slot: map[string]int{}, prog: p}
	p.scope = s
	for _, name := range in {
		id, err := s.define(name)
		if err != nil {
			return nil, fmt.Errorf("input: %w", err)
		}
		p.inputs = append(p.inputs, id)
	}
	if err := p.addWeights(l, s); err != nil {
		return nil, err
	}
	for _, n := range nodes {
		if err := p.addNode(n, m, s); err != nil {
			return nil, err
		}
	}
	for _, name := range out {
		id, ok := s.slot[name]
		if !ok {
			return nil, fmt.Errorf("output %q: no node makes it", name)
		}
		p.outputs = append(p.outputs, id)
	}
	p.outIndex = make([]int, p.slots)
	for i := range p.outIndex {
		p.outIndex[i] = -1
	}
	for i, id := range p.outputs {
		p.outIndex[id] = i
	}
	p.planRegisters(s, hint)
	return p, nil
}

// maxSparseBytes bounds the dense form of a sparse constant.
const maxSparseBytes = 1 << 30

func (p *program) addWeights(l *lowered, s *scope) error {
	for _, w := range l.weights {
		t, err := onnx.TensorOf(w)
		if err != nil {
			return fmt.Errorf("initializer: %w", err)
		}
		id, err := s.define(w.Name)
		if err != nil {
			return fmt.Errorf("initializer: %w", err)
		}
		p.consts = append(p.consts, constant{id, t})
	}
	for _, w := range l.sparse {
		t, err := onnx.TensorOfSparse(w, maxSparseBytes)
		if err != nil {
			return fmt.Errorf("initializer: %w", err)
		}
		id, err := s.define(w.GetValues().GetName())
		if err != nil {
			return fmt.Errorf("initializer: %w", err)
		}
		p.consts = append(p.consts, constant{id, t})
	}
	return nil
}

func (p *program) addNode(n *onnx.Node, m *onnx.Model, s *scope) error {
	opset := raise(n)
	op, reason := findOperator(n, opset)
	if op == nil {
		return &engine.UnsupportedError{Engine: Name, Node: n.Describe(), Op: opName(n), Reason: reason}
	}
	if err := onnx.CheckAttributes(n, opset); err != nil {
		return err
	}
	st := step{node: n, op: op, in: make([]int, len(n.Input)), out: make([]int, len(n.Output))}
	for i, name := range n.Input {
		st.in[i] = -1
		if name == "" {
			continue
		}
		id, ok := s.lookup(name)
		if !ok {
			return fmt.Errorf("%s: input %d, %q, is not defined before it", n.Describe(), i, name)
		}
		st.in[i] = id
	}
	if len(n.Input) < op.minIn || (op.maxIn >= 0 && len(n.Input) > op.maxIn) {
		return fmt.Errorf("%s: it has %d inputs, expected %s", n.Describe(), len(n.Input), arity(op.minIn, op.maxIn))
	}
	for i := range op.minIn {
		if st.in[i] < 0 {
			return fmt.Errorf("%s: input %d is required and absent", n.Describe(), i)
		}
	}
	constant := func(i int) *tensor.Tensor {
		for _, c := range p.consts {
			if i < len(st.in) && c.slot == st.in[i] {
				return c.value
			}
		}
		return nil
	}
	ctx := &node{Node: n, opset: opset, constant: constant, compile: func(g *onnx.Graph) (*program, error) { return compileGraph(g, m, s, nil) }}
	k, err := build(op, ctx)
	if err != nil {
		return describe(n, err)
	}
	st.kernel = k
	// Bodies were compiled by build. What they take from here is an input of the step, so that its
	// memory outlives the step.
	for _, b := range ctx.bodies {
		for _, c := range b.captures {
			st.in = append(st.in, c.outer)
		}
	}
	for i, name := range n.Output {
		st.out[i] = -1
		if name == "" {
			continue
		}
		if st.out[i], err = s.define(name); err != nil {
			return fmt.Errorf("%s: %w", n.Describe(), err)
		}
	}
	p.steps = append(p.steps, st)
	return nil
}

// build calls an operator's builder. Attributes of the wrong kind must not end the process,
// whatever a builder does with them.
func build(op *operator, n *node) (k kernel, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("its attributes are not valid: %w", recovered(r))
		}
	}()
	return op.build(n)
}

func arity(lo, hi int) string {
	switch {
	case hi < 0:
		return fmt.Sprintf("at least %d", lo)
	case lo == hi:
		return fmt.Sprint(lo)
	}
	return fmt.Sprintf("%d to %d", lo, hi)
}

// describe names the node in an error that a build function returned.
func describe(n *onnx.Node, err error) error {
	var u *engine.UnsupportedError
	if errors.As(err, &u) {
		if u.Node == "" {
			u.Engine, u.Node, u.Op = Name, n.Describe(), opName(n)
		}
		return u
	}
	return fmt.Errorf("%s: %w", n.Describe(), err)
}

func opName(n *onnx.Node) string {
	if n.Domain != "" {
		return n.Domain + "." + n.OpType
	}
	return n.OpType
}

// sizeHint guesses how many elements a value has, from what is known before any run.
type sizeHint func(name string) int

// planRegisters gives each intermediate value a register, reusing those of values that no later
// step reads. A register grows to the largest value it ever holds, so the plan is right for every
// shape and stops allocating once the shapes repeat; hints only decide which of several free
// registers fits best.
func (p *program) planRegisters(s *scope, hint sizeHint) {
	want := make([]int, p.slots)
	if hint != nil {
		for name, id := range s.slot {
			want[id] = hint(name)
		}
	}
	p.register = make([]int, p.slots)
	root := make([]int, p.slots) // the slot whose memory a value may share
	for i := range root {
		root[i] = i
		p.register[i] = -1
	}
	last := make([]int, p.slots)
	made := make([]bool, p.slots)
	for i, s := range p.steps {
		for _, id := range s.in {
			if id >= 0 {
				last[root[id]] = i
			}
		}
		for _, id := range s.out {
			if id < 0 {
				continue
			}
			if s.op.alias && s.in[0] >= 0 && p.outIndex[id] < 0 {
				root[id] = root[s.in[0]]
				continue
			}
			made[id] = true
			last[id] = i
		}
	}
	var free, held []int // free registers, and how many elements each register is meant for
	for i, s := range p.steps {
		for _, id := range s.out {
			if id < 0 || !made[id] || p.outIndex[id] >= 0 {
				continue
			}
			best := bestFit(free, held, want[id])
			if best < 0 {
				p.register[id] = p.regs
				p.regs++
				held = append(held, want[id])
				continue
			}
			r := free[best]
			p.register[id], held[r] = r, max(held[r], want[id])
			free = slices.Delete(free, best, best+1)
		}
		// Only now may the operands' registers be reused: a kernel never writes over what it reads.
		dead := map[int]bool{}
		for _, list := range [][]int{s.in, s.out} {
			for _, id := range list {
				if id < 0 {
					continue
				}
				if r := root[id]; last[r] == i && p.register[r] >= 0 && !dead[r] {
					dead[r] = true
					free = append(free, p.register[r])
				}
			}
		}
	}
}

// bestFit returns the position in free of the smallest register that is large enough, else of the
// largest, or -1 where none is free.
func bestFit(free, held []int, want int) int {
	best := -1
	for i, r := range free {
		switch {
		case best < 0:
			best = i
		case held[free[best]] < want:
			if held[r] > held[free[best]] {
				best = i
			}
		case held[r] >= want && held[r] < held[free[best]]:
			best = i
		}
	}
	return best
}
