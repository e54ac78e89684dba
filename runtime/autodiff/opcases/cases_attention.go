package opcases

import (
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func attentionCases() []Case {
	heads := func(q, kv int) []*onnx.Attribute {
		return []*onnx.Attribute{onnx.AttrInt("q_num_heads", q), onnx.AttrInt("kv_num_heads", kv)}
	}
	rule := func(v string) *onnx.Attribute { return onnx.AttrStr("update_rule", v) }
	mode := func(v int) *onnx.Attribute { return onnx.AttrInt("qk_matmul_output_mode", v) }
	window := func(left, right int) []*onnx.Attribute {
		return []*onnx.Attribute{onnx.AttrInt("left_window_size", left), onnx.AttrInt("right_window_size", right)}
	}
	causal, between := onnx.AttrInt("is_causal", 1), onnx.AttrInt("interleaved", 1)
	silu := onnx.AttrStr("activation", "silu")
	lower := bools([]int{3, 4}, true, false, false, true, true, true, false, false, true, true, true, false)
	blank := bools([]int{3, 4}, true, false, false, true, false, false, false, false, true, true, true, false)
	lens := func(v ...int64) Arg { return Tensor(tensor.Of(v, len(v))) }
	cases := []Case{
		op("Attention", "heads first", Any(2, 2, 3, 4), Any(2, 2, 4, 4), Any(2, 2, 4, 3)),
		op("Attention", "packed", Any(2, 3, 4), Any(2, 5, 4), Any(2, 5, 6)).attr(heads(2, 2)...),
		op("Attention", "shared keys", Any(1, 3, 8), Any(1, 4, 4), Any(1, 4, 6)).attr(heads(4, 2)...),
		op("Attention", "one key head", Any(1, 4, 3, 2), Any(1, 1, 4, 2), Any(1, 1, 4, 2)).attr(onnx.AttrFloat("scale", 0.7)),
		op("Attention", "causal", Any(1, 2, 4, 2), Any(1, 2, 4, 2), Any(1, 2, 4, 2)).attr(causal),
		op("Attention", "boolean mask", Any(1, 2, 3, 2), Any(1, 2, 4, 2), Any(1, 2, 4, 2), lower),
		op("Attention", "blank row", Any(1, 2, 3, 2), Any(1, 2, 4, 2), Any(1, 2, 4, 2), blank).opset(24),
		op("Attention", "additive mask", Any(2, 2, 3, 2), Any(2, 2, 4, 2), Any(2, 2, 4, 2), Any(3, 4)),
		op("Attention", "additive mask per head, causal", Any(2, 2, 4, 2), Any(2, 2, 4, 2), Any(2, 2, 4, 2), Any(2, 2, 4, 4)).attr(causal),
		op("Attention", "softcap", Any(1, 2, 3, 2), Any(1, 2, 4, 2), Any(1, 2, 4, 2)).attr(onnx.AttrFloat("softcap", 1.5)),
		op("Attention", "past", Any(1, 2, 3, 2), Any(1, 2, 3, 2), Any(1, 2, 3, 3), none, Any(1, 2, 2, 2), Any(1, 2, 2, 3)).attr(causal).outs(3),
		op("Attention", "scores", Any(1, 2, 3, 2), Any(1, 2, 4, 2), Any(1, 2, 4, 2)).outs(4).skip(1, 2),
		op("Attention", "probabilities", Any(1, 2, 3, 2), Any(1, 2, 4, 2), Any(1, 2, 4, 2)).attr(mode(3)).outs(4).skip(1, 2),
		op("Attention", "cache filled in part", Any(2, 2, 2, 2), Any(2, 2, 4, 2), Any(2, 2, 4, 2), none, none, none, lens(3, 2)).opset(24),
		op("Attention", "cache filled in part, causal", Any(2, 2, 2, 2), Any(2, 2, 4, 2), Any(2, 2, 4, 2), none, none, none, lens(4, 2)).attr(causal).opset(24),
		op("Attention", "window", Any(1, 2, 5, 2), Any(1, 2, 5, 2), Any(1, 2, 5, 2)).attr(window(1, 2)...).opset(25),
		op("Attention", "window, past", Any(1, 1, 3, 2), Any(1, 1, 3, 2), Any(1, 1, 3, 2), none, Any(1, 1, 2, 2), Any(1, 1, 2, 2)).
			attr(window(2, -1)...).attr(causal).outs(3).opset(25),

		op("RotaryEmbedding", "halves", Any(2, 2, 3, 4), Any(2, 3, 2), Any(2, 3, 2)).opset(23),
		op("RotaryEmbedding", "interleaved", Any(2, 2, 3, 4), Any(2, 3, 2), Any(2, 3, 2)).attr(between).opset(23),
		op("RotaryEmbedding", "packed, cache", Any(2, 3, 8), Any(5, 2), Any(5, 2), intsOf([]int{2, 3}, 0, 1, 4, 2, 3, 3)).attr(onnx.AttrInt("num_heads", 2)).opset(23),
		op("RotaryEmbedding", "part", Any(1, 2, 3, 6), Any(4, 2), Any(4, 2), intsOf([]int{1, 3}, 0, 3, 1)).attr(onnx.AttrInt("rotary_embedding_dim", 4), between).opset(23),

		op("LinearAttention", "linear", Any(2, 3, 4), Any(2, 3, 4), Any(2, 3, 6)).attr(heads(2, 2)...).attr(rule("linear")).outs(2).opset(27),
		op("LinearAttention", "gated, shared", Any(1, 3, 8), Any(1, 3, 4), Any(1, 3, 4), Any(1, 2, 2, 2), Between(-1, 0, 1, 3, 4)).
			attr(heads(4, 2)...).attr(rule("gated")).outs(2).opset(27),
		op("LinearAttention", "delta", Any(2, 3, 4), Any(2, 3, 4), Any(2, 3, 4), Any(2, 2, 2, 2), none, Between(0, 1, 2, 3, 1)).
			attr(heads(2, 2)...).attr(rule("delta")).outs(2).opset(27),
		op("LinearAttention", "gated delta", Any(1, 4, 4), Any(1, 4, 4), Any(1, 4, 6), none, Between(-1, 0, 1, 4, 2), Between(0, 1, 1, 4, 2)).
			attr(heads(2, 2)...).attr(onnx.AttrFloat("scale", 0.5)).outs(2).opset(27),

		op("CausalConvWithState", "plain", Any(2, 3, 5), Any(3, 1, 3)).outs(2).opset(27),
		op("CausalConvWithState", "state, silu", Any(2, 2, 4), Any(2, 1, 3), Any(2), Any(2, 2, 2)).attr(silu).outs(2).opset(27),
		op("CausalConvWithState", "short input", Any(1, 2, 1), Any(2, 1, 4), Any(2)).outs(2).opset(27),

		op("SwiGLU", "plain", Any(2, 3), Any(2, 3)).opset(28),
		op("SwiGLU", "alpha", Any(4), Any(4)).attr(onnx.AttrFloat("alpha", 1.7)).opset(28),
		op("SwiGLU", "cube", Any(2, 2, 2), Any(2, 2, 2)).opset(28),
	}
	for i := range cases {
		if cases[i].Op == "Attention" && cases[i].Opset == 0 {
			cases[i].Opset = 23
		}
	}
	return cases
}
