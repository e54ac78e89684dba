package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Operators that run sub-graphs. A body is a program of its own; its frame hangs off the call and
// takes what it needs of the values around it. Values that leave a body are newly made in every
// run, so that one iteration's state is never overwritten while the next one reads it.
var controlOperators = []operator{
	{name: "If", versions: []int{1, 11, 13, 16, 19, 21, 23, 24, 25}, minIn: 1, maxIn: 1, exact: true, build: buildIf},
	{name: "Loop", versions: []int{1, 11, 13, 16, 19, 21, 23, 24, 25}, minIn: 0, maxIn: -1, exact: true, build: buildLoop},
	{name: "Scan", versions: []int{9, 11, 16, 19, 21, 23, 24, 25}, minIn: 1, maxIn: -1, exact: true, build: buildScan},
}

// item is a value of either kind.
type item struct {
	t *tensor.Tensor
	s *sequence
}

func (c *call) item(i int) item { return item{c.arg(i), c.seq(i)} }

// put makes v output i. v is not in any register.
func (c *call) put(i int, v item) {
	if v.t != nil {
		c.give(i, v.t)
		return
	}
	c.giveSeq(i, v.s)
}

// bodyFrame is the frame of a body, kept by the call.
type bodyFrame struct{ f *frame }

func (b *bodyFrame) run(c *call, p *program, args []item) ([]item, error) {
	if b.f == nil || b.f.prog != p {
		b.f = newFrame(p, c.f.rt, c.f)
	}
	f := b.f
	if len(args) != len(p.inputs) {
		return nil, fmt.Errorf("the body takes %d inputs, %d are given", len(p.inputs), len(args))
	}
	for i, id := range p.inputs {
		f.vals[id], f.seqs[id] = args[i].t, args[i].s
	}
	if err := f.run(c.f.ctx); err != nil {
		return nil, err
	}
	out := make([]item, len(p.outputs))
	for i, id := range p.outputs {
		out[i] = item{f.vals[id], f.seqs[id]}
	}
	return out, nil
}

type ifState struct{ branch [2]bodyFrame }

func buildIf(n *node) (kernel, error) {
	var branches [2]*program
	for i, name := range []string{"else_branch", "then_branch"} {
		p, err := n.body(name)
		if err != nil {
			return nil, err
		}
		if len(p.inputs) != 0 || len(p.outputs) != len(n.Output) {
			return nil, fmt.Errorf("%s has %d inputs and %d outputs, expected 0 and %d", name, len(p.inputs), len(p.outputs), len(n.Output))
		}
		branches[i] = p
	}
	return func(c *call) error {
		cond, err := condition(c.arg(0))
		if err != nil {
			return err
		}
		which := 0
		if cond {
			which = 1
		}
		out, err := keep[ifState](c).branch[which].run(c, branches[which], nil)
		if err != nil {
			return err
		}
		for i, v := range out {
			c.put(i, v)
		}
		return nil
	}, nil
}

func condition(t *tensor.Tensor) (bool, error) {
	if t == nil || t.DType() != tensor.Bool || t.Len() != 1 {
		return false, fmt.Errorf("the condition is %v, expected one bool", t)
	}
	return t.Bools()[0], nil
}

func buildLoop(n *node) (kernel, error) {
	body, err := n.body("body")
	if err != nil {
		return nil, err
	}
	states := max(0, len(n.Input)-2)
	scans := len(n.Output) - states
	if len(body.inputs) != 2+states || len(body.outputs) != 1+states+scans || scans < 0 {
		return nil, fmt.Errorf("body has %d inputs and %d outputs for %d loop-carried values and %d outputs", len(body.inputs), len(body.outputs), states, len(n.Output))
	}
	return func(c *call) error {
		trips := int64(-1)
		if t := c.arg(0); t != nil {
			if t.DType() != tensor.Int64 || t.Len() != 1 {
				return fmt.Errorf("the trip count is %v, expected one int64", t)
			}
			trips = max(0, t.Int64s()[0])
		}
		on := true
		if t := c.arg(1); t != nil {
			var err error
			if on, err = condition(t); err != nil {
				return err
			}
		}
		args := make([]item, 2+states)
		for i := range states {
			args[2+i] = c.item(2 + i)
		}
		collected := make([][]*tensor.Tensor, scans)
		held := 0
		frame := keep[bodyFrame](c)
		for i := int64(0); on && (trips < 0 || i < trips); i++ {
			args[0], args[1] = item{t: tensor.Scalar(i)}, item{t: tensor.Scalar(on)}
			out, err := frame.run(c, body, args)
			if err != nil {
				return err
			}
			if on, err = condition(out[0].t); err != nil {
				return err
			}
			copy(args[2:], out[1:1+states])
			for k := range scans {
				t := out[1+states+k].t
				if t == nil {
					return fmt.Errorf("scan output %d is not a tensor", k)
				}
				// A header takes memory too, however small the tensor.
				if held += t.DType().ByteLen(t.Len()) + 256; held > maxValueBytes {
					return fmt.Errorf("the scan outputs of %d iterations exceed %d bytes", i+1, maxValueBytes)
				}
				collected[k] = append(collected[k], t)
			}
		}
		for i := range states {
			// A loop of no iterations returns its arguments, which belong to other steps.
			if t := args[2+i].t; t != nil && t == c.arg(2+i) {
				args[2+i].t = t.Clone()
			}
			c.put(i, args[2+i])
		}
		for k := range scans {
			if !c.wants(states + k) {
				continue
			}
			if len(collected[k]) == 0 {
				t, err := emptyScan(n.Body("body").Output[1+states+k])
				if err != nil {
					return err
				}
				c.give(states+k, t)
				continue
			}
			if err := stack(c, states+k, collected[k], 0, false); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// stack joins tensors of one shape along a new axis as output i.
func stack(c *call, i int, list []*tensor.Tensor, axis int, reverse bool) error {
	first := list[0]
	a, err := normAxis(axis, first.Rank()+1)
	if err != nil {
		return err
	}
	shape := slices.Insert(slices.Clone(first.Shape()), a, len(list))
	dst, err := elementsOf(c.make(i, first.DType(), shape...))
	if err != nil {
		return err
	}
	outer, inner := product(first.Shape()[:a]), product(first.Shape()[a:])
	for k, t := range list {
		if t.DType() != first.DType() || !slices.Equal(t.Shape(), first.Shape()) {
			return fmt.Errorf("scan output is %v in iteration 0 and %v in iteration %d", first, t, k)
		}
		src, err := elementsOf(t)
		if err != nil {
			return err
		}
		at := k
		if reverse {
			at = len(list) - 1 - k
		}
		for o := range outer {
			dst.copy((o*len(list)+at)*inner, src, o*inner, inner)
		}
	}
	return nil
}

func buildScan(n *node) (kernel, error) {
	body, err := n.body("body")
	if err != nil {
		return nil, err
	}
	scans := n.Int("num_scan_inputs", 0)
	states := len(n.Input) - scans
	outs := len(n.Output) - states
	if scans < 1 || states < 0 || outs < 0 || len(body.inputs) != states+scans || len(body.outputs) != states+outs {
		return nil, fmt.Errorf("%d inputs, %d of them scanned, and %d outputs for a body with %d and %d", len(n.Input), scans, len(n.Output), len(body.inputs), len(body.outputs))
	}
	inDir, outDir := n.Ints("scan_input_directions"), n.Ints("scan_output_directions")
	inAxes, outAxes := n.Ints("scan_input_axes"), n.Ints("scan_output_axes")
	for _, l := range []struct {
		name string
		v    []int
		n    int
	}{{"scan_input_directions", inDir, scans}, {"scan_output_directions", outDir, outs}, {"scan_input_axes", inAxes, scans}, {"scan_output_axes", outAxes, outs}} {
		if l.v != nil && len(l.v) != l.n {
			return nil, fmt.Errorf("%s has %d elements, expected %d", l.name, len(l.v), l.n)
		}
	}
	pick := func(l []int, i int) int {
		if l == nil {
			return 0
		}
		return l[i]
	}
	return func(c *call) error {
		args := make([]item, states+scans)
		for i := range states {
			args[i] = c.item(i)
		}
		length := -1
		axes := make([]int, scans)
		for k := range scans {
			x := c.arg(states + k)
			a, err := normAxis(pick(inAxes, k), x.Rank())
			if err != nil {
				return fmt.Errorf("scan input %d: %w", k, err)
			}
			axes[k] = a
			if length >= 0 && x.Shape()[a] != length {
				return fmt.Errorf("scan inputs have lengths %d and %d", length, x.Shape()[a])
			}
			length = x.Shape()[a]
		}
		collected := make([][]*tensor.Tensor, outs)
		frame := keep[bodyFrame](c)
		for t := range length {
			for k := range scans {
				at := t
				if pick(inDir, k) == 1 {
					at = length - 1 - t
				}
				s, err := takeAt(c.arg(states+k), axes[k], at)
				if err != nil {
					return err
				}
				args[states+k] = item{t: s}
			}
			out, err := frame.run(c, body, args)
			if err != nil {
				return err
			}
			copy(args, out[:states])
			for k := range outs {
				if out[states+k].t == nil {
					return fmt.Errorf("scan output %d is not a tensor", k)
				}
				collected[k] = append(collected[k], out[states+k].t)
			}
		}
		for i := range states {
			if t := args[i].t; t != nil && t == c.arg(i) {
				args[i].t = t.Clone()
			}
			c.put(i, args[i])
		}
		for k := range outs {
			if !c.wants(states + k) {
				continue
			}
			if length == 0 {
				t, err := emptyScan(n.Body("body").Output[states+k])
				if err != nil {
					return err
				}
				c.give(states+k, t)
				continue
			}
			if err := stack(c, states+k, collected[k], pick(outAxes, k), pick(outDir, k) == 1); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// takeAt copies the slice of x at one position of an axis, without that axis.
func takeAt(x *tensor.Tensor, axis, at int) (*tensor.Tensor, error) {
	s := tensor.New(x.DType(), slices.Delete(slices.Clone(x.Shape()), axis, axis+1)...)
	dst, err := elementsOf(s)
	if err != nil {
		return nil, err
	}
	src, _ := elementsOf(x)
	d, inner := x.Shape()[axis], product(x.Shape()[axis+1:])
	for o := range product(x.Shape()[:axis]) {
		dst.copy(o*inner, src, (o*d+at)*inner, inner)
	}
	return s, nil
}

// emptyScan makes the output of a loop without iterations from the type that the body declares for
// one.
func emptyScan(v *onnx.ValueInfo) (*tensor.Tensor, error) {
	t, ok := v.TensorType()
	if !ok || t.DType == tensor.Undefined {
		return nil, fmt.Errorf("scan output %q of no iterations has no declared type", v.Name)
	}
	shape := []int{0}
	for _, d := range t.Dims {
		shape = append(shape, max(0, d.Value))
	}
	return tensor.New(t.DType, shape...), nil
}
