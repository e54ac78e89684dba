package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

var controlRules = []Rule{
	{Op: "If", Versions: []int{1, 11, 13, 16, 19, 21, 23, 24, 25}, Expand: expandIf, VJP: vjpIf},
	{Op: "Loop", Versions: []int{1, 11, 13, 16, 19, 21, 23, 24, 25}, Expand: expandLoop},
	{Op: "Scan", Versions: []int{9, 11, 16, 19, 21, 23, 24, 25}, Expand: expandScan},
}

// expandIf inlines the branch that a constant condition takes.
func expandIf(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	cond := c.Known(n.In(0))
	if cond == nil {
		return nil, nil
	}
	branch := "else_branch"
	if cond.Bools()[0] {
		branch = "then_branch"
	}
	outs := c.inline(n.Body(branch), nil)
	for i, v := range outs {
		// Outputs may be outer values or twice the same.
		outs[i] = c.Unary("Identity", v)
	}
	return outs, c.b.Err()
}

// vjpIf is an If on the same condition, whose branches compute the gradients of the outer values
// that either branch uses. What they need of the forward pass they compute again, unless a branch
// holds further conditions: computed again at every level, these would make the gradient grow with
// the square of their depth. Then the forward node keeps the values on a tape.
func vjpIf(c *Context, n *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
	captures := c.Captures()
	d := make([]onnx.Value, 1+len(captures))
	var wrt []onnx.Value
	var at []int
	for i, v := range captures {
		if c.Wants(1 + i) {
			wrt, at = append(wrt, v), append(at, 1+i)
		}
	}
	if wrt == nil {
		return d, nil
	}
	// Rules inside the branches change the context's view of the current node.
	saved := *c
	sides := make([]*branch, 2)
	for i, name := range []string{"then_branch", "else_branch"} {
		var err error
		if sides[i], err = c.pass.branchGradient(n, name, g, wrt); err != nil {
			return nil, err
		}
	}
	c.node, c.wants, c.captures = saved.node, saved.wants, saved.captures
	places, length := c.pass.packGradients(sides)
	if err := c.pass.keepValues(n, sides); err != nil {
		return nil, err
	}
	var attrs []*onnx.Attribute
	for _, b := range sides {
		attrs = append(attrs, onnx.AttrGraph(b.name, b.graph(c)))
	}
	outs := len(sides[0].gradients)
	if outs == 0 {
		return d, c.b.Err() // Nothing reaches any of the values.
	}
	made := c.OpN("If", outs, []onnx.Value{n.In(0)}, attrs...)
	if length > 0 {
		c.pass.leaveIn(made[outs-1], length, places)
	}
	single := 0
	for i, w := range wrt {
		switch {
		case !c.pass.packs(w):
			d[at[i]] = c.assume(made[single], w)
			single++
		case len(places[w]) > 0:
			d[at[i]] = c.pass.virtual(w, places[w])
		}
	}
	return d, nil
}
