package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// heads is one of Q, K and V seen as [batch, heads, length, size].
type heads struct{ batch, heads, length, size onnx.Dim }

func (c *call) headsOf(i int, numAttr string) (h heads, packed, ok bool, err error) {
	t := c.typ(i)
	u := onnx.Symbol("")
	h = heads{u, u, u, u}
	if !t.Ranked {
		return h, false, false, nil
	}
	switch len(t.Dims) {
	case 4:
		return heads{t.Dims[0], t.Dims[1], t.Dims[2], t.Dims[3]}, false, true, nil
	case 3:
		n := c.int(numAttr, 0)
		if n < 1 {
			return h, true, false, fmt.Errorf("input %d is %v, which needs attribute %q", i, t, numAttr)
		}
		if d := t.Dims[2]; d.IsKnown() && d.Value%n != 0 {
			return h, true, false, fmt.Errorf("input %d is %v, whose last axis does not divide into %d heads", i, t, n)
		}
		return heads{t.Dims[0], onnx.Known(n), t.Dims[1], c.env.quotient(ofDim(t.Dims[2]), num(int64(n))).dim()}, true, true, nil
	}
	return h, false, false, fmt.Errorf("input %d is %v, want rank 3 or 4", i, t)
}

// attention is the operator of the standard domain: inputs Q, K, V, mask, past key, past value,
// lengths; outputs Y, present key, present value, scores.
func attention(c *call) error {
	q, packed, ok, err := c.headsOf(0, "q_num_heads")
	if err != nil {
		return err
	}
	k, _, ok1, err := c.headsOf(1, "kv_num_heads")
	if err != nil {
		return err
	}
	v, _, ok2, err := c.headsOf(2, "kv_num_heads")
	if err != nil {
		return err
	}
	if !ok || !ok1 || !ok2 {
		for i, d := range []int{0, 1, 2, 0} {
			c.setUnranked(i, c.dtype(d))
		}
		return nil
	}
	for _, p := range []struct {
		a, b onnx.Dim
		what string
	}{{q.batch, k.batch, "batch of Q and K"}, {q.batch, v.batch, "batch of Q and V"}, {q.size, k.size, "head size of Q and K"},
		{k.heads, v.heads, "heads of K and V"}, {k.length, v.length, "length of K and V"}} {
		if _, err := agree(p.a, p.b, p.what); err != nil {
			return err
		}
	}
	if q.heads.IsKnown() && k.heads.IsKnown() && (k.heads.Value == 0 || q.heads.Value%k.heads.Value != 0) {
		return fmt.Errorf("%d heads of Q do not divide into %d heads of K", q.heads.Value, k.heads.Value)
	}
	if t := c.typ(3); c.has(3) && t.Ranked && (len(t.Dims) < 1 || len(t.Dims) > 4) {
		return fmt.Errorf("the mask is %v, want rank 1 to 4", t)
	}
	s := c.env.state
	total := k.length
	for _, p := range []struct {
		i    int
		like heads
	}{{4, k}, {5, v}} {
		if err := c.rankIs(p.i, 4); err != nil {
			return err
		}
		if t := c.typ(p.i); c.has(p.i) && t.Ranked {
			want := onnx.TensorType{DType: t.DType, Ranked: true, Dims: []onnx.Dim{p.like.batch, p.like.heads, t.Dims[2], p.like.size}}
			if _, err := merge(t, want); err != nil {
				return fmt.Errorf("input %d %q is %v, want %v", p.i, c.node.In(p.i), t, want)
			}
		}
	}
	if c.has(4) {
		past := val{}
		if d, ok := c.dims(4); ok {
			past = ofDim(d[2])
		}
		total = s.add(ofDim(k.length), past).dim()
	}
	if packed {
		c.setDims(0, c.dtype(0), q.batch, q.length, s.mul(ofDim(q.heads), ofDim(v.size)).dim())
	} else {
		c.setDims(0, c.dtype(0), q.batch, q.heads, q.length, v.size)
	}
	c.setDims(1, c.dtype(1), k.batch, k.heads, total, k.size)
	c.setDims(2, c.dtype(2), v.batch, v.heads, total, v.size)
	c.setDims(3, c.dtype(0), q.batch, q.heads, q.length, total)
	return nil
}

// linearAttention has inputs packed as [batch, time, heads·size] and a state [batch, heads, key
// size, value size].
func linearAttention(c *call) error {
	for _, i := range []int{0, 1, 2, 4, 5} { // all but the state
		if !c.has(i) {
			continue
		}
		if err := c.rankIs(i, 3); err != nil {
			return err
		}
	}
	hq, hkv := c.int("q_num_heads", 0), c.int("kv_num_heads", 0)
	if hq < 1 || hkv < 1 || hq%hkv != 0 {
		return fmt.Errorf("q_num_heads is %d and kv_num_heads %d", hq, hkv)
	}
	s := c.env.state
	batch, time, dk, dv := onnx.Symbol(""), onnx.Symbol(""), val{}, val{}
	var err error
	for i, n := range []int{hq, hkv, hkv} {
		d, ok := c.dims(i)
		if !ok {
			continue
		}
		if batch, err = agree(batch, d[0], "batch"); err != nil {
			return err
		}
		if time, err = agree(time, d[1], "time"); err != nil {
			return err
		}
		if d[2].IsKnown() && d[2].Value%n != 0 {
			return fmt.Errorf("input %d is %v, whose last axis does not divide into %d heads", i, c.typ(i), n)
		}
		per := s.quotient(ofDim(d[2]), num(int64(n)))
		if i == 2 {
			dv = per
		} else if dk.unknown() {
			dk = per
		} else if dk.known && per.known && dk != per {
			return fmt.Errorf("query %v and key %v have head sizes %d and %d", c.typ(0), c.typ(1), dk.n, per.n)
		}
	}
	c.setDims(0, c.dtype(0), batch, time, s.mul(dv, num(int64(hq))).dim())
	d := c.dtype(0)
	if c.has(3) {
		d = c.dtype(3)
	}
	c.setDims(1, d, batch, onnx.Known(hkv), dk.dim(), dv.dim())
	return c.mergeState(3, 1)
}

// mergeState says that output o has the type of the optional input i.
func (c *call) mergeState(i, o int) error {
	if !c.has(i) || o >= len(c.out) {
		return nil
	}
	t, err := merge(c.typ(i), c.out[o].Type)
	if err != nil {
		return fmt.Errorf("the state given is %v, want %v", c.typ(i), c.out[o].Type)
	}
	c.out[o].Type = t
	return nil
}

// rotaryEmbedding keeps the shape of [batch, heads, length, size] or [batch, length, heads·size].
func rotaryEmbedding(c *call) error {
	if t := c.typ(0); t.Ranked && len(t.Dims) != 4 && len(t.Dims) != 3 {
		return fmt.Errorf("input %v: want rank 3 or 4", t)
	}
	return same(c)
}
