package autodiff

import (
	"math"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var attentionRules = []Rule{
	{Op: "Attention", Versions: []int{23, 24, 25}, Expand: expandAttention},
	{Op: "RotaryEmbedding", Versions: []int{23}, Expand: expandRotary},
	{Op: "LinearAttention", Versions: []int{27}, Expand: expandLinearAttention},
	{Op: "CausalConvWithState", Versions: []int{27}, Expand: expandCausalConv},
	{Op: "SwiGLU", Versions: []int{28}, Expand: expandSwiGLU},
}

// attention is what the parts of one Attention node share.
type attention struct {
	c *Context
	n *onnx.Node
	// batch, heads, groups are the numbers of samples, query heads and key heads; rows and cols the
	// lengths of the query and of all keys; past those keys that came first.
	batch, heads, groups, rows, cols, past int
	dtype                                  tensor.DType
}

// expandAttention follows the function body of the specification: softmax(softcap(scale·Q·Kᵀ) +
// bias)·V. The query heads that share a key head are one longer query, so that grouped attention
// needs no copies of keys and values.
func expandAttention(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	q, k, v := n.In(0), n.In(1), n.In(2)
	flat := c.Rank(q) == 3
	q = c.headsFirst(q, n.Int("q_num_heads", 0))
	k = c.headsFirst(k, n.Int("kv_num_heads", 0))
	v = c.headsFirst(v, n.Int("kv_num_heads", 0))
	a := &attention{c: c, n: n, dtype: c.DType(q)}
	if past := n.In(4); past != "" {
		s := c.Shape(past)
		if s == nil {
			return nil, c.b.Err()
		}
		a.past = s[2]
		k, v = c.Concat(2, past, k), c.Concat(2, n.In(5), v)
	}
	qs, ks, vs := c.Shape(q), c.Shape(k), c.Shape(v)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	a.batch, a.heads, a.rows, a.groups, a.cols = qs[0], qs[1], qs[2], ks[1], ks[2]
	size, width := qs[3], vs[3]
	share := a.heads / max(1, a.groups)
	scale := float64(n.Float("scale", float32(1/math.Sqrt(float64(size)))))
	long := c.Reshape(c.Scale(q, scale), a.batch, a.groups, share*a.rows, size)
	scores := c.Reshape(c.MatMul(long, c.Transpose(k, 0, 1, 3, 2)), a.batch, a.heads, a.rows, a.cols)
	out := make([]onnx.Value, 4)
	out[1], out[2], out[3] = k, v, scores
	mode := n.Int("qk_matmul_output_mode", 0)
	if limit := float64(n.Float("softcap", 0)); limit != 0 {
		scores = c.Scale(c.Unary("Tanh", c.Scale(scores, 1/limit)), limit)
		if mode == 1 {
			out[3] = scores
		}
	}
	bias, allowed := a.bias(), a.allowed()
	if bias != "" {
		scores = c.Add(scores, bias)
	}
	if allowed != "" {
		scores = c.Where(allowed, scores, c.Scalar(scores, math.Inf(-1)))
	}
	if mode == 2 {
		out[3] = scores
	}
	p := a.softmax(scores, bias, allowed)
	if mode == 3 {
		out[3] = p
	}
	y := c.MatMul(c.Reshape(p, a.batch, a.groups, share*a.rows, a.cols), v)
	y = c.Reshape(y, a.batch, a.heads, a.rows, width)
	if flat {
		y = c.Reshape(c.Transpose(y, 0, 2, 1, 3), a.batch, a.rows, a.heads*width)
	}
	out[0] = y
	for i := 1; i < 4; i++ {
		if n.Out(i) != "" {
			out[i] = c.Unary("Identity", out[i])
		}
	}
	return out, nil
}

// headsFirst brings [batch, length, heads·size] to [batch, heads, length, size]; a value of rank 4
// is that already.
func (c *Context) headsFirst(v onnx.Value, heads int) onnx.Value {
	s := c.Shape(v)
	if len(s) != 3 {
		return v
	}
	if heads < 1 || s[2]%heads != 0 {
		c.Fail("a width of %d does not divide into %d heads", s[2], heads)
		return v
	}
	return c.Transpose(c.Reshape(v, s[0], s[1], heads, s[2]/heads), 0, 2, 1, 3)
}

// bias returns the additive mask, absent when there is none. A mask shorter than the keys is filled
// up with −∞.
func (a *attention) bias() onnx.Value {
	c, mask := a.c, a.n.In(3)
	if mask == "" || c.DType(mask) == tensor.Bool {
		return ""
	}
	s := c.Shape(mask)
	if s == nil {
		return ""
	}
	last := len(s) - 1
	if s[last] >= a.cols {
		return mask
	}
	return c.Concat(last, mask, c.Fill(a.dtype, math.Inf(-1), join(s[:last], []int{a.cols - s[last]})...))
}

// allowed returns the condition under which a query sees a key, absent when it always does: the
// boolean mask, the causal order, the window and the filled part of the cache together. Without a
// cache of unknown filling the last three are constants.
func (a *attention) allowed() onnx.Value {
	c := a.c
	var out onnx.Value
	and := func(v onnx.Value) {
		if out == "" {
			out = v
		} else {
			out = c.Op("And", two(out, v))
		}
	}
	if mask := a.n.In(3); mask != "" && c.DType(mask) == tensor.Bool {
		s := c.Shape(mask)
		if s == nil {
			return ""
		}
		if last := len(s) - 1; s[last] < a.cols {
			mask = c.Concat(last, mask, c.Fill(tensor.Bool, 0, join(s[:last], []int{a.cols - s[last]})...))
		}
		and(mask)
	}
	causal := a.n.Int("is_causal", 0) != 0
	left, right := a.n.Int("left_window_size", -1), a.n.Int("right_window_size", -1)
	filled := a.n.In(6)
	if !causal && left < 0 && right < 0 && filled == "" {
		return out
	}
	inside := func(distance int) bool {
		return !(causal && distance > 0) && !(left >= 0 && distance < -left) && !(right >= 0 && distance > right)
	}
	if filled == "" {
		if !c.small(a.rows, a.cols) {
			return out
		}
		t, all := tensor.New(tensor.Bool, a.rows, a.cols), true
		for i := range t.Bools() {
			t.Bools()[i] = inside(i%a.cols - i/a.cols - a.past)
			all = all && t.Bools()[i]
		}
		if !all {
			and(c.b.Const(t))
		}
		return out
	}
	// The number of keys that precede the query is known at run time alone: [batch, 1, 1, 1].
	count := c.Reshape(c.Cast(filled, tensor.Int64), a.batch, 1, 1, 1)
	if !c.small(a.rows + a.cols) {
		return out
	}
	keys, rows := tensor.New(tensor.Int64, a.cols), tensor.New(tensor.Int64, a.rows, 1)
	for i := range keys.Int64s() {
		keys.Int64s()[i] = int64(i)
	}
	for i := range rows.Int64s() {
		rows.Int64s()[i] = int64(i - a.rows)
	}
	key := c.b.Const(keys)
	and(c.Op("Less", two(key, count)))
	here := c.Add(c.b.Const(rows), count)
	if causal {
		and(c.Op("LessOrEqual", two(key, here)))
	}
	if right >= 0 {
		and(c.Op("LessOrEqual", two(key, c.Add(here, c.b.Int(right)))))
	}
	if left >= 0 {
		and(c.Op("GreaterOrEqual", two(key, c.Sub(here, c.b.Int(left)))))
	}
	return out
}

// softmax turns scores into probabilities; a query that sees no key gets zeros. Only then must −∞
// be kept from the softmax, which would make NaN of a row of it.
func (a *attention) softmax(scores, bias, allowed onnx.Value) onnx.Value {
	c := a.c
	precision := tensor.DType(a.n.Int("softmax_precision", int(a.dtype)))
	var live onnx.Value
	if a.mayBlank(bias, allowed) {
		top := c.Op("ReduceMax", two(scores, c.b.Ints(-1)), onnx.AttrInt("keepdims", 1))
		blank := c.Op("Equal", two(top, c.Scalar(scores, math.Inf(-1))))
		scores = c.Where(blank, c.Scalar(scores, 0), scores)
		live = c.Unary("Not", blank)
	}
	p := c.Cast(c.Unary("Softmax", c.Cast(scores, precision), onnx.AttrInt("axis", -1)), a.dtype)
	if live != "" {
		p = c.Mask(p, live)
	}
	return p
}

// mayBlank reports whether some query may see no key at all: not when the only condition is a
// constant that leaves every row something.
func (a *attention) mayBlank(bias, allowed onnx.Value) bool {
	if bias != "" {
		return true
	}
	if allowed == "" {
		return false
	}
	t := a.c.Known(allowed)
	if t == nil || t.Len() == 0 || t.Shape()[t.Rank()-1] != a.cols {
		return true
	}
	for row := 0; row < t.Len(); row += a.cols {
		any := false
		for _, b := range t.Bools()[row : row+a.cols] {
			any = any || b
		}
		if !any {
			return true
		}
	}
	return false
}

// expandRotary rotates pairs of elements by position-dependent angles: (x₁·cos − x₂·sin, x₁·sin +
// x₂·cos).
func expandRotary(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x := n.In(0)
	xs := c.Shape(x)
	if xs == nil {
		return nil, c.b.Err()
	}
	heads := n.Int("num_heads", 0)
	if len(xs) == 3 && (heads < 1 || xs[2]%heads != 0) {
		c.Fail("a width of %d does not divide into %d heads", xs[2], heads)
		return nil, c.b.Err()
	}
	// Rows are [batch, length, heads, size] for packed heads and [batch, heads, length, size]
	// otherwise; the angles broadcast over the heads.
	rows, headAxis := x, 1
	if len(xs) == 3 {
		rows, headAxis = c.Reshape(x, xs[0], xs[1], heads, xs[2]/heads), 2
	}
	size := c.Shape(rows)[3]
	turned := n.Int("rotary_embedding_dim", 0)
	if turned == 0 {
		turned = size
	}
	angles := func(v onnx.Value) onnx.Value {
		if ids := n.In(3); ids != "" {
			v = c.Op("Gather", two(v, ids), onnx.AttrInt("axis", 0))
		}
		return c.Op("Unsqueeze", two(v, c.b.Ints(headAxis)))
	}
	cos, sin := angles(n.In(1)), angles(n.In(2))
	parts := []onnx.Value{rows}
	if turned < size {
		parts = c.Split(rows, 3, turned, size-turned)
	}
	s := c.Shape(parts[0])
	if s == nil {
		return nil, c.b.Err()
	}
	var x1, x2 onnx.Value
	interleaved := n.Int("interleaved", 0) != 0
	if interleaved {
		pairs := c.Split(c.Reshape(parts[0], join(s[:3], []int{turned / 2, 2})...), 4, 1, 1)
		half := join(s[:3], []int{turned / 2})
		x1, x2 = c.Reshape(pairs[0], half...), c.Reshape(pairs[1], half...)
	} else {
		pairs := c.Split(parts[0], 3, turned/2, turned/2)
		x1, x2 = pairs[0], pairs[1]
	}
	re := c.Sub(c.Mul(x1, cos), c.Mul(x2, sin))
	im := c.Add(c.Mul(x1, sin), c.Mul(x2, cos))
	if interleaved {
		single := join(s[:3], []int{turned / 2, 1})
		parts[0] = c.Reshape(c.Concat(4, c.Reshape(re, single...), c.Reshape(im, single...)), s...)
	} else {
		parts[0] = c.Concat(3, re, im)
	}
	return []onnx.Value{c.Reshape(c.Concat(3, parts...), xs...)}, nil
}

// expandLinearAttention unrolls the recurrence of the specification over the tokens. The state is
// [batch, heads, d_k, d_v]; the query heads that share a state are rows of one product.
func expandLinearAttention(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	hq, h := n.Int("q_num_heads", 0), n.Int("kv_num_heads", 0)
	qs, vs := c.Shape(n.In(0)), c.Shape(n.In(2))
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	if hq < 1 || h < 1 || hq%h != 0 || qs[2]%hq != 0 || vs[2]%h != 0 {
		c.Fail("widths %d and %d do not divide into %d query and %d key heads", qs[2], vs[2], hq, h)
		return nil, c.b.Err()
	}
	batch, steps, dk, dv, share := qs[0], qs[1], qs[2]/hq, vs[2]/h, hq/h
	scale := float64(n.Float("scale", 0))
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(dk))
	}
	rule := n.Str("update_rule", "gated_delta")
	// tokens cuts a value into one per step, shaped as the step needs it.
	tokens := func(v onnx.Value, shape ...int) []onnx.Value {
		parts := c.Split(v, 1, filled(1, steps)...)
		for i, p := range parts {
			parts[i] = c.Reshape(p, shape...)
		}
		return parts
	}
	q := tokens(c.Scale(n.In(0), scale), batch, h, share, dk)
	k := tokens(n.In(1), batch, h, dk, 1)
	v := tokens(n.In(2), batch, h, 1, dv)
	var decay, beta []onnx.Value
	if rule == "gated" || rule == "gated_delta" {
		d := c.Unary("Exp", n.In(4))
		decay = tokens(d, batch, h, c.Shape(n.In(4))[2]/h, 1)
	}
	if rule == "delta" || rule == "gated_delta" {
		beta = tokens(n.In(5), batch, c.Shape(n.In(5))[2], 1, 1)
	}
	state := n.In(3)
	var outs []onnx.Value
	for t := range steps {
		if state != "" && decay != nil {
			state = c.Mul(state, decay[t])
		}
		value := v[t]
		if beta != nil {
			if state != "" {
				value = c.Sub(value, c.MatMul(c.Reshape(k[t], batch, h, 1, dk), state))
			}
			value = c.Mul(value, beta[t])
		}
		state = c.sum(state, c.Mul(k[t], value))
		outs = append(outs, c.Reshape(c.MatMul(q[t], state), batch, 1, hq*dv))
	}
	return two(c.Concat(1, outs...), state), nil
}

// expandCausalConv is a depthwise convolution over the past state, or zeros, followed by the input.
func expandCausalConv(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x, w, past := n.In(0), n.In(1), n.In(3)
	xs, ws := c.Shape(x), c.Shape(w)
	if c.b.Err() != nil {
		return nil, c.b.Err()
	}
	state := ws[2] - 1
	if past == "" {
		past = c.Fill(c.DType(x), 0, xs[0], xs[1], state)
	}
	padded := c.Concat(2, past, x)
	y := c.Op("Conv", []onnx.Value{padded, w, n.In(2)}, onnx.AttrInt("group", xs[1]))
	if act := n.Str("activation", "none"); act == "silu" || act == "swish" {
		y = c.Mul(y, c.Unary("Sigmoid", y))
	}
	out := two(y, "")
	if n.Out(1) != "" {
		out[1] = c.Slice(padded, []int{xs[2]}, []int{xs[2] + state}, []int{2}, nil)
	}
	return out, nil
}

// expandSwiGLU: y = a·σ(αa)·b.
func expandSwiGLU(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	a := n.In(0)
	gate := c.Mul(a, c.Unary("Sigmoid", c.Scale(a, float64(n.Float("alpha", 1)))))
	return []onnx.Value{c.Mul(gate, n.In(1))}, nil
}
