package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Layers that carry a state of fixed size through time.
var linearAttentionOperators = []operator{
	{name: "LinearAttention", versions: []int{27}, minIn: 3, maxIn: 6, build: buildLinearAttention},
	{name: "CausalConvWithState", versions: []int{27}, minIn: 2, maxIn: 4, build: buildCausalConv},
}

func buildLinearAttention(n *node) (kernel, error) {
	l := linearAttention{qHeads: n.Int("q_num_heads", 0), kvHeads: n.Int("kv_num_heads", 0), scale: float64(n.Float("scale", 0))}
	switch rule := n.Str("update_rule", "gated_delta"); rule {
	case "linear":
	case "gated":
		l.gated = true
	case "delta":
		l.delta = true
	case "gated_delta":
		l.gated, l.delta = true, true
	default:
		return nil, fmt.Errorf("update_rule %q is not known", rule)
	}
	if l.qHeads < 1 || l.kvHeads < 1 || l.qHeads%l.kvHeads != 0 {
		return nil, fmt.Errorf("%d query heads for %d key heads", l.qHeads, l.kvHeads)
	}
	return byFloat(func(c *call) error { return runLinearAttention[float32](c, l) }, func(c *call) error { return runLinearAttention[float64](c, l) }), nil
}

type linearAttention struct {
	qHeads, kvHeads int
	scale           float64
	gated, delta    bool
}

// runLinearAttention carries a matrix per head through time. The matrix is decayed by the gate,
// corrected by what it already returns for the key (the delta rule), then increased by the outer
// product of key and value, and read by the query.
func runLinearAttention[T float](c *call, l linearAttention) error {
	q, err := headsOf[T](c.arg(0), l.qHeads)
	if err != nil {
		return err
	}
	k, err := headsOf[T](c.arg(1), l.kvHeads)
	if err != nil {
		return err
	}
	v, err := headsOf[T](c.arg(2), l.kvHeads)
	if err != nil {
		return err
	}
	past, decay, beta := c.arg(3), c.arg(4), c.arg(5)
	if k.batch != q.batch || v.batch != q.batch || k.length != q.length || v.length != q.length || q.dim != k.dim || c.arg(0).Rank() != 3 ||
		l.gated != (decay != nil) || l.delta != (beta != nil) {
		return fmt.Errorf("inputs %v, %v, %v, decay %v, beta %v", c.arg(0), c.arg(1), c.arg(2), decay, beta)
	}
	steps := q.batch * q.length
	var g, bt []float64
	if decay != nil {
		if g, err = asFloats(decay); err != nil || len(g) != steps*l.kvHeads && len(g) != steps*l.kvHeads*k.dim {
			return fmt.Errorf("decay is %v for %d key heads of %d", decay, l.kvHeads, k.dim)
		}
	}
	if beta != nil {
		if bt, err = asFloats(beta); err != nil || len(bt) != steps && len(bt) != steps*l.kvHeads {
			return fmt.Errorf("beta is %v for %d key heads", beta, l.kvHeads)
		}
	}
	scale := l.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(k.dim))
	}
	state := make([]float64, q.batch*l.kvHeads*k.dim*v.dim)
	stateType := c.arg(0).DType()
	if past != nil {
		s, err := asFloats(past)
		if err != nil || len(s) != len(state) {
			return fmt.Errorf("past_state is %v, expected %d elements", past, len(state))
		}
		copy(state, s)
		stateType = past.DType()
	}
	y := data[T](c.make(0, c.arg(0).DType(), q.batch, q.length, l.qHeads*v.dim))
	group, size := l.qHeads/l.kvHeads, k.dim*v.dim
	val := make([]float64, v.dim)
	for b := range q.batch {
		for h := range l.kvHeads {
			s := state[(b*l.kvHeads+h)*size:][:size]
			kr, lk := k.rows(b, h)
			vr, lv := v.rows(b, h)
			for t := range q.length {
				row := b*q.length + t
				if l.gated {
					per := len(g) / steps / l.kvHeads
					for d := range k.dim {
						e := math.Exp(g[(row*l.kvHeads+h)*per+d%per])
						for m := range v.dim {
							s[d*v.dim+m] *= e
						}
					}
				}
				for m := range v.dim {
					val[m] = float64(vr[t*lv+m])
					if l.delta {
						got := 0.0
						for d := range k.dim {
							got += s[d*v.dim+m] * float64(kr[t*lk+d])
						}
						w := bt[row*(len(bt)/steps)+h%(len(bt)/steps)]
						val[m] = w * (val[m] - got)
					}
				}
				for d := range k.dim {
					for m := range v.dim {
						s[d*v.dim+m] += float64(kr[t*lk+d]) * val[m]
					}
				}
				for r := range group {
					qr, lq := q.rows(b, h*group+r)
					dst := y[(row*l.qHeads+h*group+r)*v.dim:][:v.dim]
					for m := range dst {
						sum := 0.0
						for d := range k.dim {
							sum += float64(qr[t*lq+d]) * s[d*v.dim+m]
						}
						dst[m] = T(scale * sum)
					}
				}
			}
		}
	}
	if !c.wants(1) {
		return nil
	}
	return convertInto(c.make(1, stateType, q.batch, l.kvHeads, k.dim, v.dim), tensor.Of(state, q.batch, l.kvHeads, k.dim, v.dim))
}

func buildCausalConv(n *node) (kernel, error) {
	silu := false
	switch a := n.Str("activation", "none"); a {
	case "none":
	case "silu", "swish":
		silu = true
	default:
		return nil, fmt.Errorf("activation %q is not known", a)
	}
	return byFloat(func(c *call) error { return causalConv[float32](c, silu) }, func(c *call) error { return causalConv[float64](c, silu) }), nil
}

// causalConv is a convolution per channel over the past: what came before the input is the state.
func causalConv[T float](c *call, silu bool) error {
	x, w, bias, past := c.arg(0), c.arg(1), c.arg(2), c.arg(3)
	if x.Rank() != 3 || w.Rank() != 3 || w.Shape()[0] != x.Shape()[1] || w.Shape()[1] != 1 || w.Shape()[2] < 1 || w.DType() != x.DType() ||
		bias != nil && (bias.Len() != x.Shape()[1] || bias.DType() != x.DType()) {
		return fmt.Errorf("input %v with weights %v and bias %v", x, w, bias)
	}
	batch, channels, length, taps := x.Shape()[0], x.Shape()[1], x.Shape()[2], w.Shape()[2]
	keep := taps - 1
	if past != nil && (past.Len() != batch*channels*keep || past.DType() != x.DType()) {
		return fmt.Errorf("past_state is %v, expected %d elements", past, batch*channels*keep)
	}
	src, wd := data[T](x), data[T](w)
	y := data[T](c.make(0, x.DType(), x.Shape()...))
	var state []T
	if c.wants(1) {
		state = data[T](c.make(1, x.DType(), batch, channels, keep))
	}
	line := scratch[T](c, 0, keep+length)
	for i := range batch * channels {
		clear(line[:keep])
		if past != nil {
			copy(line, data[T](past)[i*keep:][:keep])
		}
		copy(line[keep:], src[i*length:][:length])
		for t := range length {
			sum := 0.0
			if bias != nil {
				sum = float64(data[T](bias)[i%channels])
			}
			for k := range taps {
				sum += float64(line[t+k]) * float64(wd[i%channels*taps+k])
			}
			if silu {
				sum *= sigmoid(sum)
			}
			y[i*length+t] = T(sum)
		}
		if state != nil {
			copy(state[i*keep:][:keep], line[length:])
		}
	}
	return nil
}
