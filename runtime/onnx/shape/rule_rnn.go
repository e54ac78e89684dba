package shape

import (
	"fmt"

	"github.com/onnxrl/onnxrl/runtime/onnx"
)

// rnn, gru and lstm differ in how many gates their weights stack: X [time, batch, input], W
// [directions, gates·hidden, input], R [directions, gates·hidden, hidden]. With layout 1 the batch
// comes first in X, Y and the states.
func rnn(c *call) error { return c.recurrent(1) }

func gru(c *call) error { return c.recurrent(3) }

func lstm(c *call) error { return c.recurrent(4) }

func (c *call) recurrent(gates int) error {
	x, w, r := c.typ(0), c.typ(1), c.typ(2)
	for i := range 3 {
		if err := c.rankIs(i, 3); err != nil {
			return err
		}
	}
	dirs := 1
	switch d := c.str("direction", "forward"); d {
	case "forward", "reverse":
	case "bidirectional":
		dirs = 2
	default:
		return fmt.Errorf("direction %q is none of forward, reverse, bidirectional", d)
	}
	// One activation, with a parameter of each kind, per direction; GRU has two and LSTM three.
	per := map[int]int{1: 1, 3: 2, 4: 3}[gates]
	if a := c.node.Strs("activations"); c.hasAttr("activations") && len(a) != per*dirs {
		return fmt.Errorf("%d activations, want %d", len(a), per*dirs)
	}
	for _, name := range []string{"activation_alpha", "activation_beta"} {
		if a := c.floats(name); gates == 1 && c.hasAttr(name) && len(a) < dirs {
			return fmt.Errorf("attribute %q has %d numbers, want %d", name, len(a), dirs)
		}
	}
	hidden := onnx.Symbol("")
	if h := c.int("hidden_size", 0); h > 0 {
		hidden = onnx.Known(h)
	} else if c.hasAttr("hidden_size") {
		return fmt.Errorf("hidden_size is %d", h)
	}
	var err error
	if r.Ranked {
		if hidden, err = agree(hidden, r.Dims[2], fmt.Sprintf("hidden_size and the last axis of R %v", r)); err != nil {
			return err
		}
	}
	if w.Ranked && !hidden.IsKnown() && w.Dims[1].IsKnown() && w.Dims[1].Value%gates == 0 {
		hidden = onnx.Known(w.Dims[1].Value / gates)
	}
	stack := c.env.mul(ofDim(hidden), num(int64(gates))).dim()
	time, batch, in := onnx.Symbol(""), onnx.Symbol(""), onnx.Symbol("")
	layout := c.int("layout", 0)
	if x.Ranked {
		time, batch, in = x.Dims[0], x.Dims[1], x.Dims[2]
		if layout != 0 {
			time, batch = batch, time
		}
	}
	d := onnx.Known(dirs)
	state := []onnx.Dim{d, batch, hidden}
	if layout != 0 {
		state = []onnx.Dim{batch, d, hidden}
	}
	wants := []struct {
		i    int
		dims []onnx.Dim
	}{
		{1, []onnx.Dim{d, stack, in}}, {2, []onnx.Dim{d, stack, hidden}}, {3, []onnx.Dim{d, c.env.mul(ofDim(stack), num(2)).dim()}}, {4, []onnx.Dim{batch}},
		{5, state}, {6, state}, {7, []onnx.Dim{d, c.env.mul(ofDim(hidden), num(3)).dim()}},
	}
	for _, want := range wants {
		if !c.has(want.i) {
			continue
		}
		if t := c.typ(want.i); t.Ranked {
			wt := onnx.TensorType{DType: t.DType, Ranked: true, Dims: want.dims}
			if _, err := merge(t, wt); err != nil {
				return fmt.Errorf("input %d %q is %v, want %v (input %v, %d directions)", want.i, c.node.In(want.i), t, wt, x, dirs)
			}
		}
	}
	if layout != 0 {
		c.setDims(0, x.DType, batch, time, d, hidden)
	} else {
		c.setDims(0, x.DType, time, d, batch, hidden)
	}
	c.setDims(1, x.DType, state...)
	c.setDims(2, x.DType, state...)
	return nil
}
