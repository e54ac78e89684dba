package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

// The usual LSTM and GRU have backward passes of their own. What does not depend on the recursion
// is computed for all steps at once, before and after it. A step is left with one matrix product
// and a handful of element-wise operators, and the gradients of the weights are one product each
// instead of one per step.

// tape is what one direction's forward pass leaves for its backward pass: values by step, in the
// order in which the steps ran.
type tape struct {
	*direction
	// operands are those of the fused gradient: input, w, r, wb, rb and the initial states, absent
	// ones left out.
	operands []onnx.Value
	// before holds the hidden state that each step started from; the first is absent when it is
	// zero.
	before []onnx.Value
}

// newTape lists the operands.
func newTape(d *direction, state []onnx.Value) *tape {
	k := &tape{direction: d}
	for _, v := range append([]onnx.Value{d.x, d.w, d.r, d.wb, d.rb}, state...) {
		if v != "" {
			k.operands = append(k.operands, v)
		}
	}
	return k
}

// finish joins the hidden states of all steps, in order of time, with the other last states to one
// value, gives it the backward pass, and cuts the outputs from it. backward receives the gradient
// of each step's hidden state in the order in which the steps ran, and of the other last states; it
// returns the gradients by operand.
func (k *tape) finish(hidden []onnx.Value, others []onnx.Value, backward func(c *Context, g, last []onnx.Value) map[onnx.Value]onnx.Value) (y onnx.Value, last []onnx.Value) {
	c, b := k.c, k.batch
	rows := make([]onnx.Value, k.steps)
	for i, h := range hidden {
		rows[k.time(i)] = h
	}
	rows = append(rows, others...)
	all := c.Concat(0, rows...)
	if len(rows) == 1 {
		all = c.Unary("Identity", all)
	}
	c.Fuse(all, k.operands, func(c *Context, _ *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
		parts := c.Split(g[0], 0, filled(b, len(rows))...)
		steps := make([]onnx.Value, k.steps)
		for i := range steps {
			steps[i] = parts[k.time(i)]
		}
		grads := backward(c, steps, parts[k.steps:])
		d := make([]onnx.Value, len(k.operands))
		for i, v := range k.operands {
			d[i] = grads[v]
		}
		return d, nil
	})
	cut := func(i, n int) onnx.Value { return c.Slice(all, []int{i * b}, []int{(i + n) * b}, []int{0}, nil) }
	if k.n.Out(0) != "" {
		y = cut(0, k.steps)
	}
	last = []onnx.Value{cut(k.time(k.steps-1), 1)}
	for i := range others {
		last = append(last, cut(k.steps+i, 1))
	}
	return y, last
}

// joined concatenates values of the steps; zeros stand for an absent one.
func (k *tape) joined(c *Context, vs []onnx.Value) onnx.Value {
	vs = append([]onnx.Value(nil), vs...)
	for i, v := range vs {
		if v == "" {
			vs[i] = c.Fill(c.DType(k.x), 0, k.batch, k.hidden)
		}
	}
	return c.Concat(0, vs...)
}

// cutSteps is the reverse of joined.
func (k *tape) cutSteps(c *Context, v onnx.Value) []onnx.Value {
	return c.Split(v, 0, filled(k.batch, k.steps)...)
}

// timed brings values of the steps from the order in which they ran into that of time.
func (k *tape) timed(vs []onnx.Value) []onnx.Value {
	out := make([]onnx.Value, len(vs))
	for i, v := range vs {
		out[k.time(i)] = v
	}
	return out
}

// weights adds the gradients of the input, the weights and the biases, given those of the
// pre-activations through the input (dx) and through the state (dh), both [T·B, gates·H] in order
// of time. The input's absent bias has no gradient.
func (k *tape) weights(c *Context, d map[onnx.Value]onnx.Value, dx, dh onnx.Value) {
	want := map[onnx.Value]bool{}
	for i, v := range k.operands {
		want[v] = c.Wants(i)
	}
	if want[k.x] {
		d[k.x] = c.Gemm(dx, k.w, false, false)
	}
	if want[k.w] {
		d[k.w] = c.Gemm(dx, k.x, true, false)
	}
	if want[k.r] {
		d[k.r] = c.Gemm(dh, k.joined(c, k.timed(k.before)), true, false)
	}
	if k.wb != "" && want[k.wb] {
		d[k.wb] = c.Sum(dx, []int{0}, true)
	}
	if k.rb != "" && want[k.rb] {
		d[k.rb] = d[k.wb]
		if dx != dh || d[k.wb] == "" {
			d[k.rb] = c.Sum(dh, []int{0}, true)
		}
	}
}

// slope emits v·(1 − v), the derivative of the logistic function in terms of its value.
func (c *Context) slope(v onnx.Value) onnx.Value { return c.Sub(v, c.Square(v)) }

// fusedLSTM: with z the pre-activations of i, o, f, c̃ and dH the gradient of a step's H, the
// backward step is
//
//	dC = dH·o·(1 − tanh²C) + dC′·f′,  dz = (dC, dH, dC, dC) ∘ (c̃·i(1−i), tanhC·o(1−o), C₋·f(1−f), i·(1−c̃²)),  dH₋ = g₋ + dz·R
//
// in which all factors but dC and dH are computed for all steps at once.
func (d *direction) fusedLSTM(state []onnx.Value) (y onnx.Value, last []onnx.Value) {
	c, h := d.c, d.hidden
	k := newTape(d, state)
	xw := d.inputs(d.w, c.sum(d.wb, d.rb))
	var gates, fresh, cells, bounded, hidden, forget, input, output []onnx.Value
	hid, cell := state[0], state[1]
	for i := range d.steps {
		k.before = append(k.before, hid)
		cells = append(cells, cell)
		z := c.Split(d.recur(hid, d.r, xw[d.time(i)]), 1, 3*h, h)
		iof := c.Unary("Sigmoid", z[0])
		part := c.Split(iof, 1, h, h, h)
		new := c.Unary("Tanh", z[1])
		next := c.Mul(part[0], new)
		if cell != "" {
			next = c.Add(c.Mul(part[2], cell), next)
		}
		tanh := c.Unary("Tanh", next)
		hid, cell = c.Mul(part[1], tanh), next
		gates, fresh, bounded, hidden = append(gates, iof), append(fresh, new), append(bounded, tanh), append(hidden, hid)
		input, output, forget = append(input, part[0]), append(output, part[1]), append(forget, part[2])
	}
	return k.finish(hidden, []onnx.Value{cell}, func(c *Context, g, lastG []onnx.Value) map[onnx.Value]onnx.Value {
		slopes := c.Split(c.slope(k.joined(c, gates)), 1, h, h, h)
		new, tanh := k.joined(c, fresh), k.joined(c, bounded)
		through := k.cutSteps(c, c.Mul(k.joined(c, output), c.oneMinusSquare(tanh)))
		factors := k.cutSteps(c, c.Concat(1, c.Mul(new, slopes[0]), c.Mul(tanh, slopes[1]), c.Mul(k.joined(c, cells), slopes[2]),
			c.Mul(k.joined(c, input), c.oneMinusSquare(new))))
		dz := make([]onnx.Value, d.steps)
		dc := lastG[0]
		for i := d.steps - 1; i >= 0; i-- {
			dh := g[i]
			if i < d.steps-1 {
				dh = c.Op("Gemm", []onnx.Value{dz[i+1], d.r, dh})
				dc = c.Mul(dc, forget[i+1])
			}
			dc = c.Add(c.Mul(dh, through[i]), dc)
			dz[i] = c.Mul(c.Concat(1, dc, dh, dc, dc), factors[i])
		}
		grads := map[onnx.Value]onnx.Value{}
		all := c.Concat(0, k.timed(dz)...)
		k.weights(c, grads, all, all)
		if state[0] != "" {
			grads[state[0]] = c.Gemm(dz[0], d.r, false, false)
		}
		if state[1] != "" {
			grads[state[1]] = c.Mul(dc, forget[0])
		}
		return grads
	})
}

// fusedGRU is the form that applies the reset gate after the linear map: with q = H₋·Rhᵀ + b and n
// = tanh(x + r∘q), H = n + z∘(H₋ − n), the backward step is
//
//	dn = dH·(1 − z)(1 − n²),  dq = (dH, dn, dn) ∘ ((H₋ − n)·z(1−z), q·r(1−r), r),  dH₋ = g₋ + dH·z + dq·R
func (d *direction) fusedGRU(state []onnx.Value) (y onnx.Value, last []onnx.Value) {
	c, h := d.c, d.hidden
	k := newTape(d, state)
	bias, inner := d.wb, onnx.Value("")
	if d.rb != "" {
		rb := c.Split(d.rb, 1, 2*h, h)
		inner = rb[1]
		bias = c.Add(d.wb, c.Concat(1, rb[0], c.Fill(c.DType(rb[1]), 0, 1, h)))
	}
	r := c.Split(d.r, 0, 2*h, h)
	var gates, linear, fresh, update, reset, hidden []onnx.Value
	hid := state[0]
	for _, xw := range d.order(d.inputs(d.w, bias)) {
		k.before = append(k.before, hid)
		x := c.Split(xw, 1, 2*h, h)
		zr := c.Unary("Sigmoid", d.recur(hid, r[0], x[0]))
		part := c.Split(zr, 1, h, h)
		q := inner
		if hid != "" {
			q = d.recur(hid, r[1], inner)
		}
		pre := x[1]
		if q != "" {
			q = c.Expand(q, d.batch, h)
			pre = c.Add(pre, c.Mul(part[1], q))
		}
		new := c.Unary("Tanh", pre)
		if hid == "" {
			hid = c.Sub(new, c.Mul(part[0], new))
		} else {
			hid = c.Add(new, c.Mul(part[0], c.Sub(hid, new)))
		}
		gates, linear, fresh, hidden = append(gates, zr), append(linear, q), append(fresh, new), append(hidden, hid)
		update, reset = append(update, part[0]), append(reset, part[1])
	}
	return k.finish(hidden, nil, func(c *Context, g, _ []onnx.Value) map[onnx.Value]onnx.Value {
		slopes := c.Split(c.slope(k.joined(c, gates)), 1, h, h)
		new, z := k.joined(c, fresh), k.joined(c, update)
		through := k.cutSteps(c, c.Mul(c.Sub(c.Scalar(z, 1), z), c.oneMinusSquare(new)))
		factors := k.cutSteps(c, c.Concat(1, c.Mul(c.Sub(k.joined(c, k.before), new), slopes[0]), c.Mul(k.joined(c, linear), slopes[1]), k.joined(c, reset)))
		dq, dn := make([]onnx.Value, d.steps), make([]onnx.Value, d.steps)
		var dh onnx.Value
		for i := d.steps - 1; i >= 0; i-- {
			if i == d.steps-1 {
				dh = g[i]
			} else {
				dh = c.Op("Gemm", []onnx.Value{dq[i+1], d.r, c.Add(g[i], c.Mul(dh, update[i+1]))})
			}
			dn[i] = c.Mul(dh, through[i])
			dq[i] = c.Mul(c.Concat(1, dh, dn[i], dn[i]), factors[i])
		}
		grads := map[onnx.Value]onnx.Value{}
		viaState := c.Concat(0, k.timed(dq)...)
		viaInput := c.Concat(1, c.Split(viaState, 1, 2*h, h)[0], c.Concat(0, k.timed(dn)...))
		k.weights(c, grads, viaInput, viaState)
		if state[0] != "" {
			grads[state[0]] = c.Op("Gemm", []onnx.Value{dq[0], d.r, c.Mul(dh, update[0])})
		}
		return grads
	})
}

// order brings values by time into the order in which the steps run.
func (d *direction) order(vs []onnx.Value) []onnx.Value {
	out := make([]onnx.Value, len(vs))
	for i := range vs {
		out[i] = vs[d.time(i)]
	}
	return out
}
