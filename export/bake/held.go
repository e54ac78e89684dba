package bake

import (
	"fmt"
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

// The outputs of a [Router] that says which assets may be held.
const (
	// HeldOutput is bool [batch, N]: which assets may be held.
	HeldOutput = "held"
	// HeldScoresOutput is float32 [batch, 2·N]: what leaving out and holding each asset would be
	// chosen by at this step, whether or not the segment is over.
	HeldScoresOutput = "held_scores"
)

// Holdings says that a router chooses which of N assets may be held until its next choice.
type Holdings struct {
	// Assets is N. The router's action is int64 [batch, N], 1 for an asset that may be held, or
	// [batch, N+1] with the choice between several experts behind it; its mask has the places of
	// leaving out and of holding each asset, and those of the experts.
	Assets int
	// Orders is how many orders an expert has for each asset, whose number Buy is masked where the
	// asset may not be held, and Mask the experts' input that says which they have, bool [batch,
	// N·Orders]. An asset with one order only cannot be chosen.
	Orders, Buy int
	Mask        string
	// Without Orders, actions are weights of the assets and the cash: the others share what one
	// that may not be held has, where they have at least Least. Tradable is an input uint8 [batch,
	// N]: one at 0 cannot be chosen.
	Tradable string
	Least    float64
}

// heads are the numbers of alternatives of the router's choices.
func (c *composer) heads() []int {
	list := slices.Repeat([]int{2}, c.Holdings.Assets)
	if c.n > 1 {
		list = append(list, c.n)
	}
	return list
}

// input declares an input that the models share, unless one of them has it.
func (c *composer) input(name string, d tensor.DType, n int) error {
	t := onnx.TensorType{DType: d, Ranked: true, Dims: []onnx.Dim{onnx.Symbol("batch"), onnx.Known(n)}}
	for _, v := range c.inputs {
		if v.Name != name {
			continue
		}
		if have, _ := v.TensorType(); have.DType != d || !slices.Equal(have.Dims, t.Dims) {
			return fmt.Errorf("input %q is %v, expected %v", name, have, t)
		}
		return nil
	}
	c.inputs = append(c.inputs, onnx.NewValueInfo(onnx.Value(name), t))
	return nil
}

// open appends which assets can be chosen, bool [batch, N]; all if none can.
func (c *composer) open() (onnx.Value, error) {
	h, b := c.Holdings, c.b
	var open onnx.Value
	if h.Orders > 0 {
		if err := c.input(h.Mask, tensor.Bool, h.Assets*h.Orders); err != nil {
			return "", err
		}
		orders := c.op("Reshape", c.float(onnx.Value(h.Mask)), b.Ints(0, h.Assets, h.Orders))
		open = c.op("Greater", c.sum(orders, 2, 0), b.Float(1.5))
	} else {
		if err := c.input(h.Tradable, tensor.Uint8, h.Assets); err != nil {
			return "", err
		}
		open = c.op("Greater", c.float(onnx.Value(h.Tradable)), b.Float(0.5))
	}
	none := c.op("Less", c.sum(c.float(open), 1, 1), b.Float(0.5))
	return c.op("Or", open, none), nil
}

// holdMask appends the router's mask, of the assets and the experts.
func (c *composer) holdMask(open, allowed onnx.Value) onnx.Value {
	at := c.op("Unsqueeze", open, c.b.Ints(2))
	always := c.op("Or", at, c.op("Not", at))
	mask := c.op("Reshape", c.along("Concat", 2, always, at), c.b.Ints(0, 2*c.Holdings.Assets))
	if c.n == 1 {
		return mask
	}
	return c.along("Concat", 1, mask, allowed)
}

// hold appends what the decision says of the assets, as numbers [batch, N], which is remembered,
// and of the expert, int64 [batch].
func (c *composer) hold(decision onnx.Value) (held, expert onnx.Value) {
	b, n := c.b, c.Holdings.Assets
	was := c.state("held", 1, n)
	fresh := decision
	if c.n > 1 {
		parts := b.OpN("Split", "", 2, []onnx.Value{decision, b.Ints(n, 1)}, onnx.AttrInt("axis", 1))
		fresh, expert = parts[0], c.op("Squeeze", parts[1], b.Ints(1))
	} else {
		// Nobody else can be in charge.
		expert = b.Op("ArgMax", []onnx.Value{c.on}, onnx.AttrInt("axis", 1), onnx.AttrInt("keepdims", 0))
	}
	held = c.op("Where", c.over, c.float(fresh), was)
	c.keep(was, held)
	return held, expert
}

// maskOrders gives the experts their mask without the purchase of what may not be held.
func (c *composer) maskOrders(held onnx.Value) {
	h, b := c.Holdings, c.b
	if h.Orders == 0 {
		return
	}
	others := tensor.New(tensor.Bool, 1, 1, h.Orders)
	for i := range h.Orders {
		others.Bools()[i] = i != h.Buy
	}
	may := c.op("Or", c.op("Unsqueeze", c.op("Greater", held, b.Float(0.5)), b.Ints(2)), b.Const(others))
	b.Rename(c.op("And", onnx.Value(h.Mask), c.op("Reshape", may, b.Ints(0, h.Assets*h.Orders))), expertsMask)
}

// expertsMask is the mask that experts have where the purchase of some assets is left out.
const expertsMask = "experts/mask"

// restrict shares what weights [batch, assets and cash] give to assets that may not be held.
func (c *composer) restrict(weights, held onnx.Value) onnx.Value {
	h, b := c.Holdings, c.b
	if h.Orders > 0 {
		return weights
	}
	cash := tensor.New(tensor.Float32, 1, h.Assets+1)
	cash.Float32s()[h.Assets] = 1
	one := c.op("Mul", c.op("Slice", held, b.Ints(0), b.Ints(1), b.Ints(1)), b.Float(0))
	may := c.along("Concat", 1, held, c.op("Add", one, b.Float(1)))
	rest := c.op("Mul", weights, may)
	kept := c.sum(rest, 1, 1)
	factor := c.op("Div", b.Float(1), c.op("Max", kept, b.Float(float32(h.Least))))
	missing := c.op("Max", c.op("Sub", b.Float(1), c.op("Mul", kept, factor)), b.Float(0))
	shared := c.op("Add", c.op("Mul", rest, factor), c.op("Mul", missing, b.Const(cash)))
	// Where nothing is left out the action stays as it is, to the bit.
	all := c.op("Greater", c.sum(held, 1, 1), b.Float(float32(h.Assets)-0.5))
	return c.op("Where", all, weights, shared)
}

// heldOutputs makes what is chosen of the assets, and by what, outputs.
func (c *composer) heldOutputs(held onnx.Value) {
	n := c.Holdings.Assets
	c.output(c.op("Greater", held, c.b.Float(0.5)), HeldOutput, tensor.Bool, n)
	o := outputType(c.Model, c.Scores)
	total := 2 * n
	if c.n > 1 {
		total += c.n
	}
	if c.Scores == "" || len(o.Dims) != 2 || o.Dims[1] != onnx.Known(total) {
		return
	}
	by := onnx.Value(c.prefix(c.n) + c.Scores)
	slice := func(from, to int) onnx.Value {
		return c.op("Slice", by, c.b.Ints(from), c.b.Ints(to), c.b.Ints(1))
	}
	c.output(slice(0, 2*n), HeldScoresOutput, o.DType, 2*n)
	if c.n > 1 {
		c.output(slice(2*n, total), ExpertScoresOutput, o.DType, c.n)
	}
}
