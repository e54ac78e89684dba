package portable

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var matmulOperators = []operator{
	{name: "MatMul", versions: []int{1, 9, 13}, minIn: 2, maxIn: 2, build: buildMatMul},
	{name: "Gemm", versions: []int{7, 9, 11, 13}, minIn: 2, maxIn: 3, build: buildGemm},
	{domain: "com.microsoft", name: "FusedMatMul", versions: []int{1}, minIn: 2, maxIn: 2, build: buildFusedMatMul},
}

// packed is the transpose of a constant right factor, made when the model is compiled: rows of dot
// products are the faster form for any number of rows.
type packed struct{ from, turned *tensor.Tensor }

// maxPacked bounds the constants that are kept twice.
const maxPacked = 1 << 26

// pack returns the transposed constant at input 1, or nil.
func pack(n *node) *packed {
	t := n.constant(1)
	if t == nil || t.Rank() != 2 || t.DType() != tensor.Float32 || t.Len() == 0 || 4*t.Len() > maxPacked {
		return nil
	}
	p := &packed{t, tensor.New(tensor.Float32, t.Shape()[1], t.Shape()[0])}
	transposeInto(p.turned.Float32s(), t.Float32s(), t.Shape()[0], t.Shape()[1], t.Shape()[1])
	return p
}

func buildMatMul(n *node) (kernel, error) {
	p := pack(n)
	if p == nil {
		return func(c *call) error { return matmulWith(c, false, false, 1) }, nil
	}
	return func(c *call) error {
		if c.arg(1) == p.from && c.arg(0).DType() == tensor.Float32 && c.arg(0).Rank() > 1 {
			c.args[1] = p.turned
			return matmulWith(c, false, true, 1)
		}
		return matmulWith(c, false, false, 1)
	}, nil
}

func matmulWith(c *call, ta, tb bool, alpha float64) error {
	a, b := c.arg(0), c.arg(1)
	if a.DType() != b.DType() {
		return fmt.Errorf("element types %v and %v differ", a.DType(), b.DType())
	}
	switch a.DType() {
	case tensor.Float32:
		return matmulFloat(c, ta, tb, float32(alpha))
	case tensor.Float64:
		return matmulFloat(c, ta, tb, alpha)
	}
	if ta || tb || alpha != 1 {
		return unsupported("element type %v", a.DType())
	}
	switch a.DType() {
	case tensor.Int8:
		return matmulInt[int8](c)
	case tensor.Int16:
		return matmulInt[int16](c)
	case tensor.Int32:
		return matmulInt[int32](c)
	case tensor.Int64:
		return matmulInt[int64](c)
	case tensor.Uint8:
		return matmulInt[uint8](c)
	case tensor.Uint16:
		return matmulInt[uint16](c)
	case tensor.Uint32:
		return matmulInt[uint32](c)
	case tensor.Uint64:
		return matmulInt[uint64](c)
	}
	return unsupported("element type %v", a.DType())
}

func buildFusedMatMul(n *node) (kernel, error) {
	if n.Int("transBatchA", 0) != 0 || n.Int("transBatchB", 0) != 0 {
		return nil, unsupported("transposed batch axes")
	}
	ta, tb, alpha := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0, float64(n.Float("alpha", 1))
	return func(c *call) error { return matmulWith(c, ta, tb, alpha) }, nil
}

// matmulPlan is NumPy's rule for the shapes of a product: vectors become matrices, leading axes
// broadcast.
type matmulPlan struct {
	m, n, k int
	out     []int
	batch   broadcastPlan
	flat    bool // one product does all: B has no batch
}

func (p *matmulPlan) shapes(a, b []int, ta, tb bool) error {
	if len(a) == 0 || len(b) == 0 {
		return fmt.Errorf("product of a scalar: shapes %v and %v", append([]int{}, a...), append([]int{}, b...))
	}
	ra, rb := len(a), len(b)
	// A vector on the left is a row, on the right a column; the added axis is not in the result.
	p.m, p.k = 1, a[ra-1]
	var batchA, batchB []int
	if ra > 1 {
		p.m, batchA = a[ra-2], a[:ra-2]
		if ta {
			p.m, p.k = p.k, p.m
		}
	}
	kb := b[rb-1]
	p.n = 1
	if rb > 1 {
		kb, p.n, batchB = b[rb-2], b[rb-1], b[:rb-2]
		if tb {
			kb, p.n = p.n, kb
		}
	}
	if kb != p.k {
		return fmt.Errorf("shapes %v and %v do not multiply: %d and %d differ", append([]int{}, a...), append([]int{}, b...), p.k, kb)
	}
	batch, err := p.batch.shapes(batchA, batchB)
	if err != nil {
		return fmt.Errorf("shapes %v and %v: %w", append([]int{}, a...), append([]int{}, b...), err)
	}
	p.flat = product(batchB) == 1 && !ta && ra > 1
	p.out = append(p.out[:0], batch...)
	if ra > 1 {
		p.out = append(p.out, p.m)
	}
	if rb > 1 {
		p.out = append(p.out, p.n)
	}
	return nil
}

// each calls f with the offsets, in matrices, of every product of the batch.
func (p *matmulPlan) each(f func(out, a, b int)) {
	b := &p.batch
	total := product(b.out)
	if total == 0 {
		return
	}
	b.idx = resize(b.idx, len(b.n))
	clear(b.idx)
	oa, ob := 0, 0
	for o := range total {
		f(o, oa, ob)
		for k := range b.n {
			b.idx[k]++
			oa, ob = oa+b.sa[k], ob+b.sb[k]
			if b.idx[k] < b.n[k] {
				break
			}
			oa, ob, b.idx[k] = oa-b.n[k]*b.sa[k], ob-b.n[k]*b.sb[k], 0
		}
	}
}

func matmulFloat[T float](c *call, ta, tb bool, alpha T) error {
	a, b := c.arg(0), c.arg(1)
	p := keep[matmulPlan](c)
	if err := p.shapes(a.Shape(), b.Shape(), ta, tb); err != nil {
		return err
	}
	x, y := data[T](a), data[T](b)
	out := data[T](c.make(0, a.DType(), p.out...))
	m, n, k := p.m, p.n, p.k
	lda, ldb := k, n
	if ta {
		lda = m
	}
	if tb {
		ldb = k
	}
	if p.flat {
		gemm(c, false, tb, product(p.batch.out)*m, n, k, alpha, x, lda, y, ldb, 0, out, n)
		return nil
	}
	p.each(func(o, i, j int) {
		gemm(c, ta, tb, m, n, k, alpha, x[i*m*k:], lda, y[j*k*n:], ldb, 0, out[o*m*n:], n)
	})
	return nil
}

func matmulInt[T integer](c *call) error {
	a, b := c.arg(0), c.arg(1)
	p := keep[matmulPlan](c)
	if err := p.shapes(a.Shape(), b.Shape(), false, false); err != nil {
		return err
	}
	x, y := data[T](a), data[T](b)
	out := data[T](c.make(0, a.DType(), p.out...))
	clear(out)
	p.each(func(o, i, j int) { mulAdd(out[o*p.m*p.n:], x[i*p.m*p.k:], y[j*p.k*p.n:], p.m, p.n, p.k) })
	return nil
}

// mulAdd adds the product of an m×k and a k×n matrix of integers.
func mulAdd[T integer](out, a, b []T, m, n, k int) {
	for i := range m {
		row := out[i*n : i*n+n]
		for l, v := range a[i*k : i*k+k] {
			for j, w := range b[l*n : l*n+n] {
				row[j] += v * w
			}
		}
	}
}

func buildGemm(n *node) (kernel, error) {
	alpha, beta := n.Float("alpha", 1), n.Float("beta", 1)
	ta, tb := n.Int("transA", 0) != 0, n.Int("transB", 0) != 0
	var p *packed
	if !tb {
		p = pack(n)
	}
	f32 := func(c *call) error {
		if p != nil && c.arg(1) == p.from {
			c.args[1] = p.turned
			return gemmKernel(c, ta, true, alpha, beta)
		}
		return gemmKernel(c, ta, tb, alpha, beta)
	}
	f64 := func(c *call) error { return gemmKernel(c, ta, tb, float64(alpha), float64(beta)) }
	return byFloat(f32, f64), nil
}

func gemmKernel[T float](c *call, ta, tb bool, alpha, beta T) error {
	a, b, bias := c.arg(0), c.arg(1), c.arg(2)
	if a.Rank() != 2 || b.Rank() != 2 || a.DType() != b.DType() {
		return fmt.Errorf("inputs %v and %v, expected two matrices of one type", a, b)
	}
	m, k := a.Shape()[0], a.Shape()[1]
	if ta {
		m, k = k, m
	}
	kb, n := b.Shape()[0], b.Shape()[1]
	if tb {
		kb, n = n, kb
	}
	if k != kb {
		return fmt.Errorf("inputs %v and %v do not multiply: %d and %d differ", a, b, k, kb)
	}
	out := data[T](c.make(0, a.DType(), m, n))
	var rest T
	if bias != nil && beta != 0 {
		if bias.DType() != a.DType() {
			return fmt.Errorf("inputs are %v and %v", a, bias)
		}
		rest = beta
		if err := spread(out, data[T](bias), bias.Shape(), m, n); err != nil {
			return err
		}
	}
	gemm(c, ta, tb, m, n, k, alpha, data[T](a), a.Shape()[1], data[T](b), b.Shape()[1], rest, out, n)
	return nil
}

// spread writes bias, broadcast to m×n, into out.
func spread[T any](out, bias []T, shape []int, m, n int) error {
	rows, cols := extent(shape, -2), extent(shape, -1)
	if len(shape) > 2 || rows != 1 && rows != m || cols != 1 && cols != n {
		return fmt.Errorf("shape %v does not broadcast to [%d %d]", append([]int{}, shape...), m, n)
	}
	for i := range m {
		r := 0
		if rows > 1 {
			r = i * cols
		}
		line := out[i*n : i*n+n]
		if cols == n {
			copy(line, bias[r:r+n])
			continue
		}
		for j := range line {
			line[j] = bias[r]
		}
	}
	return nil
}
