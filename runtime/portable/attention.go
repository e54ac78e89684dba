package portable

import (
	"fmt"
	"math"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var attentionOperators = []operator{
	{name: "Attention", versions: []int{23, 24, 25}, minIn: 3, maxIn: 7, build: buildAttention},
	{name: "RotaryEmbedding", versions: []int{23}, minIn: 3, maxIn: 4, build: buildRotary},
}

// attention holds the operator's attributes.
type attention struct {
	qHeads, kvHeads int
	scale, softcap  float64
	causal          bool
	left, right     int // sliding window, -1 for no bound
	mode            int // what output 3 shows: scores, scores after softcap, after the mask, probabilities
}

func buildAttention(n *node) (kernel, error) {
	a := attention{qHeads: n.Int("q_num_heads", 0), kvHeads: n.Int("kv_num_heads", 0), scale: float64(n.Float("scale", 0)), softcap: float64(n.Float("softcap", 0)),
		causal: n.Int("is_causal", 0) != 0, left: n.Int("left_window_size", -1), right: n.Int("right_window_size", -1), mode: n.Int("qk_matmul_output_mode", 0)}
	if a.mode < 0 || a.mode > 3 || a.left < -1 || a.right < -1 {
		return nil, fmt.Errorf("qk_matmul_output_mode %d, window %d and %d", a.mode, a.left, a.right)
	}
	return byFloat(func(c *call) error { return runAttention[float32](c, a) }, func(c *call) error { return runAttention[float64](c, a) }), nil
}

// heads is an operand as batch × heads × length × size, wherever the heads lie in memory.
type heads[T float] struct {
	v                         []T
	batch, heads, length, dim int
	sb, sh, sl                int
}

// headsOf reads a 4-D tensor (batch, heads, length, size) or a 3-D one (batch, length, heads·size).
func headsOf[T float](t *tensor.Tensor, n int) (heads[T], error) {
	s := t.Shape()
	if t.DType() != tensor.Scalar(T(0)).DType() {
		return heads[T]{}, fmt.Errorf("element types differ: %v", t)
	}
	switch {
	case len(s) == 4:
		return heads[T]{data[T](t), s[0], s[1], s[2], s[3], s[1] * s[2] * s[3], s[2] * s[3], s[3]}, nil
	case len(s) == 3 && n > 0 && s[2]%n == 0:
		d := s[2] / n
		return heads[T]{data[T](t), s[0], n, s[1], d, s[1] * s[2], d, s[2]}, nil
	}
	return heads[T]{}, fmt.Errorf("%v in %d heads", t, n)
}

// rows returns the rows of one head, from the first on, and the distance between them.
func (h *heads[T]) rows(b, head int) ([]T, int) {
	if h.length == 0 || h.dim == 0 {
		return nil, max(1, h.sl)
	}
	return h.v[b*h.sb+head*h.sh:], h.sl
}

// extended returns past followed by h along the length, as a 4-D output of the step.
func extended[T float](c *call, i int, past *tensor.Tensor, h heads[T]) (heads[T], error) {
	old := 0
	if past != nil {
		s := past.Shape()
		if len(s) != 4 || s[0] != h.batch || s[1] != h.heads || s[3] != h.dim || past.DType() != c.arg(0).DType() {
			return h, fmt.Errorf("past is %v for %d heads of %d", past, h.heads, h.dim)
		}
		old = s[2]
	}
	if past == nil && !c.wants(i) {
		return h, nil
	}
	length := old + h.length
	out := data[T](c.make(i, c.arg(0).DType(), h.batch, h.heads, length, h.dim))
	for b := range h.batch {
		for k := range h.heads {
			dst := out[(b*h.heads+k)*length*h.dim:]
			if old > 0 {
				copy(dst, data[T](past)[(b*h.heads+k)*old*h.dim:][:old*h.dim])
			}
			src, ld := h.rows(b, k)
			for r := range h.length {
				copy(dst[(old+r)*h.dim:][:h.dim], src[r*ld:])
			}
		}
	}
	return heads[T]{out, h.batch, h.heads, length, h.dim, h.heads * length * h.dim, length * h.dim, h.dim}, nil
}

// attentionMask answers which keys a query may see and what is added to its score.
type attentionMask struct {
	add         []float64 // additive part, nil for none
	strides     [4]int
	keys        int // keys beyond these are masked by the mask's own width
	valid       []int
	offset      []int
	left, right int
	causal      bool
}

func (m *attentionMask) at(b, h, i, j int) float64 {
	p := i + m.offset[b]
	if j >= m.keys || j >= m.valid[b] || m.causal && j > p || m.left >= 0 && p-j > m.left || m.right >= 0 && j-p > m.right {
		return math.Inf(-1)
	}
	if m.add == nil {
		return 0
	}
	return m.add[b*m.strides[0]+h*m.strides[1]+i*m.strides[2]+j*m.strides[3]]
}

func (a *attention) mask(t, past, valid *tensor.Tensor, batch, nHeads, queries, keys int) (*attentionMask, error) {
	m := &attentionMask{keys: keys, left: a.left, right: a.right, causal: a.causal, valid: make([]int, batch), offset: make([]int, batch)}
	for b := range batch {
		m.valid[b] = keys
		if past != nil {
			m.offset[b] = past.Shape()[2]
		}
	}
	if valid != nil {
		v, err := intsOf(nil, valid)
		if err != nil || len(v) != batch || past != nil {
			return nil, fmt.Errorf("nonpad_kv_seqlen is %v for a batch of %d", valid, batch)
		}
		copy(m.valid, v)
		for b := range v {
			m.offset[b] = v[b] - queries
		}
	}
	if t == nil {
		return m, nil
	}
	s := t.Shape()
	if len(s) > 4 || len(s) == 0 {
		return nil, fmt.Errorf("attn_mask is %v", t)
	}
	if w := s[len(s)-1]; w != 1 || keys == 1 {
		m.keys = w
	}
	full := []int{batch, nHeads, queries, min(m.keys, keys)}
	stride := 1
	for k := 1; k <= 4; k++ {
		d := extent(s, -k)
		if d != 1 && d != full[4-k] && k != 1 || k == 1 && d > keys {
			return nil, fmt.Errorf("attn_mask is %v for %d batch elements, %d heads, %d queries and %d keys", t, batch, nHeads, queries, keys)
		}
		if d != 1 {
			m.strides[4-k] = stride
		}
		stride *= d
	}
	if t.DType() == tensor.Bool {
		m.add = make([]float64, t.Len())
		for i, ok := range t.Bools() {
			if !ok {
				m.add[i] = math.Inf(-1)
			}
		}
		return m, nil
	}
	v, err := asFloats(t)
	m.add = v
	return m, err
}

func runAttention[T float](c *call, a attention) error {
	qt := c.arg(0)
	if c.arg(1).DType() != qt.DType() || c.arg(2).DType() != qt.DType() {
		return fmt.Errorf("inputs are %v, %v and %v", qt, c.arg(1), c.arg(2))
	}
	q, err := headsOf[T](qt, a.qHeads)
	if err != nil {
		return err
	}
	k, err := headsOf[T](c.arg(1), a.kvHeads)
	if err != nil {
		return err
	}
	v, err := headsOf[T](c.arg(2), a.kvHeads)
	if err != nil {
		return err
	}
	if k, err = extended(c, 1, c.arg(4), k); err != nil {
		return err
	}
	if v, err = extended(c, 2, c.arg(5), v); err != nil {
		return err
	}
	if q.batch != k.batch || k.batch != v.batch || k.heads != v.heads || k.length != v.length || q.dim != k.dim || k.heads == 0 || q.heads%k.heads != 0 {
		return fmt.Errorf("inputs %v, %v and %v with %d and %d heads", qt, c.arg(1), c.arg(2), q.heads, k.heads)
	}
	mask, err := a.mask(c.arg(3), c.arg(4), c.arg(6), q.batch, q.heads, q.length, k.length)
	if err != nil {
		return err
	}
	scale := a.scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(q.dim))
	}
	out := heads[T]{batch: q.batch, heads: q.heads, length: q.length, dim: v.dim}
	if qt.Rank() == 4 {
		out.v = data[T](c.make(0, qt.DType(), q.batch, q.heads, q.length, v.dim))
		out.sb, out.sh, out.sl = q.heads*q.length*v.dim, q.length*v.dim, v.dim
	} else {
		out.v = data[T](c.make(0, qt.DType(), q.batch, q.length, q.heads*v.dim))
		out.sb, out.sh, out.sl = q.length*q.heads*v.dim, v.dim, q.heads*v.dim
	}
	var shown []T
	if c.wants(3) {
		shown = data[T](c.make(3, qt.DType(), q.batch, q.heads, q.length, k.length))
	}
	if len(out.v) == 0 {
		return nil
	}
	size := q.length * k.length
	scores := scratch[T](c, 1, size)
	for b := range q.batch {
		for h := range q.heads {
			kv := h / (q.heads / k.heads)
			qr, lq := q.rows(b, h)
			kr, lk := k.rows(b, kv)
			gemm(c, false, true, q.length, k.length, q.dim, T(scale), qr, lq, kr, lk, 0, scores, k.length)
			show := func(mode int) {
				if shown != nil && (a.mode == mode || a.mode == 1 && mode == 0 && a.softcap == 0) {
					copy(shown[(b*q.heads+h)*size:][:size], scores[:size])
				}
			}
			show(0)
			if a.softcap > 0 {
				for i, s := range scores[:size] {
					scores[i] = T(a.softcap * math.Tanh(float64(s)/a.softcap))
				}
				show(1)
			}
			for i := range q.length {
				row := scores[i*k.length:][:k.length]
				for j := range row {
					row[j] += T(mask.at(b, h, i, j))
				}
			}
			show(2)
			for i := range q.length {
				row := scores[i*k.length:][:k.length]
				// A query that may see nothing attends to nothing.
				open := false
				for j := range row {
					open = open || !math.IsInf(mask.at(b, h, i, j), -1)
				}
				if !open {
					clear(row)
					continue
				}
				softmaxRow(row, row)
			}
			show(3)
			vr, lv := v.rows(b, kv)
			yr, ly := out.rows(b, h)
			gemm(c, false, false, q.length, v.dim, k.length, 1, scores, max(1, k.length), vr, lv, 0, yr, ly)
		}
	}
	return nil
}

func buildRotary(n *node) (kernel, error) {
	r := rotary{interleaved: n.Int("interleaved", 0) != 0, dim: n.Int("rotary_embedding_dim", 0), heads: n.Int("num_heads", 0)}
	return byFloat(func(c *call) error { return runRotary[float32](c, r) }, func(c *call) error { return runRotary[float64](c, r) }), nil
}

type rotary struct {
	interleaved bool
	dim, heads  int
}

func runRotary[T float](c *call, r rotary) error {
	x, ct, st := c.arg(0), c.arg(1), c.arg(2)
	h, err := headsOf[T](x, r.heads)
	if err != nil {
		return err
	}
	dim := r.dim
	if dim == 0 {
		dim = h.dim
	}
	half := dim / 2
	if dim > h.dim || ct.DType() != x.DType() || st.DType() != x.DType() || ct.Len() != st.Len() || extent(ct.Shape(), -1) != half {
		return fmt.Errorf("input %v, %d of %d rotated, with caches %v and %v", x, dim, h.dim, ct, st)
	}
	cos, sin := data[T](ct), data[T](st)
	rows := ct.Len() / max(1, half)
	var pos []int64
	if c.arg(3) != nil {
		if pos, err = c.indices(3, 0); err != nil {
			return err
		}
		if len(pos) != h.batch*h.length && len(pos) != h.batch {
			return fmt.Errorf("position_ids is %v for %d sequences of %d", c.arg(3), h.batch, h.length)
		}
	} else if rows != h.batch*h.length {
		return fmt.Errorf("caches of %d rows for %d sequences of %d", rows, h.batch, h.length)
	}
	y := data[T](c.make(0, x.DType(), x.Shape()...))
	copy(y, h.v)
	for b := range h.batch {
		for l := range h.length {
			row := b*h.length + l
			if pos != nil {
				i := row
				if len(pos) == h.batch && h.length != 1 {
					i = b
				}
				if row, err = index(pos[i], rows); err != nil {
					return err
				}
			}
			for k := range h.heads {
				at := b*h.sb + k*h.sh + l*h.sl
				for i := range half {
					p, q := at+i, at+i+half
					if r.interleaved {
						p, q = at+2*i, at+2*i+1
					}
					co, si, u, v := cos[row*half+i], sin[row*half+i], h.v[p], h.v[q]
					y[p], y[q] = co*u-si*v, si*u+co*v
				}
			}
		}
	}
	return nil
}
