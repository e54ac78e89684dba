package portable

import (
	"fmt"
	"slices"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var einsumOperators = []operator{
	{name: "Einsum", versions: []int{12, 28}, minIn: 1, maxIn: -1, build: buildEinsum},
	{name: "Det", versions: []int{11, 22}, minIn: 1, maxIn: 1, build: byFloatOp(det[float32], det[float64])},
}

func byFloatOp(f32, f64 kernel) builder { return plain(byFloat(f32, f64)) }

// einsum is a parsed equation. Letters are lower and upper case and differ; '.' stands for the
// ellipsis.
type einsum struct {
	in     []string
	out    string
	sorted bool // the output was left out: letters used once, in order
}

func parseEinsum(eq string) (einsum, error) {
	eq = strings.ReplaceAll(strings.ReplaceAll(eq, " ", ""), "...", ".")
	left, right, arrow := strings.Cut(eq, "->")
	e := einsum{in: strings.Split(left, ","), out: right, sorted: !arrow}
	for _, term := range append(slices.Clone(e.in), e.out) {
		if strings.Count(term, ".") > 1 {
			return e, fmt.Errorf("equation %q has two ellipses in one term", eq)
		}
		for _, r := range term {
			if r != '.' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return e, fmt.Errorf("equation %q has %q in it", eq, r)
			}
		}
	}
	if e.sorted {
		count := map[rune]int{}
		for _, r := range left {
			count[r]++
		}
		var once []rune
		for r, n := range count {
			if n == 1 && r != '.' && r != ',' {
				once = append(once, r)
			}
		}
		slices.Sort(once)
		e.out = string(once)
		if strings.Contains(left, ".") {
			e.out = "." + e.out
		}
	}
	return e, nil
}

func buildEinsum(n *node) (kernel, error) {
	e, err := parseEinsum(n.Str("equation", ""))
	if err != nil {
		return nil, err
	}
	if len(e.in) != len(n.Input) {
		return nil, fmt.Errorf("the equation has %d terms for %d inputs", len(e.in), len(n.Input))
	}
	return func(c *call) error {
		switch d := c.arg(0).DType(); d {
		case tensor.Float32:
			return runEinsum[float32](c, &e)
		case tensor.Float64:
			return runEinsum[float64](c, &e)
		case tensor.Int32:
			return einsumLoop[int32](c, &e)
		case tensor.Int64:
			return einsumLoop[int64](c, &e)
		default:
			return unsupported("element type %v", d)
		}
	}, nil
}

// einsumPlan numbers the indices. Ellipsis axes are numbered from 1000 by their distance from the
// right, so that they broadcast.
type einsumPlan struct {
	terms [][]int // per operand: the index of each axis
	out   []int
	size  map[int]int
}

func (e *einsum) plan(c *call) (*einsumPlan, error) {
	p := &einsumPlan{size: map[int]int{}}
	ellipsis := -1
	for i, term := range e.in {
		t := c.arg(i)
		if t == nil || t.DType() != c.arg(0).DType() {
			return nil, fmt.Errorf("input %d is %v, input 0 is %v", i, t, c.arg(0))
		}
		letters := len(strings.ReplaceAll(term, ".", ""))
		dots := t.Rank() - letters
		if dots < 0 || dots > 0 && !strings.Contains(term, ".") {
			return nil, fmt.Errorf("term %q for input %d of rank %d", term, i, t.Rank())
		}
		if strings.Contains(term, ".") {
			if ellipsis >= 0 && dots != ellipsis {
				return nil, fmt.Errorf("the ellipsis stands for %d axes of input %d and for %d of an input before it; the same number expected", dots, i, ellipsis)
			}
			ellipsis = dots
		}
		var axes []int
		for _, r := range term {
			if r != '.' {
				axes = append(axes, int(r))
				continue
			}
			for k := dots; k > 0; k-- {
				axes = append(axes, 1000+k)
			}
		}
		for k, a := range axes {
			d := t.Shape()[k]
			if old, ok := p.size[a]; ok && old != d && old != 1 && d != 1 {
				return nil, fmt.Errorf("an index has extents %d and %d", old, d)
			}
			p.size[a] = max(p.size[a], d)
			if d == 0 {
				p.size[a] = 0
			}
		}
		p.terms = append(p.terms, axes)
	}
	for _, r := range e.out {
		if r == '.' {
			for k := max(ellipsis, 0); k > 0; k-- {
				p.out = append(p.out, 1000+k)
			}
			continue
		}
		if _, ok := p.size[int(r)]; !ok || slices.Contains(p.out, int(r)) {
			return nil, fmt.Errorf("output index %q", r)
		}
		p.out = append(p.out, int(r))
	}
	return p, nil
}

func (p *einsumPlan) shape() []int {
	s := make([]int, len(p.out))
	for i, a := range p.out {
		s[i] = p.size[a]
	}
	return s
}

// runEinsum does two operands by one batched matrix product, and anything else index by index.
func runEinsum[T float](c *call, e *einsum) error {
	if c.n() != 2 {
		return einsumLoop[T](c, e)
	}
	p, err := e.plan(c)
	if err != nil {
		return err
	}
	a, b := p.terms[0], p.terms[1]
	// The indices are those of the batch (in both and in the output), of the sum (in both only) and
	// free ones. Repeats, sums over one operand's own index and broadcasting extents go the slow
	// way.
	var batch, sum, left, right []int
	for i, term := range p.terms {
		for k, x := range term {
			inOther, inOut := slices.Contains(p.terms[1-i], x), slices.Contains(p.out, x)
			if slices.Contains(term[:k], x) || c.arg(i).Shape()[k] != p.size[x] || !inOther && !inOut {
				return einsumLoop[T](c, e)
			}
			switch {
			case inOther && inOut:
				if i == 0 {
					batch = append(batch, x)
				}
			case inOther:
				if i == 0 {
					sum = append(sum, x)
				}
			case i == 0:
				left = append(left, x)
			default:
				right = append(right, x)
			}
		}
	}
	extentOf := func(list []int) int {
		n := 1
		for _, x := range list {
			n *= p.size[x]
		}
		return n
	}
	nb, m, n, k := extentOf(batch), extentOf(left), extentOf(right), extentOf(sum)
	x := scratch[T](c, 0, nb*m*k)
	y := scratch[T](c, 1, nb*k*n)
	r := scratch[T](c, 2, nb*m*n)
	out := c.make(0, c.arg(0).DType(), p.shape()...)
	reorder(x, data[T](c.arg(0)), a, slices.Concat(batch, left, sum), p.size)
	reorder(y, data[T](c.arg(1)), b, slices.Concat(batch, sum, right), p.size)
	for i := range nb {
		gemm(c, false, false, m, n, k, 1, x[i*m*k:], max(1, k), y[i*k*n:], max(1, n), 0, r[i*m*n:], max(1, n))
	}
	reorder(data[T](out), r, slices.Concat(batch, left, right), p.out, p.size)
	return nil
}

// reorder writes src, whose axes carry the indices from, with its axes in the order to.
func reorder[T float](dst, src []T, from, to []int, size map[int]int) {
	stride, n := map[int]int{}, 1
	for i := len(from) - 1; i >= 0; i-- {
		stride[from[i]] = n
		n *= size[from[i]]
	}
	var s strided
	left := n
	for _, x := range to {
		if size[x] == 0 {
			return
		}
		left /= size[x]
		s.axis(size[x], left, stride[x])
	}
	if n == 0 {
		return
	}
	if len(s.shape) == 0 {
		s.axis(1, 1, 1)
	}
	stridedRun(&s, dst, src)
}

// einsumLoop sums over all indices, one element at a time.
func einsumLoop[T number](c *call, e *einsum) error {
	p, err := e.plan(c)
	if err != nil {
		return err
	}
	out := data[T](c.make(0, c.arg(0).DType(), p.shape()...))
	order := slices.Clone(p.out)
	for _, term := range p.terms {
		for _, x := range term {
			if !slices.Contains(order, x) {
				order = append(order, x)
			}
		}
	}
	// strides[i][k] is how far operand i moves when index order[k] does; the last row is the
	// output's.
	strides := make([][]int, c.n()+1)
	src := make([][]T, c.n())
	total := 1
	for _, x := range order {
		total *= p.size[x]
	}
	for i := range strides {
		strides[i] = make([]int, len(order))
		term, shape := p.out, p.shape()
		if i < c.n() {
			term, shape, src[i] = p.terms[i], c.arg(i).Shape(), data[T](c.arg(i))
		}
		st := rowMajor(nil, shape)
		for k, x := range term {
			if shape[k] != 1 {
				strides[i][slices.Index(order, x)] += st[k]
			}
		}
	}
	clear(out)
	pos, at := make([]int, len(order)), make([]int, len(strides))
	for range total {
		v := T(1)
		for i, s := range src {
			v *= s[at[i]]
		}
		out[at[len(src)]] += v
		for k := len(order) - 1; k >= 0; k-- {
			pos[k]++
			for i := range at {
				at[i] += strides[i][k]
			}
			if pos[k] < p.size[order[k]] {
				break
			}
			for i := range at {
				at[i] -= pos[k] * strides[i][k]
			}
			pos[k] = 0
		}
	}
	return nil
}

// det is the determinant by elimination with row exchanges, of every matrix of a batch.
func det[T float](c *call) error {
	x := c.arg(0)
	r := x.Rank()
	if r < 2 || x.Shape()[r-1] != x.Shape()[r-2] {
		return fmt.Errorf("input %v is not square", x)
	}
	n := x.Shape()[r-1]
	out := data[T](c.make(0, x.DType(), x.Shape()[:r-2]...))
	src := data[T](x)
	m := scratch[float64](c, 0, n*n)
	for i := range out {
		convertSlice(m, src[i*n*n:(i+1)*n*n])
		out[i] = T(eliminate(m, n))
	}
	return nil
}

func eliminate(m []float64, n int) float64 {
	d := 1.0
	for k := range n {
		p := k
		for i := k + 1; i < n; i++ {
			if abs1(m[i*n+k]) > abs1(m[p*n+k]) {
				p = i
			}
		}
		if m[p*n+k] == 0 {
			return 0
		}
		if p != k {
			for j := range n {
				m[p*n+j], m[k*n+j] = m[k*n+j], m[p*n+j]
			}
			d = -d
		}
		d *= m[k*n+k]
		for i := k + 1; i < n; i++ {
			f := m[i*n+k] / m[k*n+k]
			for j := k; j < n; j++ {
				m[i*n+j] -= f * m[k*n+j]
			}
		}
	}
	return d
}

func abs1(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}
