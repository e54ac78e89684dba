package shape

import (
	"errors"
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// Error says that a node's types do not fit or that its result cannot be known.
type Error struct {
	// Node describes the node; for nodes inside sub-graphs and functions the enclosing nodes come
	// first, separated by " > ".
	Node string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("infer shapes: %s: %v", e.Node, e.Err) }

func (e *Error) Unwrap() error { return e.Err }

// nodeError names the node, in front of the nodes inside it that an error names already.
func nodeError(n *onnx.Node, err error) error {
	var inner *Error
	if errors.As(err, &inner) {
		return &Error{Node: n.Describe() + " > " + inner.Node, Err: inner.Err}
	}
	return &Error{Node: n.Describe(), Err: err}
}

// Apply infers the outputs of one node from the facts of its inputs, recursing into sub-graphs and
// function bodies, and records them. Types that the graph declares for the outputs are merged in.
// The error is an [*Error].
func (e *Env) Apply(n *onnx.Node) error {
	if err := e.apply(n); err != nil {
		return nodeError(n, err)
	}
	return nil
}

func (e *Env) apply(n *onnx.Node) error {
	if e.depth > 0 {
		if e.nested--; e.nested < 0 {
			return errors.New("sub-graphs and functions are nested too deeply to be inferred")
		}
	}
	if len(n.GetOutput()) == 0 {
		return errors.New("it has no outputs")
	}
	n, err := e.resolve(n)
	if err != nil {
		return err
	}
	c := &e.call
	if err := c.start(e, n); err != nil {
		return err
	}
	if err := c.infer(); err != nil {
		return err
	}
	for i, o := range n.Output {
		if o == "" {
			continue
		}
		f := c.out[i]
		if err := checkDims(f.Type.Dims); err != nil {
			return fmt.Errorf("output %d %q: %w", i, o, err)
		}
		if d := e.declared[o]; d != nil {
			if err := e.mergeDeclared(&f, d); err != nil && !e.forgive(n, i, d, err) {
				return fmt.Errorf("output %d %q: %w", i, o, err)
			}
		}
		if e.free != nil && e.parent == nil {
			f.Type.Dims = e.free.named(o, f.Type.Dims)
		}
		e.Set(onnx.Value(o), f)
	}
	return nil
}

// Infer returns the facts of every value of the main graph.
func Infer(m *onnx.Model, bind map[string]int) (*Env, error) {
	e, err := NewEnv(m, bind)
	if err != nil {
		return nil, err
	}
	if err := e.applyAll(m.Graph.Node); err != nil {
		return nil, err
	}
	for _, o := range m.Graph.Output {
		f, _ := e.find(o.GetName())
		if f == nil {
			return nil, fmt.Errorf("infer shapes: graph output %q is not computed by any node", o.GetName())
		}
		if e.contradicted[o.GetName()] {
			continue
		}
		// Outputs of nodes are merged already; this one may be an input or an initializer.
		merged := *f
		if err := e.mergeDeclared(&merged, o); err != nil {
			return nil, fmt.Errorf("infer shapes: graph output %q: %w", o.GetName(), err)
		}
	}
	return e, nil
}

func (e *Env) applyAll(nodes []*onnx.Node) error {
	for _, n := range nodes {
		if err := e.Apply(n); err != nil {
			return err
		}
	}
	return nil
}

// child returns an Env for a sub-graph, with its initializers known and its inputs as declared.
func (e *Env) child(g *onnx.Graph) (*Env, error) {
	if e.depth >= maxDepth {
		return nil, fmt.Errorf("more than %d sub-graphs and functions inside each other", maxDepth)
	}
	c := newEnv(e.state, e, g)
	if err := c.declare(); err != nil {
		return nil, err
	}
	if e.bodies == nil {
		e.bodies = map[*onnx.Graph]*Env{}
	}
	e.bodies[g] = c
	return c, nil
}
