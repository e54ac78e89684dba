package portable

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/engine"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// Sequences and optionals inside a graph. They cannot enter or leave one, because the engines'
// ports are tensors.
var sequenceOperators = []operator{
	{name: "SequenceEmpty", versions: []int{11}, maxIn: 0, exact: true, build: buildSequenceEmpty},
	{name: "SequenceConstruct", versions: []int{11}, minIn: 1, maxIn: -1, exact: true, build: plain(sequenceConstruct)},
	{name: "SequenceInsert", versions: []int{11}, minIn: 2, maxIn: 3, exact: true, build: plain(sequenceInsert)},
	{name: "SequenceErase", versions: []int{11}, minIn: 1, maxIn: 2, exact: true, build: plain(sequenceErase)},
	{name: "SequenceAt", versions: []int{11}, minIn: 2, maxIn: 2, exact: true, build: plain(sequenceAt)},
	{name: "SequenceLength", versions: []int{11}, minIn: 1, maxIn: 1, exact: true, build: plain(sequenceLength)},
	{name: "SplitToSequence", versions: []int{11, 24}, minIn: 1, maxIn: 2, exact: true, build: buildSplitToSequence},
	{name: "ConcatFromSequence", versions: []int{11}, minIn: 1, maxIn: 1, exact: true, build: buildConcatFromSequence},
	{name: "Optional", versions: []int{15, 28}, minIn: 0, maxIn: 1, exact: true, build: plain(optional)},
	{name: "OptionalGetElement", versions: []int{15, 18, 28}, minIn: 1, maxIn: 1, exact: true, build: plain(optionalGet)},
	{name: "OptionalHasElement", versions: []int{15, 18, 28}, minIn: 0, maxIn: 1, exact: true, build: plain(optionalHas)},
}

// sequence is a list of tensors. It is immutable: operators that change one make another, and its
// tensors are never in a frame's registers.
type sequence struct {
	elem  tensor.DType
	items []*tensor.Tensor
}

func (c *call) needSeq(i int) (*sequence, error) {
	if s := c.seq(i); s != nil {
		return s, nil
	}
	return nil, fmt.Errorf("input %d is no sequence", i)
}

func buildSequenceEmpty(n *node) (kernel, error) {
	s := &sequence{elem: tensor.DType(n.Int("dtype", int(tensor.Float32)))}
	return func(c *call) error {
		c.giveSeq(0, s)
		return nil
	}, nil
}

func sequenceConstruct(c *call) error {
	s := &sequence{}
	for i := range c.n() {
		t := c.arg(i)
		if t == nil || i > 0 && t.DType() != s.elem {
			return fmt.Errorf("input %d is %v in a sequence of %v", i, t, s.elem)
		}
		s.elem = t.DType()
		s.items = append(s.items, t.Clone())
	}
	c.giveSeq(0, s)
	return nil
}

// position reads an optional index input; def where it is absent. Positions may equal the length
// where an element is inserted.
func (c *call) position(i, n, def int) (int, error) {
	t := c.arg(i)
	if t == nil {
		return def, nil
	}
	p, err := scalarInt(t)
	if err != nil {
		return 0, err
	}
	return index(int64(p), n)
}

func sequenceInsert(c *call) error {
	s, err := c.needSeq(0)
	if err != nil {
		return err
	}
	t := c.arg(1)
	if len(s.items) > 0 && t.DType() != s.elem {
		return fmt.Errorf("a %v in a sequence of %v", t, s.elem)
	}
	at := len(s.items)
	if p := c.arg(2); p != nil {
		if at, err = scalarInt(p); err != nil {
			return err
		}
		if at < 0 {
			at += len(s.items)
		}
		if at < 0 || at > len(s.items) {
			return badData("position %d in a sequence of %d", at, len(s.items))
		}
	}
	c.giveSeq(0, &sequence{t.DType(), slices.Insert(slices.Clone(s.items), at, t.Clone())})
	return nil
}

func sequenceErase(c *call) error {
	s, err := c.needSeq(0)
	if err != nil {
		return err
	}
	at, err := c.position(1, len(s.items), len(s.items)-1)
	if err != nil {
		return err
	}
	if len(s.items) == 0 {
		return fmt.Errorf("the sequence is empty")
	}
	c.giveSeq(0, &sequence{s.elem, slices.Delete(slices.Clone(s.items), at, at+1)})
	return nil
}

func sequenceAt(c *call) error {
	s, err := c.needSeq(0)
	if err != nil {
		return err
	}
	at, err := c.position(1, len(s.items), 0)
	if err != nil {
		return err
	}
	c.give(0, s.items[at])
	return nil
}

func sequenceLength(c *call) error {
	s, err := c.needSeq(0)
	if err != nil {
		return err
	}
	c.make(0, tensor.Int64).Int64s()[0] = int64(len(s.items))
	return nil
}

func buildSplitToSequence(n *node) (kernel, error) {
	axis, keepDims := n.Int("axis", 0), n.Int("keepdims", 1) != 0
	return func(c *call) error {
		x, t := c.arg(0), c.arg(1)
		a, err := normAxis(axis, x.Rank())
		if err != nil {
			return err
		}
		d := x.Shape()[a]
		var sizes []int
		switch {
		case t == nil:
			sizes = slices.Repeat([]int{1}, d)
		case t.Rank() == 0:
			each, err := scalarInt(t)
			if err != nil {
				return fmt.Errorf("split: %w", err)
			}
			if each < 1 {
				return fmt.Errorf("split %d: %w", each, engine.ErrNotPositive)
			}
			for left := d; left > 0; left -= each {
				sizes = append(sizes, min(each, left))
			}
		default:
			if sizes, err = intsOf(nil, t); err != nil {
				return err
			}
		}
		src, err := elementsOf(x)
		if err != nil {
			return err
		}
		outer, inner := product(x.Shape()[:a]), product(x.Shape()[a+1:])
		s, at := &sequence{elem: x.DType()}, 0
		for _, n := range sizes {
			if n < 0 || at+n > d {
				return fmt.Errorf("split %v of an extent of %d", sizes, d)
			}
			shape := slices.Clone(x.Shape())
			shape[a] = n
			if t == nil && !keepDims {
				shape = slices.Delete(shape, a, a+1)
			}
			part := tensor.New(x.DType(), shape...)
			dst, _ := elementsOf(part)
			for o := range outer {
				dst.copy(o*n*inner, src, (o*d+at)*inner, n*inner)
			}
			s.items, at = append(s.items, part), at+n
		}
		if at != d {
			return fmt.Errorf("split %v of an extent of %d", sizes, d)
		}
		c.giveSeq(0, s)
		return nil
	}, nil
}

func buildConcatFromSequence(n *node) (kernel, error) {
	axis, fresh := n.Int("axis", 0), n.Int("new_axis", 0) != 0
	return func(c *call) error {
		s, err := c.needSeq(0)
		if err != nil {
			return err
		}
		if len(s.items) == 0 {
			return fmt.Errorf("the sequence is empty")
		}
		if fresh {
			return stack(c, 0, s.items, axis, false)
		}
		return concat(c, s.items, axis)
	}, nil
}

func optional(c *call) error {
	switch {
	case c.seq(0) != nil:
		c.giveSeq(0, c.seq(0))
	case c.arg(0) != nil:
		c.give(0, c.arg(0).Clone())
	default:
		c.giveSeq(0, nil)
	}
	return nil
}

func optionalGet(c *call) error {
	if s := c.seq(0); s != nil {
		c.giveSeq(0, s)
		return nil
	}
	if c.arg(0) == nil {
		return fmt.Errorf("the optional is empty")
	}
	c.give(0, c.arg(0).Clone())
	return nil
}

func optionalHas(c *call) error {
	c.make(0, tensor.Bool).Bools()[0] = c.arg(0) != nil || c.seq(0) != nil
	return nil
}
