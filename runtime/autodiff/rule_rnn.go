package autodiff

import "github.com/onnxrl/onnxrl/runtime/onnx"

var recurrentRules = []Rule{
	{Op: "RNN", Versions: []int{7, 14, 22}, Expand: expandRNN},
	{Op: "GRU", Versions: []int{7, 14, 22}, Expand: expandGRU},
	{Op: "LSTM", Versions: []int{7, 14, 22}, Expand: expandLSTM},
}

// sum adds two optional values.
func (c *Context) sum(a, b onnx.Value) onnx.Value {
	switch {
	case a == "":
		return b
	case b == "":
		return a
	}
	return c.Add(a, b)
}

// expandRNN: H = f(X·Wᵀ + H·Rᵀ + b).
func expandRNN(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	return expandRecurrence(c, n, []string{"Tanh"}, []int{5}, func(d *direction, state []onnx.Value) (onnx.Value, []onnx.Value) {
		xw := d.inputs(d.w, c.sum(d.wb, d.rb))
		return d.unroll(func(d *direction, t int, state []onnx.Value) []onnx.Value {
			return []onnx.Value{d.apply(0, d.recur(state[0], d.r, xw[t]))}
		}, state)
	})
}

// expandGRU: z, r = f(X·Wᵀ + H·Rᵀ + b); h = g(X·Whᵀ + (r∘H)·Rhᵀ + b), or with linear_before_reset h
// = g(X·Whᵀ + Wbh + r∘(H·Rhᵀ + Rbh)); H = (1 − z)∘h + z∘H.
func expandGRU(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	linear := n.Int("linear_before_reset", 0) != 0
	return expandRecurrence(c, n, []string{"Sigmoid", "Tanh"}, []int{5}, func(d *direction, state []onnx.Value) (onnx.Value, []onnx.Value) {
		if linear && d.usual("Sigmoid", "Tanh") {
			return d.fusedGRU(state)
		}
		h := d.hidden
		r := c.Split(d.r, 0, 2*h, h)
		bias, inner := c.sum(d.wb, d.rb), onnx.Value("")
		if linear && d.rb != "" {
			// The hidden gate's recurrent bias is added before the reset gate applies.
			rb := c.Split(d.rb, 1, 2*h, h)
			inner = rb[1]
			bias = c.Add(d.wb, c.Concat(1, rb[0], c.Fill(c.DType(rb[1]), 0, 1, h)))
		}
		w := c.Split(d.w, 0, 2*h, h)
		b := two("", "")
		if bias != "" {
			b = c.Split(bias, 1, 2*h, h)
		}
		gates, hidden := d.inputs(w[0], b[0]), d.inputs(w[1], b[1])
		return d.unroll(func(d *direction, t int, state []onnx.Value) []onnx.Value {
			old := state[0]
			zr := c.Split(d.apply(0, d.recur(old, r[0], gates[t])), 1, h, h)
			var pre onnx.Value
			switch {
			case linear && (old != "" || inner != ""):
				p := inner
				if old != "" {
					p = d.recur(old, r[1], inner)
				}
				pre = c.Add(hidden[t], c.Mul(zr[1], p))
			case !linear && old != "":
				pre = d.recur(c.Mul(zr[1], old), r[1], hidden[t])
			default:
				pre = hidden[t]
			}
			hh := d.apply(1, pre)
			if old == "" {
				return []onnx.Value{c.Sub(hh, c.Mul(zr[0], hh))}
			}
			return []onnx.Value{c.Add(hh, c.Mul(zr[0], c.Sub(old, hh)))}
		}, state)
	})
}

// expandLSTM: i, o, f = f(X·Wᵀ + H·Rᵀ + b + P∘C), c = g(X·Wcᵀ + H·Rcᵀ + b), C = f∘C + i∘c, H =
// o∘h(C); the output gate's peephole sees the new C.
func expandLSTM(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	coupled := n.Int("input_forget", 0) != 0
	return expandRecurrence(c, n, []string{"Sigmoid", "Tanh", "Tanh"}, []int{5, 6}, func(d *direction, state []onnx.Value) (onnx.Value, []onnx.Value) {
		if n.In(7) == "" && !coupled && d.usual("Sigmoid", "Tanh", "Tanh") {
			return d.fusedLSTM(state)
		}
		h := d.hidden
		xw := d.inputs(d.w, c.sum(d.wb, d.rb))
		var peep []onnx.Value
		if p := d.part(n.In(7)); p != "" {
			peep = c.Split(c.Reshape(p, 1, 3*h), 1, h, h, h)
		}
		return d.unroll(func(d *direction, t int, state []onnx.Value) []onnx.Value {
			cellOld := state[1]
			gates := c.Split(d.recur(state[0], d.r, xw[t]), 1, 3*h, h)
			var in, out, forget onnx.Value
			if peep == nil {
				s := c.Split(d.apply(0, gates[0]), 1, h, h, h)
				in, out, forget = s[0], s[1], s[2]
			} else {
				s := c.Split(gates[0], 1, h, h, h)
				in, out, forget = s[0], s[1], s[2]
				if cellOld != "" {
					in, forget = c.Add(in, c.Mul(peep[0], cellOld)), c.Add(forget, c.Mul(peep[2], cellOld))
				}
				in, forget = d.apply(0, in), d.apply(0, forget)
			}
			if coupled {
				forget = c.Sub(c.Scalar(in, 1), in)
			}
			cellNew := c.Mul(in, d.apply(1, gates[1]))
			if cellOld != "" {
				cellNew = c.Add(c.Mul(forget, cellOld), cellNew)
			}
			if peep != nil {
				out = d.apply(0, c.Add(out, c.Mul(peep[1], cellNew)))
			}
			return []onnx.Value{c.Mul(out, d.apply(2, cellNew)), cellNew}
		}, state)
	})
}
