package portable

import (
	"fmt"
	"math"
	"strings"

	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Recurrent layers, as the operators' sections of the ONNX specification define them: gates in the
// order iofc (LSTM) and zrh (GRU).
var recurrentOperators = []operator{
	{name: "RNN", versions: []int{7, 14, 22}, minIn: 3, maxIn: 6, build: buildRecurrent(1, []string{"Tanh"})},
	{name: "GRU", versions: []int{7, 14, 22}, minIn: 3, maxIn: 6, build: buildRecurrent(3, []string{"Sigmoid", "Tanh"})},
	{name: "LSTM", versions: []int{7, 14, 22}, minIn: 3, maxIn: 8, build: buildRecurrent(4, []string{"Sigmoid", "Tanh", "Tanh"})},
}

// recurrent holds a layer's attributes. Functions are per direction, len(defaults) each.
type recurrent struct {
	gates, hidden int
	reverse       []bool // per direction
	f             [][]func(float64) float64
	clip          float64
	batchFirst    bool
	linearReset   bool // GRU's linear_before_reset
	coupled       bool // LSTM's input_forget
}

func buildRecurrent(gates int, defaults []string) builder {
	return func(n *node) (kernel, error) {
		r := recurrent{gates: gates, hidden: n.Int("hidden_size", 0), clip: float64(n.Float("clip", 0)), batchFirst: n.Int("layout", 0) != 0,
			linearReset: n.Int("linear_before_reset", 0) != 0, coupled: n.Int("input_forget", 0) != 0}
		switch d := n.Str("direction", "forward"); d {
		case "forward":
			r.reverse = []bool{false}
		case "reverse":
			r.reverse = []bool{true}
		case "bidirectional":
			r.reverse = []bool{false, true}
		default:
			return nil, fmt.Errorf("direction %q is not known", d)
		}
		names := n.Strs("activations")
		if len(names) == 0 {
			for range r.reverse {
				names = append(names, defaults...)
			}
		}
		if len(names) != len(defaults)*len(r.reverse) {
			return nil, fmt.Errorf("%d activations, expected %d", len(names), len(defaults)*len(r.reverse))
		}
		alpha, beta := n.Floats("activation_alpha"), n.Floats("activation_beta")
		for i, name := range names {
			f, err := activation(name, &alpha, &beta)
			if err != nil {
				return nil, err
			}
			if i%len(defaults) == 0 {
				r.f = append(r.f, nil)
			}
			d := len(r.f) - 1
			r.f[d] = append(r.f[d], f)
		}
		return byFloat(func(c *call) error { return runRecurrent[float32](c, &r) }, func(c *call) error { return runRecurrent[float64](c, &r) }), nil
	}
}

// activation returns a gate's function; those with parameters take the next ones of the lists.
func activation(name string, alpha, beta *[]float32) (func(float64) float64, error) {
	next := func(l *[]float32, def float64) float64 {
		if len(*l) == 0 {
			return def
		}
		v := float64((*l)[0])
		*l = (*l)[1:]
		return v
	}
	switch strings.ToLower(name) {
	case "sigmoid":
		return sigmoid, nil
	case "tanh":
		return math.Tanh, nil
	case "relu":
		return func(x float64) float64 { return math.Max(0, x) }, nil
	case "softsign":
		return func(x float64) float64 { return x / (1 + math.Abs(x)) }, nil
	case "softplus":
		return softplus, nil
	case "affine":
		a, b := next(alpha, 1), next(beta, 0)
		return func(x float64) float64 { return a*x + b }, nil
	case "leakyrelu":
		a := next(alpha, 0.01)
		return func(x float64) float64 { return math.Max(x, 0) + a*math.Min(x, 0) }, nil
	case "thresholdedrelu":
		a := next(alpha, 1)
		return func(x float64) float64 {
			if x >= a {
				return x
			}
			return 0
		}, nil
	case "scaledtanh":
		a, b := next(alpha, 1), next(beta, 1)
		return func(x float64) float64 { return a * math.Tanh(b*x) }, nil
	case "hardsigmoid":
		a, b := next(alpha, 0.2), next(beta, 0.5)
		return func(x float64) float64 { return math.Max(0, math.Min(1, a*x+b)) }, nil
	case "elu":
		a := next(alpha, 1)
		return func(x float64) float64 { return elu(x, a) }, nil
	}
	return nil, fmt.Errorf("activation %q is not known", name)
}

// cellStep is one direction of a layer during a run. All matrices are batch-major; h and cell are
// the state, updated in place.
type cellStep[T float] struct {
	r            *recurrent
	f            []func(float64) float64
	batch        int
	xw           []T // this time step's input times weights, batch × gates·hidden
	hw           []T // the state times recurrent weights, the same shape
	bias, rbias  []T
	peep         []T
	h, cell, new []T
}

func (s *cellStep[T]) bound(v float64) float64 {
	if s.r.clip > 0 {
		return math.Max(-s.r.clip, math.Min(s.r.clip, v))
	}
	return v
}

// gate sums one gate's parts for one element.
func (s *cellStep[T]) gate(g, b, j int) float64 {
	w := s.r.gates * s.r.hidden
	k := g*s.r.hidden + j
	return float64(s.xw[b*w+k]) + float64(s.hw[b*w+k]) + float64(s.bias[k]) + float64(s.rbias[k])
}

func (s *cellStep[T]) rnn(b int) {
	for j := range s.r.hidden {
		s.new[b*s.r.hidden+j] = T(s.f[0](s.bound(s.gate(0, b, j))))
	}
}

func (s *cellStep[T]) lstm(b int) {
	n := s.r.hidden
	for j := range n {
		at := b*n + j
		old := float64(s.cell[at])
		p := func(k int) float64 {
			if s.peep == nil {
				return 0
			}
			return float64(s.peep[k*n+j])
		}
		i := s.f[0](s.bound(s.gate(0, b, j) + p(0)*old))
		f := 1 - i
		if !s.r.coupled {
			f = s.f[0](s.bound(s.gate(2, b, j) + p(2)*old))
		}
		cell := f*old + i*s.f[1](s.bound(s.gate(3, b, j)))
		o := s.f[0](s.bound(s.gate(1, b, j) + p(1)*cell))
		s.cell[at] = T(cell)
		s.new[at] = T(o * s.f[2](cell))
	}
}

// gru needs the product of the reset state with the last recurrent weights first, unless
// linear_before_reset is set.
func (s *cellStep[T]) gruGates(b int, z, rh []T) {
	n := s.r.hidden
	for j := range n {
		at := b*n + j
		z[at] = T(s.f[0](s.bound(s.gate(0, b, j))))
		r := s.f[0](s.bound(s.gate(1, b, j)))
		if s.r.linearReset {
			rh[at] = T(r)
		} else {
			rh[at] = T(r * float64(s.h[at]))
		}
	}
}

func (s *cellStep[T]) gruState(b int, z, rh, rhw []T) {
	n := s.r.hidden
	w := 3 * n
	for j := range n {
		at, k := b*n+j, 2*n+j
		v := float64(s.xw[b*w+k]) + float64(s.bias[k])
		if s.r.linearReset {
			v += float64(rh[at]) * (float64(s.hw[b*w+k]) + float64(s.rbias[k]))
		} else {
			v += float64(rhw[at]) + float64(s.rbias[k])
		}
		g := s.f[1](s.bound(v))
		s.new[at] = T((1-float64(z[at]))*g + float64(z[at])*float64(s.h[at]))
	}
}

func runRecurrent[T float](c *call, r *recurrent) error {
	x, weight, rec := c.arg(0), c.arg(1), c.arg(2)
	dirs := len(r.reverse)
	if x.Rank() != 3 || weight.Rank() != 3 || rec.Rank() != 3 || weight.DType() != x.DType() || rec.DType() != x.DType() {
		return fmt.Errorf("input %v with weights %v and %v", x, weight, rec)
	}
	steps, batch, width := x.Shape()[0], x.Shape()[1], x.Shape()[2]
	if r.batchFirst {
		steps, batch = batch, steps
	}
	hidden := rec.Shape()[2]
	wide := r.gates * hidden
	if r.hidden != 0 && r.hidden != hidden || weight.Len() != dirs*wide*width || rec.Len() != dirs*wide*hidden || weight.Shape()[0] != dirs || weight.Shape()[2] != width {
		return fmt.Errorf("input %v with weights %v and %v for %d directions of %d units", x, weight, rec, dirs, r.hidden)
	}
	layer := *r
	layer.hidden = hidden
	optional := func(i, want int) ([]T, error) {
		t := c.arg(i)
		if t == nil {
			return nil, nil
		}
		if t.DType() != x.DType() || t.Len() != want {
			return nil, fmt.Errorf("input %d is %v, expected %d elements of %v", i, t, want, x.DType())
		}
		return data[T](t), nil
	}
	bias, err := optional(3, dirs*2*wide)
	if err != nil {
		return err
	}
	h0, err := optional(5, dirs*batch*hidden)
	if err != nil {
		return err
	}
	var c0, peep []T
	if r.gates == 4 {
		if c0, err = optional(6, dirs*batch*hidden); err != nil {
			return err
		}
		if peep, err = optional(7, dirs*3*hidden); err != nil {
			return err
		}
	}
	lens, err := lengths(c.arg(4), batch, steps)
	if err != nil {
		return err
	}

	all := data[T](c.make(0, x.DType(), pickShape(r.batchFirst, []int{batch, steps, dirs, hidden}, []int{steps, dirs, batch, hidden})...))
	stateShape := pickShape(r.batchFirst, []int{batch, dirs, hidden}, []int{dirs, batch, hidden})
	lastH := data[T](c.make(1, x.DType(), stateShape...))
	var lastC []T
	if r.gates == 4 {
		lastC = data[T](c.make(2, x.DType(), stateShape...))
	}
	clear(all)
	if steps == 0 || batch == 0 {
		clear(lastH)
		clear(lastC)
		return nil
	}

	src := data[T](x)
	if r.batchFirst {
		moved := scratch[T](c, 0, len(src))
		for b := range batch {
			for t := range steps {
				copy(moved[(t*batch+b)*width:][:width], src[(b*steps+t)*width:][:width])
			}
		}
		src = moved
	}
	// One product does all time steps of a direction; what is left per step is the recurrent part.
	xw := scratch[T](c, 1, steps*batch*wide)
	hw := scratch[T](c, 2, batch*wide)
	state := scratch[T](c, 3, 6*batch*hidden)
	zeros := zeroed[T](c, 4, 2*wide)
	part := func(i int) []T { return state[i*batch*hidden:][:batch*hidden] }
	for d := range dirs {
		w, rw := data[T](weight)[d*wide*width:][:wide*width], data[T](rec)[d*wide*hidden:][:wide*hidden]
		gemm(c, false, true, steps*batch, wide, width, 1, src, width, w, width, 0, xw, wide)
		s := cellStep[T]{r: &layer, f: r.f[d], batch: batch, hw: hw, bias: zeros[:wide], rbias: zeros[wide:], h: part(0), cell: part(1), new: part(2)}
		if bias != nil {
			s.bias, s.rbias = bias[d*2*wide:][:wide], bias[d*2*wide+wide:][:wide]
		}
		if peep != nil {
			s.peep = peep[d*3*hidden:][:3*hidden]
		}
		loadState(s.h, h0, d, dirs, batch, hidden, r.batchFirst)
		loadState(s.cell, c0, d, dirs, batch, hidden, r.batchFirst)
		for k := range steps {
			gemm(c, false, true, batch, wide, hidden, 1, s.h, hidden, rw, hidden, 0, hw, wide)
			z, rh, rhw := part(3), part(4), part(5)
			// A reversed direction starts at each sequence's own end.
			at := func(b int) int {
				if r.reverse[d] {
					return lens[b] - 1 - k
				}
				return k
			}
			for b := range batch {
				if k >= lens[b] {
					clear(z[b*hidden:][:hidden])
					clear(rh[b*hidden:][:hidden])
					continue
				}
				s.xw = xw[at(b)*batch*wide:]
				switch r.gates {
				case 1:
					s.rnn(b)
				case 4:
					s.lstm(b)
				case 3:
					s.gruGates(b, z, rh)
				}
			}
			if r.gates == 3 {
				if !r.linearReset {
					gemm(c, false, true, batch, hidden, hidden, 1, rh, hidden, rw[2*hidden*hidden:], hidden, 0, rhw, hidden)
				}
				for b := range batch {
					if k < lens[b] {
						s.xw = xw[at(b)*batch*wide:]
						s.gruState(b, z, rh, rhw)
					}
				}
			}
			for b := range batch {
				if k >= lens[b] {
					continue
				}
				row := s.new[b*hidden:][:hidden]
				copy(s.h[b*hidden:][:hidden], row)
				o := ((at(b)*dirs+d)*batch + b) * hidden
				if r.batchFirst {
					o = ((b*steps+at(b))*dirs + d) * hidden
				}
				copy(all[o:][:hidden], row)
			}
		}
		storeState(lastH, s.h, d, dirs, batch, hidden, r.batchFirst)
		if lastC != nil {
			storeState(lastC, s.cell, d, dirs, batch, hidden, r.batchFirst)
		}
	}
	return nil
}

func pickShape(first bool, a, b []int) []int {
	if first {
		return a
	}
	return b
}

// lengths returns each sequence's length.
func lengths(t *tensor.Tensor, batch, steps int) ([]int, error) {
	out := make([]int, batch)
	if t == nil {
		for i := range out {
			out[i] = steps
		}
		return out, nil
	}
	v, err := intsOf(nil, t)
	if err != nil || len(v) != batch {
		return nil, fmt.Errorf("sequence_lens is %v, expected %d integers", t, batch)
	}
	for i, n := range v {
		if n < 0 || n > steps {
			return nil, badData("sequence %d has length %d of %d steps", i, n, steps)
		}
	}
	return v, nil
}

// loadState reads one direction's state; nil is zeros.
func loadState[T float](dst, src []T, d, dirs, batch, hidden int, batchFirst bool) {
	if src == nil {
		clear(dst)
		return
	}
	for b := range batch {
		copy(dst[b*hidden:][:hidden], src[stateAt(d, b, dirs, batch, hidden, batchFirst):][:hidden])
	}
}

func storeState[T float](dst, src []T, d, dirs, batch, hidden int, batchFirst bool) {
	for b := range batch {
		copy(dst[stateAt(d, b, dirs, batch, hidden, batchFirst):][:hidden], src[b*hidden:][:hidden])
	}
}

func stateAt(d, b, dirs, batch, hidden int, batchFirst bool) int {
	if batchFirst {
		return (b*dirs + d) * hidden
	}
	return (d*batch + b) * hidden
}
