package autodiff

import (
	"slices"

	"github.com/onnxrl/onnxrl/runtime/onnx"
	"github.com/onnxrl/onnxrl/runtime/tensor"
)

var lossRules = []Rule{
	{Op: "SoftmaxCrossEntropyLoss", Versions: []int{12, 13}, Expand: expandSoftmaxCrossEntropy},
	{Op: "NegativeLogLikelihoodLoss", Versions: []int{12, 13, 22}, Expand: expandNegativeLogLikelihood},
}

// expandSoftmaxCrossEntropy: loss = −Σ w[t]·log softmax(x)[t], with the gradient softmax − onehot
// taken at once instead of through the logarithm.
func expandSoftmaxCrossEntropy(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	x := n.In(0)
	logp := c.Unary("LogSoftmax", x, onnx.AttrInt("axis", 1))
	loss := c.likelihoodLoss(n, logp, func(picked, index onnx.Value) {
		c.Fuse(picked, []onnx.Value{x}, func(c *Context, m *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
			return []onnx.Value{c.Mul(c.Sub(c.classMask(m.In(0), index), c.Unary("Exp", m.In(0))), g[0])}, nil
		})
	})
	out := two(loss, logp)
	if n.Out(1) != "" {
		// The copy takes the output's name; the gradient's references to the value stay valid.
		out[1] = c.Unary("Identity", logp)
	}
	return out, c.b.Err()
}

func expandNegativeLogLikelihood(c *Context, n *onnx.Node) ([]onnx.Value, error) {
	logp := n.In(0)
	loss := c.likelihoodLoss(n, logp, func(picked, index onnx.Value) {
		c.Fuse(picked, []onnx.Value{logp}, func(c *Context, m *onnx.Node, g []onnx.Value) ([]onnx.Value, error) {
			return []onnx.Value{c.Mul(c.classMask(m.In(0), index), g[0])}, nil
		})
	})
	return []onnx.Value{loss}, c.b.Err()
}

// classMask is 1 where axis 1 of logp is the class in index, which has one class per point, and 0
// elsewhere.
func (c *Context) classMask(logp, index onnx.Value) onnx.Value {
	e := c.Extents(logp)
	if c.b.Err() != nil {
		return ""
	}
	if e[1].Of != "" {
		c.failOpen(logp, "its number of classes")
		return ""
	}
	classes := tensor.New(tensor.Int64, join([]int{1, e[1].N}, filled(1, len(e)-2))...)
	for i := range classes.Int64s() {
		classes.Int64s()[i] = int64(i)
	}
	return c.Cast(c.Op("Equal", two(index, c.b.Const(classes))), c.DType(logp))
}

// likelihoodLoss emits the weighted and reduced −logp[target]. fuse is called with the picked
// log-probabilities [N, 1, d…] and the classes they were picked by.
func (c *Context) likelihoodLoss(n *onnx.Node, logp onnx.Value, fuse func(picked, index onnx.Value)) onnx.Value {
	target, weights := n.In(1), n.In(2)
	e := c.Extents(target)
	if c.b.Err() != nil {
		return ""
	}
	index := c.Cast(target, tensor.Int64)
	weight := onnx.Value("")
	if n.Has("ignore_index") {
		ignored := c.Op("Equal", two(index, c.b.Int(n.Int("ignore_index", 0))))
		index = c.Where(ignored, c.b.Int(0), index)
		weight = c.Cast(c.Unary("Not", ignored), c.DType(logp))
	}
	if classes := c.Extents(logp); len(classes) > 1 {
		// A negative label is none; for GatherElements it would be a class counted from the end.
		beyond := c.b.Int(classes[1].N)
		if classes[1].Of != "" {
			beyond = c.Vector(classes[1])
		}
		index = c.Where(c.Op("Less", two(index, c.b.Int(0))), beyond, index)
	}
	if weights != "" {
		w := c.Op("Gather", two(weights, index), onnx.AttrInt("axis", 0))
		if weight != "" {
			w = c.Mul(w, weight)
		}
		weight = w
	}
	column := c.ReshapeTo(index, slices.Insert(slices.Clone(e), 1, Extent{N: 1})...)
	picked := c.Op("GatherElements", two(logp, column), onnx.AttrInt("axis", 1))
	fuse(picked, column)
	loss := c.Neg(c.ReshapeTo(picked, e...))
	if weight != "" {
		loss = c.Mul(loss, weight)
	}
	all := Seq(len(e))
	switch n.Str("reduction", "mean") {
	case "none":
		return loss
	case "sum":
		return c.Sum(loss, all, false)
	}
	if weight != "" {
		return c.Div(c.Sum(loss, all, false), c.Sum(weight, all, false))
	}
	if s, ok := numbers(e); ok {
		return c.Scale(c.Sum(loss, all, false), 1/float64(max(1, prod(s))))
	}
	return c.share(c.Sum(loss, all, false), e)
}
