package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func recurrentCases() []Case {
	hidden := func(v int) *onnx.Attribute { return onnx.AttrInt("hidden_size", v) }
	way := func(v string) *onnx.Attribute { return onnx.AttrStr("direction", v) }
	acts := func(v ...string) *onnx.Attribute { return onnx.AttrStrs("activations", v...) }
	lens := func(v ...int32) Arg { return Tensor(tensor.Of(v, len(v))) }
	linear, first := onnx.AttrInt("linear_before_reset", 1), onnx.AttrInt("layout", 1)
	// T steps, batch B, I features, H hidden units, D directions: X, W, R, B, sequence_lens,
	// initial_h.
	args := func(gates, d, t, b, i, h int, more ...Arg) []Arg {
		return append([]Arg{Any(t, b, i), Any(d, gates*h, i), Any(d, gates*h, h), Any(d, 2*gates*h)}, more...)
	}
	return []Case{
		op("RNN", "forward", args(1, 1, 4, 2, 3, 2)...).attr(hidden(2)).outs(2),
		op("RNN", "reverse, initial state", args(1, 1, 3, 2, 2, 3, none, Any(1, 2, 3))...).attr(hidden(3), way("reverse")).outs(2),
		op("RNN", "bidirectional", args(1, 2, 3, 2, 2, 2, none, Any(2, 2, 2))...).attr(hidden(2), way("bidirectional")).outs(2),
		op("RNN", "no bias, sigmoid", Any(3, 1, 2), Any(1, 2, 2), Any(1, 2, 2)).attr(hidden(2), acts("Sigmoid")).outs(2),
		op("RNN", "clip", args(1, 1, 3, 2, 2, 2)...).attr(hidden(2), onnx.AttrFloat("clip", 50)).outs(2),
		op("RNN", "lengths", args(1, 2, 4, 3, 2, 2, lens(2, 4, 3), Any(2, 3, 2))...).attr(hidden(2), way("bidirectional")).outs(2),
		op("RNN", "last state alone", args(1, 1, 3, 2, 2, 2)...).attr(hidden(2)).outs(2).skip(0),
		op("RNN", "affine, scaled", args(1, 2, 3, 2, 2, 2)...).attr(hidden(2), way("bidirectional"), acts("Affine", "ScaledTanh"),
			onnx.AttrFloats("activation_alpha", 0.5, 0.8), onnx.AttrFloats("activation_beta", 0.1, 0.7)).outs(2),
		op("RNN", "hard sigmoid", args(1, 2, 3, 2, 2, 2)...).attr(hidden(2), way("bidirectional"), acts("HardSigmoid", "HardSigmoid"),
			onnx.AttrFloats("activation_alpha", 0.05, 0.04), onnx.AttrFloats("activation_beta", 0.5, 0.4)).outs(2),
		op("RNN", "softsign", args(1, 1, 3, 2, 2, 2)...).attr(hidden(2), acts("Softsign")).outs(2),

		op("GRU", "forward", args(3, 1, 3, 2, 3, 2)...).attr(hidden(2)).outs(2),
		op("GRU", "linear before reset", args(3, 1, 3, 2, 2, 3, none, Any(1, 2, 3))...).attr(hidden(3), linear).outs(2),
		op("GRU", "linear before reset, zero state", args(3, 1, 3, 2, 2, 2)...).attr(hidden(2), linear).outs(2),
		op("GRU", "linear, no bias", Any(3, 2, 2), Any(1, 6, 2), Any(1, 6, 2)).attr(hidden(2), linear).outs(2),
		op("GRU", "bidirectional", args(3, 2, 3, 2, 2, 2, none, Any(2, 2, 2))...).attr(hidden(2), way("bidirectional")).outs(2),
		op("GRU", "linear, bidirectional", args(3, 2, 3, 2, 2, 2, none, Any(2, 2, 2))...).attr(hidden(2), way("bidirectional"), linear).outs(2),
		op("GRU", "linear, one step", args(3, 1, 1, 2, 2, 2, none, Any(1, 2, 2))...).attr(hidden(2), linear).outs(2),
		op("GRU", "linear, last state alone", args(3, 1, 3, 2, 2, 2)...).attr(hidden(2), linear).outs(2).skip(0),
		op("GRU", "batch first", Any(2, 3, 2), Any(1, 6, 2), Any(1, 6, 2), Any(1, 12)).attr(hidden(2), first).outs(2).deviating("ort"),
		op("GRU", "reverse lengths", args(3, 1, 4, 2, 2, 2, lens(4, 2))...).attr(hidden(2), way("reverse")).outs(2),
		op("GRU", "other activations", args(3, 1, 3, 2, 2, 2)...).attr(hidden(2), acts("Tanh", "Sigmoid")).outs(2),

		op("LSTM", "forward", args(4, 1, 3, 2, 3, 2)...).attr(hidden(2)).outs(3),
		op("LSTM", "reverse, initial states", args(4, 1, 3, 2, 2, 2, none, Any(1, 2, 2), Any(1, 2, 2))...).attr(hidden(2), way("reverse")).outs(3),
		op("LSTM", "bidirectional", args(4, 2, 3, 2, 2, 2, none, Any(2, 2, 2), Any(2, 2, 2))...).attr(hidden(2), way("bidirectional")).outs(3),
		op("LSTM", "peepholes", args(4, 1, 3, 2, 2, 2, none, Any(1, 2, 2), Any(1, 2, 2), Any(1, 6))...).attr(hidden(2)).outs(3),
		op("LSTM", "peepholes, zero state", args(4, 1, 3, 2, 2, 2, none, none, none, Any(1, 6))...).attr(hidden(2)).outs(3),
		op("LSTM", "coupled gates", args(4, 1, 3, 2, 2, 2, none, Any(1, 2, 2), Any(1, 2, 2))...).attr(hidden(2), onnx.AttrInt("input_forget", 1)).outs(3),
		op("LSTM", "lengths", args(4, 2, 4, 3, 2, 2, lens(3, 4, 1))...).attr(hidden(2), way("bidirectional")).outs(3),
		op("LSTM", "lengths at run time", append(args(4, 1, 4, 2, 2, 2), lens(3, 4).Fixed())...).attr(hidden(2)).outs(3),
		op("LSTM", "cell alone", args(4, 1, 3, 2, 2, 2, none, Any(1, 2, 2), Any(1, 2, 2))...).attr(hidden(2)).outs(3).only(2),
		op("LSTM", "one step", args(4, 1, 1, 2, 2, 2, none, Any(1, 2, 2), Any(1, 2, 2))...).attr(hidden(2)).outs(3),
		op("LSTM", "batch first", Any(2, 3, 2), Any(2, 8, 2), Any(2, 8, 2), Any(2, 16), none, Any(2, 2, 2), Any(2, 2, 2)).attr(hidden(2), way("bidirectional"), first).outs(3).deviating("ort"),
		op("LSTM", "clip", args(4, 1, 3, 2, 2, 2)...).attr(hidden(2), onnx.AttrFloat("clip", 50)).outs(3),
		op("LSTM", "last state alone", args(4, 1, 3, 2, 2, 2)...).attr(hidden(2)).outs(3).skip(0, 2),
		op("LSTM", "no bias", Any(3, 2, 2), Any(1, 8, 2), Any(1, 8, 2)).attr(hidden(2)).outs(3),
		op("LSTM", "other activations", args(4, 1, 3, 2, 2, 2)...).attr(hidden(2), acts("HardSigmoid", "Softsign", "Tanh"), onnx.AttrFloats("activation_alpha", 0.05),
			onnx.AttrFloats("activation_beta", 0.5)).outs(3),
	}
}
