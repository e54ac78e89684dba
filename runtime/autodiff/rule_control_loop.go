package autodiff

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// expandLoop unrolls a loop: while the condition is known, exactly as often as it runs. When it is
// not but the trip count is, that often, keeping the carried values as they were once the condition
// has failed.
func expandLoop(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	body := n.Body("body")
	carried := append([]onnx.Value(nil), values(n.Input)[min(2, len(n.Input)):]...)
	limit := -1
	if n.In(0) != "" {
		known, ok := c.KnownInts(n.In(0))
		if !ok || len(known) != 1 {
			c.Fail("the trip count must be constant")
			return nil, c.b.Err()
		}
		limit = max(0, known[0])
	}
	scans := len(body.Output) - 1 - len(carried)
	rows := make([][]onnx.Value, max(0, scans))
	cond := n.In(1)
	// alive is the condition while it is not known at build time.
	var alive onnx.Value
	for t := 0; limit < 0 || t < limit; t++ {
		if cond != "" {
			if known := c.Known(cond); known == nil {
				if limit < 0 || scans > 0 {
					c.Fail("the condition is not constant: only a loop with a constant trip count and without scan outputs can be unrolled then")
					return nil, c.b.Err()
				}
				alive = c.and(alive, cond)
			} else if !known.Bools()[0] {
				break
			}
		}
		if len(c.b.Graph().Node) > maxExpansion {
			c.Fail("the loop does not end within %d nodes", maxExpansion)
			return nil, c.b.Err()
		}
		given := cond
		if given == "" {
			given = c.b.Const(scalarOf(tensor.Bool, 1))
		}
		out := c.inline(body, append([]onnx.Value{c.b.Int(t), given}, carried...))
		if c.b.Err() != nil {
			return nil, c.b.Err()
		}
		cond = out[0]
		for i := range carried {
			if next := out[1+i]; alive != "" {
				carried[i] = c.Where(alive, next, carried[i])
			} else {
				carried[i] = next
			}
		}
		for i := range rows {
			rows[i] = append(rows[i], out[1+len(carried)+i])
		}
	}
	outs := carried
	for i, r := range rows {
		outs = append(outs, c.stack(n.Out(len(carried)+i), r, 0))
	}
	// An output that is an input passed through must be a value of its own.
	for i, v := range outs {
		if n.Out(i) != "" {
			outs[i] = c.Unary("Identity", v)
		}
	}
	return outs, c.b.Err()
}

// and combines two optional conditions.
func (c *Context) and(a, b onnx.Value) onnx.Value {
	if a == "" {
		return b
	}
	return c.Op("And", two(a, b))
}

func values(names []string) []onnx.Value {
	out := make([]onnx.Value, len(names))
	for i, n := range names {
		out[i] = onnx.Value(n)
	}
	return out
}

// stack joins the elements of a scan output along a new axis. Without any the output's own type
// says what is empty.
func (c *Context) stack(out onnx.Value, rows []onnx.Value, axis int) onnx.Value {
	if len(rows) == 0 {
		s := c.Shape(out)
		if s == nil {
			return ""
		}
		return c.Fill(c.DType(out), 0, s...)
	}
	for i, r := range rows {
		rows[i] = c.Op("Unsqueeze", two(r, c.b.Ints(axis)))
	}
	return c.Concat(axis, rows...)
}

// expandScan unrolls a scan over the extent of its scan inputs.
func expandScan(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	body := n.Body("body")
	scanned := n.Int("num_scan_inputs", 0)
	states := len(n.Input) - scanned
	if states < 0 || len(body.Output) < states {
		c.Fail("the node has %d inputs and its body %d outputs, which does not fit %d scan inputs", len(n.Input), len(body.Output), scanned)
		return nil, c.b.Err()
	}
	at := func(name string, i int) int {
		if v := n.Ints(name); i < len(v) {
			return v[i]
		}
		return 0
	}
	carried := append([]onnx.Value(nil), values(n.Input)[:states]...)
	steps := -1
	in := make([][]onnx.Value, scanned)
	for i := range in {
		v := n.In(states + i)
		s := c.Shape(v)
		if s == nil {
			return nil, c.b.Err()
		}
		axis := Axis(at("scan_input_axes", i), len(s))
		if steps >= 0 && s[axis] != steps {
			c.Fail("scan inputs of %d and %d elements", steps, s[axis])
			return nil, c.b.Err()
		}
		steps = s[axis]
		rest := join(s[:axis], s[axis+1:])
		if steps > 0 {
			for _, part := range c.Split(v, axis, filled(1, steps)...) {
				in[i] = append(in[i], c.Reshape(part, rest...))
			}
		}
	}
	rows := make([][]onnx.Value, len(body.Output)-states)
	for i := range rows {
		rows[i] = make([]onnx.Value, max(0, steps))
	}
	for t := range max(0, steps) {
		if len(c.b.Graph().Node) > maxExpansion {
			c.Fail("the scan does not end within %d nodes", maxExpansion)
			return nil, c.b.Err()
		}
		args := append([]onnx.Value(nil), carried...)
		for i := range in {
			args = append(args, in[i][directed(t, steps, at("scan_input_directions", i))])
		}
		out := c.inline(body, args)
		copy(carried, out[:states])
		for i := range rows {
			rows[i][directed(t, steps, at("scan_output_directions", i))] = out[states+i]
		}
	}
	outs := carried
	for i, r := range rows {
		axis := at("scan_output_axes", i)
		if axis < 0 && len(r) > 0 {
			axis += c.Rank(r[0]) + 1
		}
		outs = append(outs, c.stack(n.Out(states+i), r, axis))
	}
	for i, v := range outs {
		if n.Out(i) != "" {
			outs[i] = c.Unary("Identity", v)
		}
	}
	return outs, c.b.Err()
}

// directed is the element that step t touches: counted from the end when the direction is 1.
func directed(t, steps, direction int) int {
	if direction == 1 {
		return steps - 1 - t
	}
	return t
}
