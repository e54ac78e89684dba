package layer

import (
	"math"
	"strconv"

	"github.com/onnxrl/onnxrl/models"
	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

func numbered(name string, i int) string { return name + strconv.Itoa(i) }

func maskOf(input string, rate float64) models.DropoutMask {
	return models.DropoutMask{Input: input, Ratio: rate}
}

// Masked is what is added to the scores of keys that must not be attended to: e to its power is 0
// in float32, and a row without any key left is uniform and not NaN.
const Masked = -1e8

// SelfAttention appends multi-head scaled dot-product attention of x [rows, steps, width] with
// itself (Vaswani et al. 2017, arXiv 1706.03762), output projection included. bias, which may be
// absent, is added to the scores [rows, heads, steps, steps] and broadcast to them: see
// [Graph.CausalBias] and [Graph.KeyBias]. The parameters are qkv (queries, keys and values in one
// product) and out.
func (g *Graph) SelfAttention(name string, x onnx.Value, heads int, bias onnx.Value, init Init) onnx.Value {
	return g.attention(name, x, heads, bias, init, func(_ *Graph, _, _, mixed onnx.Value) onnx.Value { return mixed })
}

// ProbSparseAttention is SelfAttention in which only some queries of each head attend to the keys:
// those whose largest score exceeds their mean score most. The others get the mean of the values
// (Zhou et al. 2021, arXiv 2012.07436, section 3.2). The paper estimates that measure from keys
// drawn at random; here it is exact, over all keys, so nothing is random and no product is saved.
// Queries that tie with the last one kept are kept.
func (g *Graph) ProbSparseAttention(name string, x onnx.Value, heads, queries int, init Init) onnx.Value {
	if steps := g.Extent(x, 1); queries < 1 || queries > steps {
		g.In(name).Failf("%d queries of %d steps cannot attend", queries, steps)
		return x
	}
	return g.attention(name, x, heads, "", init, func(l *Graph, scores, values, mixed onnx.Value) onnx.Value {
		peak := l.Sub(l.Op("ReduceMax", []onnx.Value{scores, l.Ints(-1)}), l.Op("ReduceMean", []onnx.Value{scores, l.Ints(-1)}))
		top := l.OpN("TopK", 2, []onnx.Value{peak, l.Ints(queries)}, onnx.AttrInt("axis", 2))
		keep := l.Op("GreaterOrEqual", []onnx.Value{peak, l.Slice(top[0], 2, queries-1, queries)})
		return l.Where(keep, mixed, l.Op("ReduceMean", []onnx.Value{values, l.Ints(2)}))
	})
}

// attention appends SelfAttention whose result per head, mixed [rows, heads, steps, size], passes
// through finish before the output projection; scores are [rows, heads, steps, steps] and values
// as mixed.
func (g *Graph) attention(name string, x onnx.Value, heads int, bias onnx.Value, init Init, finish func(l *Graph, scores, values, mixed onnx.Value) onnx.Value) onnx.Value {
	l := g.In(name)
	steps, width := l.Extent(x, 1), l.Extent(x, 2)
	if l.Err() != nil {
		return x
	}
	if heads < 1 || width%heads != 0 {
		l.Failf("%d heads do not divide a width of %d", heads, width)
		return x
	}
	size := width / heads
	qkv := l.Linear("qkv", x, 3*width, init)
	// [rows, steps, 3·heads, size] -> [rows, 3·heads, steps, size]: one transposition for all
	// three.
	parts := l.Split(l.Transpose(l.Reshape(qkv, -1, steps, 3*heads, size), 0, 2, 1, 3), 1, heads, heads, heads)
	scores := l.MatMul(l.Scale(parts[0], 1/math.Sqrt(float64(size))), l.Transpose(parts[1], 0, 1, 3, 2))
	if bias != "" {
		scores = l.Add(scores, bias)
	}
	mixed := l.MatMul(l.Op("Softmax", []onnx.Value{scores}, onnx.AttrInt("axis", -1)), parts[2])
	mixed = finish(l, scores, parts[2], mixed)
	return l.Linear("out", l.Reshape(l.Transpose(mixed, 0, 2, 1, 3), -1, steps, width), width, init)
}

// CausalBias returns the bias [steps, steps] that hides what comes later.
func (g *Graph) CausalBias(steps int) onnx.Value {
	t := tensor.New(tensor.Float32, steps, steps)
	for i := range steps {
		for j := i + 1; j < steps; j++ {
			t.Float32s()[i*steps+j] = Masked
		}
	}
	return g.Const(t)
}

// KeyBias turns a bool mask [rows, steps] of steps that may be attended to into a bias [rows, 1, 1,
// steps].
func (g *Graph) KeyBias(valid onnx.Value) onnx.Value {
	return g.Unsqueeze(g.Where(valid, g.Float(0), g.Float(Masked)), 1, 2)
}

// Block says how a transformer block is made.
type Block struct {
	Heads int
	// FF is the width of the feed-forward part as a multiple of the block's.
	FF int
	// Activation of the feed-forward part.
	Activation string
	Dropout    float64
}

// TransformerBlock appends x + attention(norm(x)), then x + feed-forward(norm(x)): the
// normalisation comes first, which trains without warm-up (Xiong et al. 2020, arXiv 2002.04745).
// Weights are drawn by Xavier's rule.
func (g *Graph) TransformerBlock(name string, x onnx.Value, bias onnx.Value, b Block) onnx.Value {
	l := g.In(name)
	width := l.Extent(x, -1)
	a := l.SelfAttention("attention", l.LayerNorm("norm1", x), b.Heads, bias, Xavier(1))
	x = l.Add(x, l.Dropout("drop1", a, b.Dropout))
	h := l.Activate(b.Activation, l.Linear("ff1", l.LayerNorm("norm2", x), b.FF*width, Xavier(1)))
	return l.Add(x, l.Dropout("drop2", l.Linear("ff2", h, width, Xavier(1)), b.Dropout))
}

// Sinusoids returns the positions [steps, width] of Vaswani et al. 2017, section 3.5, as a
// constant: sine at even columns, cosine at odd ones.
func (g *Graph) Sinusoids(steps, width int) onnx.Value {
	t := tensor.New(tensor.Float32, steps, width)
	for i := range steps {
		for j := range width {
			angle := float64(i) / math.Pow(10000, float64(j/2*2)/float64(width))
			if j%2 == 0 {
				t.Float32s()[i*width+j] = float32(math.Sin(angle))
			} else {
				t.Float32s()[i*width+j] = float32(math.Cos(angle))
			}
		}
	}
	return g.Const(t)
}
